// What is done again and again, as storage has it (ST34). When that is, is worked out by who puts and fires it.

import type { JsonText } from "../json/json.ts";
import type { Budget } from "./budget.ts";
import type { AgentRef, Placement } from "./session.ts";

/** A schedule as it is stored. Times in epoch milliseconds. */
export interface Schedule {
  readonly scheduleId: string;
  /** Whose it is, and whose is what it starts. */
  readonly owner?: string;
  /** Five or six fields of cron. */
  readonly cron: string;
  /** IANA name. */
  readonly timeZone: string;
  readonly action: ScheduledAction;
  /** When it fires next. */
  readonly nextAt: number;
  readonly lastAt?: number;
  /** The signal it sent last: it sends none as long as that is unread. */
  readonly unread?: string;
  readonly createdAt: number;
}

/** Start a session of an agent, or signal one that lives. */
export type ScheduledAction =
  | {
      readonly type: "start";
      readonly agent: AgentRef;
      readonly input: JsonText | undefined;
      /** Of each session it starts; whose it is, the schedule says. */
      readonly budget?: Budget;
      readonly placement?: Omit<Placement, "owner">;
    }
  | {
      readonly type: "signal";
      readonly sessionId: string;
      readonly name: string;
      readonly payload: JsonText | undefined;
    };

/** Store a schedule, in place of one of this id; in its times it stays where that one was (ST34). */
export interface PutSchedule {
  readonly type: "put_schedule";
  readonly schedule: Schedule;
}

export interface RemoveSchedule {
  readonly type: "remove_schedule";
  readonly scheduleId: string;
}
