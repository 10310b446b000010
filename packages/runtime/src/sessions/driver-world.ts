// `driverWorld`: the interface for drivers, made of their process and of the sessions that it drives.

import type { AsyncLocalStorage } from "node:async_hooks";
import { type AgentStorage, type Entry, isProof, type Random, UNKNOWN_VERSION } from "@holdfast/core";
import type { KnownAgents } from "../agents/agent-registry.ts";
import type { Trials } from "../claims/trials.ts";
import type { GroupCommitter } from "../loop/group-committer.ts";
import { boundHere, neutral } from "../loop/neutral-context.ts";
import { sha256 } from "../node/node-ports.ts";
import type { DriverWorld } from "../session/driver-environment.ts";
import { arrivalsHere } from "../session/inbox.ts";
import { awaitConversation, KeptConversations } from "../tasks/conversation.ts";
import type { RunningCode } from "../tasks/task-session.ts";

/** The code of sessions that runs in this process. */
export interface CodeHere {
  readonly running: AsyncLocalStorage<RunningCode>;
  /** The line at which each session's agent last made a non-deterministic call. */
  readonly outsideCalls: Map<string, string>;
}

/** The process of drivers, without its sessions. */
export interface DrivingProcess extends Pick<
  DriverWorld,
  | "checkLease"
  | "clock"
  | "development"
  | "executor"
  | "immediate"
  | "limits"
  | "loop"
  | "machine"
  | "prices"
  | "timers"
  | "trace"
  | "traceparent"
  | "unbegun"
> {
  readonly storage: AgentStorage;
  readonly committer: GroupCommitter;
  readonly random: Random;
  readonly code: CodeHere;
  readonly trials: Trials;
  /** Whether a coordinator decides which sessions and children run here. */
  readonly dispatched: boolean;
  /** Whether another definition takes the place of an agent with its name and version. */
  readonly replaceAgents: boolean;
}

/** The sessions of that process, as their drivers use them. */
interface DrivenSessions extends Pick<DriverWorld, "departed"> {
  readonly agents: KnownAgents;
  readonly children: Pick<DriverWorld, "spawned">;
  readonly settlements: Pick<DriverWorld, "asked" | "settled">;
  readonly due: Pick<DriverWorld, "noteWaiting"> & { readonly leavesAtCheckpoints: boolean };
  /** The entries of a session driven here that are not stored (K11). */
  unstored(sessionId: string, leaf: number): readonly Entry[] | undefined;
  /** Load a session again that waits with a definition which was replaced. */
  renew(sessionId: string): void;
}

export function driverWorld(process: DrivingProcess, sessions: DrivenSessions): DriverWorld {
  const { storage, committer, clock, random, trials, dispatched, replaceAgents } = process;
  const { running, outsideCalls } = process.code;
  const { agents, children, settlements } = sessions;
  const kept = new KeptConversations(storage);
  return {
    checkLease: process.checkLease,
    development: process.development,
    executor: process.executor,
    immediate: process.immediate,
    limits: process.limits,
    loop: process.loop,
    machine: process.machine,
    prices: process.prices,
    timers: process.timers,
    trace: process.trace,
    traceparent: process.traceparent,
    unbegun: process.unbegun,
    clock,
    hash: sha256,
    random: () => random.u32(),
    submit: (change, onResult, onError) =>
      committer.submit({
        change,
        onResult: (result) => {
          if (change.type === "commit_batch" && result.status === "committed" && isProof(change))
            trials.over(change.sessionId);
          onResult(result);
        },
        onError,
      }),
    arrivals: (sessionId, after) => arrivalsHere(storage, sessionId, after),
    find: (sessionId) => storage.reader.session(sessionId),
    conversation: (...asked) =>
      awaitConversation({ storage, kept, clock, unstored: (...of) => sessions.unstored(...of) }, ...asked),
    describeAgent: (name) =>
      agents.describe(name) ?? (dispatched ? { name, version: UNKNOWN_VERSION } : undefined),
    agentNames: () => agents.names,
    acceptInput: (name, version, input) => agents.acceptInput(name, version, input),
    spawned: (sessionIds) => children.spawned(sessionIds),
    settled: (payers) => settlements.settled(payers),
    asked: (...asked) => settlements.asked(...asked),
    leavesAtCheckpoint: () => sessions.due.leavesAtCheckpoints,
    noteWaiting: (sessionId, bytes) => {
      trials.over(sessionId);
      sessions.due.noteWaiting(sessionId, bytes);
      if (replaceAgents) void Promise.resolve().then(() => sessions.renew(sessionId)); // Not while its driver handles the commit.
    },
    enter: (whose, fn) => neutral(() => running.run(whose, fn)),
    bound: (whose, closure) => boundHere((task) => running.run(whose, closure, task)),
    whereabouts: (sessionId) => ({
      task: running.getStore()?.task,
      outsideCall: outsideCalls.get(sessionId),
    }),
    departed: (driver, departure) => {
      outsideCalls.delete(driver.sessionId);
      kept.forget(driver.sessionId);
      sessions.departed(driver, departure);
    },
  };
}
