// `LiveSessionsHost`: the interface of a process for `LiveSessions`.

import type { Watchdog } from "../isolation/watchdog.ts";
import type { LocalTaskExecutor } from "../tasks/local/local-task-executor.ts";
import type { SlotWaits } from "../tasks/slot-waits.ts";
import type { DrivingProcess } from "./driver-world.ts";
import type { DueSessionsHost } from "./due-sessions.ts";
import type { SessionEntries } from "./session-entries.ts";

/** The interface of a process for the sessions it drives. */
export interface LiveSessionsHost extends DrivingProcess, DueSessionsHost {
  readonly entries: SessionEntries;
  /** Whether sessions that were not started here run when something arrives for them, and when they are due. */
  readonly adopt: boolean;
  readonly watchdog: Watchdog | undefined;
  /** Its tasks are those of agents that become known. Absent when the program has an executor of its own. */
  readonly local: LocalTaskExecutor | undefined;
  /** The waits of tasks for sessions that are driven here. */
  readonly slotWaits: Pick<SlotWaits, "during">;
  /** Report a failure for which no caller waits. */
  warn(sessionId: string, message: string): void;
}
