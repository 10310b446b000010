// `LiveSessionsHost`: the interface of a process for `LiveSessions`.

import type { AgentStorage } from "@holdfast/core";
import type { DriverWorld } from "../session/driver-environment.ts";
import type { Claims } from "../claims/claims.ts";
import type { GroupCommitter } from "../loop/group-committer.ts";
import type { Trials } from "../claims/trials.ts";
import type { Watchdog } from "../isolation/watchdog.ts";

/** The interface of a process for the sessions it drives. */
export interface LiveSessionsHost {
  readonly storage: AgentStorage;
  readonly committer: GroupCommitter;
  readonly world: DriverWorld;
  readonly claims: Claims;
  /** Whether sessions that were not started here run when something arrives for them. */
  readonly adopt: boolean;
  /** Whether a coordinator decides which sessions and children run here. */
  readonly dispatched: boolean;
  readonly watchdog: Watchdog | undefined;
  readonly trials: Trials;
  /** Look for due sessions at this time. */
  lookAt(at: number): void;
  /** The session is no longer driven here. */
  left(sessionId: string): void;
  /** The session left memory and only waits. */
  released(sessionId: string): void;
  /** Report a failure for which no caller waits. */
  warn(sessionId: string, message: string): void;
}
