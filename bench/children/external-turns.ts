// The turns of an external agent, in a process that has run nothing before, with the limits of memory that
// the command sets.

import { limitProcessMemory } from "@holdfast/runtime";
import { measureTurns, type TurnsRun } from "../workloads/external-agent.ts";
import { notifyParent, optionsOf } from "./parent.ts";

limitProcessMemory();
notifyParent("ran", { lines: await measureTurns(optionsOf<TurnsRun>()) });
