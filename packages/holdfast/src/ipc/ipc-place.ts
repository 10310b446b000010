// `IpcPlace`: where the sessions of a runner with `--ipc` are, with the requests that a host makes there.
//
// There are two: a database that this process has opened, and a coordinator. A host uses both by the same
// requests.

import { type AgentTracer, defined, type SessionStatus, type StorageReader } from "@holdfast/core";
import type { SessionRequests } from "@holdfast/runtime";
import type { StopSignal } from "@holdfast/terminal/frame/command";
import type { StartWish } from "../run/starting/start-plan.ts";
import type { RequestOf } from "./ipc-messages.ts";

export interface IpcPlace {
  readonly type: "database" | "coordinator";
  /** The path or the URL. */
  readonly at: string;
  readonly reader: StorageReader;
  readonly requests: Pick<SessionRequests, "signal" | "answer" | "cancel"> & {
    pause(sessionId: string): Promise<SessionStatus>;
    unpause(sessionId: string): Promise<SessionStatus>;
  };
  /**
   * Starts a session, or finds the same session under its id.
   *
   * @throws ConflictError `session_exists` when another session has the id.
   */
  start(request: RequestOf<"start">, sessionId: string): Promise<void>;
  /** Calls `onNews` when the session may have changed, also at the hands of another process. Returns how to stop it. */
  watch(sessionId: string, onNews: () => void): () => void;
  /** Aborted when the place is closed. The host then waits for the next one. */
  readonly closed: AbortSignal;
  /** Sessions that this process drives. */
  readonly live: number;
}

/** The wishes of a host for a session. */
export function wishOf({
  title,
  budget,
  timeoutMs,
  persistence,
  environment,
}: RequestOf<"start">): StartWish {
  return defined({ title, budget, timeoutMs, persistence, environment });
}

/** Why a runner ends. */
export interface IpcEnd {
  readonly reason: "stopped" | "host_gone" | "signal" | "drained";
  readonly signal?: StopSignal;
}

/** The part of a host that a place uses. */
export interface IpcPlaceHost {
  /** Receives the events of the sessions that run here. */
  readonly tracer: AgentTracer;
  /** The place is open, and these sessions of an earlier runner continue. */
  opened(place: IpcPlace, resumed: readonly string[]): void;
  /** Accepts nothing more. Resolves when what was accepted is performed. */
  ending(): Promise<void>;
  /** Tells the host of something that mends itself. */
  warn(message: string): void;
}
