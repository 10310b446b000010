// Schedules in the file. The class knows no cron: callers pass the time of the next firing.

import { type Schedule, type ScheduledAction, unlessCorrupt } from "@holdfast/core";
import { rowChecksum } from "./checksum.ts";
import type { SqlDriver, SqlRow, SqlStatement, SqlValue } from "../file/driver.ts";
import { assertChecksum, list, marks, valuesOf } from "./row-checks.ts";

const COLUMNS = ["schedule_id", "cron", "time_zone", "action", "next_at", "last_at", "created_at"];

export const SELECT_SCHEDULE = `SELECT ${list(COLUMNS)}, checksum FROM schedule`;

export class Schedules {
  readonly #path: string;
  readonly #put: SqlStatement;
  readonly #remove: SqlStatement;
  readonly #one: SqlStatement;
  readonly #all: SqlStatement;
  readonly #due: SqlStatement;
  readonly #next: SqlStatement;

  constructor(driver: SqlDriver, path: string) {
    this.#path = path;
    this.#put = driver.prepare(
      `INSERT OR REPLACE INTO schedule (${list(COLUMNS)}, checksum) VALUES (${marks(COLUMNS)}, ?)`,
    );
    this.#remove = driver.prepare("DELETE FROM schedule WHERE schedule_id = ?");
    this.#one = driver.prepare(`${SELECT_SCHEDULE} WHERE schedule_id = ?`);
    this.#all = driver.prepare(`${SELECT_SCHEDULE} ORDER BY next_at, schedule_id`);
    this.#due = driver.prepare(`${SELECT_SCHEDULE} WHERE next_at <= ? ORDER BY next_at, schedule_id`);
    this.#next = driver.prepare("SELECT min(next_at) AS at FROM schedule WHERE next_at > ?");
  }

  put(schedule: Schedule): void {
    const { scheduleId, cron, timeZone, action, nextAt, lastAt, createdAt } = schedule;
    const values: SqlValue[] = [
      scheduleId,
      cron,
      timeZone,
      JSON.stringify({
        ...action,
        owner: schedule.owner,
        unread: schedule.unread,
        isPaused: schedule.isPaused,
      }),
      nextAt,
      lastAt ?? null,
      createdAt,
    ];
    this.#put.run(...values, rowChecksum(values));
  }

  remove(scheduleId: string): void {
    this.#remove.run(scheduleId);
  }

  get(scheduleId: string): Schedule | undefined {
    const row = this.#one.get(scheduleId);
    return row === undefined ? undefined : readSchedule(row, this.#path);
  }

  /** The next to fire first. */
  all(): Schedule[] {
    return this.#all.all().map((row) => readSchedule(row, this.#path));
  }

  due(now: number): Schedule[] {
    return this.#due.all(now).flatMap((row) => unlessCorrupt(() => readSchedule(row, this.#path)) ?? []);
  }

  /** When the next fires that is not due yet; `Infinity` for never. */
  nextAfter(now: number): number {
    return (this.#next.get(now)?.["at"] as number | null) ?? Infinity;
  }
}

export function readSchedule(row: SqlRow, path: string): Schedule {
  const scheduleId = row["schedule_id"] as string;
  assertChecksum(path, "schedule", scheduleId, row["checksum"], rowChecksum(valuesOf(row, COLUMNS)));
  const lastAt = row["last_at"] as number | null;
  const { owner, unread, isPaused, ...action } = readAction(row["action"] as string);
  return {
    scheduleId,
    ...(owner === undefined ? {} : { owner }),
    cron: row["cron"] as string,
    timeZone: row["time_zone"] as string,
    action,
    nextAt: row["next_at"] as number,
    ...(isPaused === undefined ? {} : { isPaused }),
    ...(lastAt === null ? {} : { lastAt }),
    ...(unread === undefined ? {} : { unread }),
    createdAt: row["created_at"] as number,
  };
}

type StoredAction = ScheduledAction & Pick<Schedule, "owner" | "unread" | "isPaused">;

/**
 * With the owner, the unread signal and the pause, which few have. JSON leaves out what is `undefined`, and
 * the port has the field.
 */
function readAction(text: string): StoredAction {
  const action = JSON.parse(text) as StoredAction;
  return action.type === "start"
    ? { ...action, input: action.input }
    : { ...action, payload: action.payload };
}
