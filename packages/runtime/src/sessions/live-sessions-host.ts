// `LiveSessionsHost`: the interface of a process for `LiveSessions`.

import type { AgentStorage } from "@holdfast/core";
import type { DriverWorld } from "../session/driver-environment.ts";
import type { Claims } from "../claims/claims.ts";
import type { GroupCommitter } from "../loop/group-committer.ts";
import type { Trials } from "../claims/trials.ts";
import type { LocalTaskExecutor } from "../tasks/local/local-task-executor.ts";
import type { Watchdog } from "../isolation/watchdog.ts";
import type { SessionEntries } from "./session-entries.ts";

/** The interface of a process for the sessions it drives. */
export interface LiveSessionsHost {
  readonly storage: AgentStorage;
  readonly committer: GroupCommitter;
  readonly world: DriverWorld;
  readonly claims: Claims;
  readonly entries: SessionEntries;
  /** Whether sessions that were not started here run when something arrives for them. */
  readonly adopt: boolean;
  /** Whether a coordinator decides which sessions and children run here. */
  readonly dispatched: boolean;
  readonly watchdog: Watchdog | undefined;
  readonly trials: Trials;
  /** Its tasks are those of agents that become known. Absent when the program has an executor of its own. */
  readonly local: LocalTaskExecutor | undefined;
  /** Whether another definition takes the place of an agent with its name and version. */
  readonly replaceAgents: boolean;
  /** Look for due sessions at this time. */
  lookAt(at: number): void;
  /** The session is no longer driven here. */
  forget(sessionId: string): void;
  /** Report a failure for which no caller waits. */
  warn(sessionId: string, message: string): void;
}
