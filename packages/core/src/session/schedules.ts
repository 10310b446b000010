// `Schedule`: an action that is repeated at times of a cron expression, as it is stored (ST34). The process
// that puts and fires the schedule computes the times.

import type { JsonText } from "../json/json.ts";
import type { Budget } from "../budget/budget.ts";
import type { AgentRef, GivenEnvironment, Placement } from "./session.ts";

/** The next time of a paused schedule: the last moment that a date can have. Epoch milliseconds. */
export const NEVER = 8.64e15;

/** A schedule as it is stored. Times in epoch milliseconds. */
export interface Schedule {
  /** The id, as its author gave it. */
  readonly scheduleId: string;
  /** The owner of the schedule and of the sessions that it starts. */
  readonly owner?: string;
  /** Five or six fields of cron. */
  readonly cron: string;
  /** IANA name. */
  readonly timeZone: string;
  /** The start or the signal that it makes each time. */
  readonly action: ScheduledAction;
  /** The next time at which it fires; `NEVER` while it is paused. */
  readonly nextAt: number;
  /** Whether it is paused. A put with `false` ends the pause, and a put without the field keeps it. */
  readonly isPaused?: boolean;
  /** The last time at which it fired. */
  readonly lastAt?: number;
  /** The signal that it sent last. It sends no signal while this one is unread. */
  readonly unread?: string;
  /** When it was stored first. */
  readonly createdAt: number;
}

/** The start of a session of an agent, or a signal to an existing session. */
export type ScheduledAction =
  | {
      readonly type: "start";
      readonly agent: AgentRef;
      readonly input: JsonText | undefined;
      /** The budget of each session that it starts. The owner of the session is the schedule's. */
      readonly budget?: Budget;
      readonly placement?: Omit<Placement, "owner">;
      readonly environment?: GivenEnvironment;
    }
  | {
      readonly type: "signal";
      readonly sessionId: string;
      readonly name: string;
      readonly payload: JsonText | undefined;
    };

/**
 * Store a schedule in place of the schedule with this id (ST34). Its next time stays if cron and time zone
 * stay, and its last time and unread signal always stay. Its pause stays unless the put ends it.
 */
export interface PutSchedule {
  readonly type: "put_schedule";
  readonly schedule: Schedule;
}

export interface RemoveSchedule {
  readonly type: "remove_schedule";
  readonly scheduleId: string;
}
