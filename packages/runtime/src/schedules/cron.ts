// `readCron`: the next time of a cron line in a time zone.
//
// The library croner reads the line and finds its times on a calendar without clock changes. This file maps
// each of them to a moment of the zone, because croner would return a time that exists twice two times.
//
//   cron-1. A time that does not exist, the clock having been put forward over it, is the first moment after
//       the gap.
//   cron-2. A time that exists twice, the clock having been put back, is the first of the two.
//   cron-3. A line that takes every hour (`*`, also as `*/1` or `0-23`) means an interval, not a time of day.
//       Therefore all its times in the hour that exists twice come twice, and "hourly" never pauses.
//
// It knows neither the current time nor the action of a schedule.

import { DAY_MS, HOUR_MS, UsageError } from "@holdfast/core";
import { Cron } from "croner";

/** A line that can be read, in a zone that exists. */
export interface CronTimes {
  /** The first of its times after a moment (epoch milliseconds). @throws UsageError when there is none. */
  after(moment: number): number;
}

/** @throws UsageError that names the field which is wrong. */
export function readCron(line: string, timeZone: string): CronTimes {
  const cron = parseLine(line);
  const offsetAt = offsetsOf(timeZone);
  const nextWall = (wall: number): number => {
    const next = cron.nextRun(new Date(wall));
    if (next !== null) return next.getTime();
    throw wrongLine(line, "it never comes: there is no such day");
  };
  // mutant: repeated-hour-fires-twice
  const next = takesEveryHour(line) ? nextBySteps : nextByDay;
  return { after: (moment) => next(moment, { nextWall, offsetAt }) };
}

interface Calendar {
  /** The line's first time after a time, both in wall clock time as milliseconds, as if the zone were UTC. */
  readonly nextWall: (wall: number) => number;
  /** The milliseconds that the zone's wall clock is ahead of UTC. */
  readonly offsetAt: (moment: number) => number;
}

/** cron-1, cron-2. Moments of ascending times never descend, so the first that is later is the next. */
function nextByDay(moment: number, { nextWall, offsetAt }: Calendar): number {
  let wall = moment + offsetAt(moment);
  for (;;) {
    wall = nextWall(wall);
    const found = momentOf(wall, offsetAt);
    if (found > moment) return found;
  }
}

/** cron-1, cron-2. The moment when the wall clock shows a time first. */
function momentOf(wall: number, offsetAt: Calendar["offsetAt"]): number {
  const [early, late] = [wall - offsetAt(wall - DAY_MS), wall - offsetAt(wall + DAY_MS)];
  const first = [early, late].sort((a, b) => a - b).find((moment) => moment + offsetAt(moment) === wall);
  return first ?? changeBetween(Math.min(early, late), Math.max(early, late), offsetAt);
}

/**
 * cron-3. The next time with the current offset. If the clock changes before it, count from the change with
 *     the
 * new offset.
 */
function nextBySteps(moment: number, { nextWall, offsetAt }: Calendar): number {
  const offset = offsetAt(moment);
  const wall = nextWall(moment + offset);
  const found = wall - offset;
  if (offsetAt(found) === offset) return found;
  const change = changeBetween(moment, found, offsetAt);
  const wallThen = change + offsetAt(change);
  if (wall < wallThen) return change; // cron-1.
  return nextWall(wallThen - 1) - offsetAt(change);
}

/** The first moment at which the clock shows another offset than at `from`; at `to` it does. */
function changeBetween(from: number, to: number, offsetAt: Calendar["offsetAt"]): number {
  const before = offsetAt(from);
  let [low, high] = [from, to];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(middle) === before) low = middle;
    else high = middle;
  }
  return high;
}

// ---- reading -----------------------------------------------------------------------------------------------------

const FIELDS = "[second] minute hour day month weekday";

function parseLine(line: string): Cron {
  if (/[\r\n]/.test(line)) throw wrongLine(line, "it goes over several lines");
  const fields = fieldsOf(line);
  if (fields.length !== 5 && fields.length !== 6)
    throw wrongLine(line, `it has ${fields.length === 1 ? "1 field" : `${fields.length} fields`}`);
  try {
    return new Cron(fields.join(" "), { timezone: "UTC", paused: true });
  } catch (error) {
    const said = (error as Error).message.replace(/^CronPattern: /, "").replace(/\.$/, "");
    throw wrongLine(line, said.charAt(0).toLowerCase() + said.slice(1));
  }
}

function fieldsOf(line: string): readonly string[] {
  return line.split(/\s+/).filter((field) => field !== "");
}

/** The library knows which hours a field means, so it is asked for those of one day. */
function takesEveryHour(line: string): boolean {
  const daily = new Cron(`0 ${fieldsOf(line).at(-4)} * * *`, { timezone: "UTC", paused: true });
  return daily.nextRuns(24, new Date(-1)).at(-1)?.getTime() === 23 * HOUR_MS;
}

function wrongLine(line: string, why: string): UsageError {
  return new UsageError(`the cron line cannot be read: ${why}`, {
    at: "cron",
    got: line === "" ? "nothing" : line,
    expected: `five or six fields: ${FIELDS}, such as "30 9 * * 1-5"`,
    fix: "correct the field; in a shell put the line in quotes",
  });
}

function offsetsOf(timeZone: string): Calendar["offsetAt"] {
  const format = formatOf(timeZone);
  return (moment) => {
    const shown = new Map(format.formatToParts(moment).map(({ type, value }) => [type, Number(value)]));
    const part = (type: Intl.DateTimeFormatPartTypes): number => shown.get(type) ?? 0;
    const wall = Date.UTC(
      part("year"),
      part("month") - 1,
      part("day"),
      part("hour"),
      part("minute"),
      part("second"),
    );
    return wall - Math.floor(moment / 1_000) * 1_000;
  };
}

/** Only names: an offset such as +01:00 would be a zone that never changes its clock, and is seldom meant. */
function formatOf(timeZone: string): Intl.DateTimeFormat {
  try {
    if (!/^[A-Za-z]/.test(timeZone)) throw new RangeError("no name");
    return new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  } catch (cause) {
    throw new UsageError(`there is no time zone "${timeZone}"`, {
      at: "timeZone",
      got: timeZone === "" ? "nothing" : timeZone,
      expected: 'the IANA name of a zone, such as "Europe/Berlin", "America/New_York" or "UTC"',
      fix: "correct the name",
      cause,
    });
  }
}
