// All workloads of the bench, in the order in which they are measured.

import type { Workload } from "../workload.ts";
import { budgets, tracing } from "./additions.ts";
import { agentStart } from "./agent-start.ts";
import { agentTurns } from "./agent-turns.ts";
import { commandTurns } from "./command-turns.ts";
import { externalAgentTurns } from "./external-agent.ts";
import { families } from "./families.ts";
import { fleet } from "./fleet.ts";
import { growth } from "./growth.ts";
import { herd } from "./herd.ts";
import { install } from "./install.ts";
import { localLimits } from "./local-limits.ts";
import { localStack } from "./local-stack.ts";
import { parallel } from "./parallel.ts";
import { parked } from "./parked.ts";
import { parking } from "./parking.ts";
import { restart } from "./restart.ts";
import { sandboxes } from "./sandboxes.ts";
import { sequential } from "./sequential.ts";
import { sessions } from "./sessions.ts";
import { signals } from "./signals.ts";
import { streams } from "./streams.ts";
import { turns } from "./turns.ts";

export const WORKLOADS: readonly Workload[] = [
  sequential,
  parallel,
  sessions,
  signals,
  families,
  restart,
  parked,
  parking,
  turns,
  fleet,
  streams,
  herd,
  install,
  tracing,
  budgets,
  agentStart,
  agentTurns,
  commandTurns,
  externalAgentTurns,
  sandboxes,
  growth,
  localStack,
  localLimits,
];
