// `Schedules`: stores, lists and removes schedules.
//
// Putting a schedule again with the same cron and zone keeps its next time. Therefore a program that puts its
// schedules at each start misses no time that came while it was not running.
//
// It does not fire them: that is `schedule-keeper.ts`.

import {
  HoldfastError,
  isSessionId,
  mintId,
  UsageError,
  type AgentStorage,
  type ChangeResult,
  type Clock,
  type Random,
  type Schedule,
  type ScheduledAction,
} from "@holdfast/core";
import { readCron } from "./cron.ts";
import type { GroupCommitter } from "../loop/group-committer.ts";

/** The ids of started sessions consist of the schedule's id and 17 more characters. */
const ID_CHARS_MAX = 64;

export interface SchedulesHost {
  readonly storage: AgentStorage;
  readonly committer: GroupCommitter;
  readonly clock: Clock;
  readonly random: Random;
}

export interface ScheduleRow {
  readonly id: string | undefined;
  readonly cron: string;
  readonly timeZone: string;
  readonly action: ScheduledAction;
}

export class Schedules {
  readonly #host: SchedulesHost;

  constructor(host: SchedulesHost) {
    this.#host = host;
  }

  /** Store a schedule, in place of one with the same id. @throws UsageError */
  async put({ id, cron, timeZone, action }: ScheduleRow): Promise<Schedule> {
    const { clock, committer, random } = this.#host;
    if (id !== undefined && (!isSessionId(id) || id.length > ID_CHARS_MAX)) {
      throw new UsageError(`"${id}" cannot be the id of a schedule`, {
        at: "id",
        expected: `1 to ${ID_CHARS_MAX} letters, digits, dots, dashes and underscores, starting with a letter or digit`,
      });
    }
    const now = clock.now();
    const schedule: Schedule = {
      scheduleId: id ?? mintId("sch", now, () => random.u32()),
      cron,
      timeZone,
      action,
      nextAt: readCron(cron, timeZone).after(now), // Storage keeps the time of an existing schedule.
      createdAt: now,
    };
    const result = await committer.commit({ type: "put_schedule", schedule });
    expectStatus(result, ["done"]);
    const stored = result.status === "done" ? result.schedule : undefined;
    return stored ?? (await this.#find(schedule.scheduleId)) ?? schedule;
  }

  list(): Promise<readonly Schedule[]> {
    return this.#host.storage.reader.schedules();
  }

  /** Remove a schedule. Answers whether there was one. */
  async remove(scheduleId: string): Promise<boolean> {
    const result = await this.#host.committer.commit({ type: "remove_schedule", scheduleId });
    expectStatus(result, ["done", "not_found"]);
    return result.status === "done";
  }

  async #find(scheduleId: string): Promise<Schedule | undefined> {
    return (await this.list()).find((schedule) => schedule.scheduleId === scheduleId);
  }
}

function expectStatus(result: ChangeResult, expected: readonly ChangeResult["status"][]): void {
  const { status } = result;
  if (status === "invalid") throw new UsageError(result.reason, { fix: "correct it; nothing was stored" });
  if (!expected.includes(status))
    throw new HoldfastError("internal", `changing a schedule: storage answered "${status}"`);
}
