// `limitOf`: whether an external agent's error says that a usage limit is reached, or that nobody is signed
// in. Pure.
//
// Programs report both as a text for people. An adapter that has more than the text says so in the end of its
// turn (`cause`, `resetsAt`).

import { DAY_MS, defined, HOUR_MS, MINUTE_MS } from "@holdfast/core";
import type { ExternalEnd } from "../external-agent-protocol.ts";

export interface AgentLimit {
  readonly reason: "quota" | "auth_required";
  readonly message: string;
  /** When the limit ends. Epoch milliseconds. */
  readonly resetsAt?: number;
}

const QUOTA =
  /usage limit (?:has been )?(?:reached|exceeded)|\bhit your (?:[\w-]+ ){0,3}limit|\b(?:5-hour|hourly|session|daily|weekly|monthly|opus|sonnet) limit reached|credit balance is too low|out of (?:extra usage|credits)|insufficient_quota|usage_limit_(?:reached|exceeded)|exceeded your (?:current|monthly|daily) (?:quota|limit)|(?:daily|per[- ]?day) (?:quota|limit)/i;
const AUTH =
  /please run \/login|not (?:logged|signed) in|(?:log|sign)[ -]?in (?:is )?required|authentication (?:is )?required|invalid (?:x-)?api[ _-]?key|incorrect api key|api key (?:is )?(?:not valid|missing|not found)|no api key|oauth (?:token|session)[\w ]* (?:expired|revoked)|\b401\b[^\n]{0,40}unauthorized|authentication_error/i;

const UNITS: Readonly<Record<string, number>> = { d: DAY_MS, h: HOUR_MS, m: MINUTE_MS, s: 1_000 };
/** The minute that a text names, and the time until it is read. */
const JUST_NOW_MS = 2 * MINUTE_MS;
const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/** @returns `undefined` for an end that is neither. */
export function limitOf(end: ExternalEnd, now: number): AgentLimit | undefined {
  if (end.type !== "error" && !(end.type === "died" && !end.hasStarted)) return undefined;
  const { message } = end;
  const cause = end.type === "error" ? end.cause : undefined;
  const reason = cause ?? (QUOTA.test(message) ? "quota" : AUTH.test(message) ? "auth_required" : undefined);
  if (reason === undefined) return undefined;
  if (reason === "auth_required") return { reason, message };
  const resetsAt = (end.type === "error" ? end.resetsAt : undefined) ?? resetIn(message, now);
  return { reason, message, ...defined({ resetsAt }) };
}

/** The time of the reset in a text for people, in the forms that Claude Code and Codex use. */
function resetIn(text: string, now: number): number | undefined {
  const epoch = /(?:\||resets?_?at"?:?\s*)(\d{10}|\d{13})\b/i.exec(text)?.[1];
  if (epoch !== undefined) return epochMs(Number(epoch));
  const after =
    /\b(?:in|after) ((?:\d+ ?(?:days?|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s|d)\b[ ,]*(?:and )?)+)/i.exec(
      text,
    )?.[1];
  if (after !== undefined)
    return [...after.matchAll(/(\d+) ?([dhms])/gi)].reduce(
      (sum, [, count, unit]) => sum + Number(count) * UNITS[unit!.toLowerCase()]!,
      now,
    );
  if (/\bin less than a minute\b/i.test(text)) return now + MINUTE_MS;
  const at =
    /\b(?:resets?|try again)(?: at| on)? (?:([a-z]{3})[a-z]* (\d{1,2})(?:st|nd|rd|th)?(?:, (\d{4}))?,? (?:at )?)?(\d{1,2})(?::(\d\d))? ?(am|pm)(?: \(([\w/+-]+)\))?/i.exec(
      text,
    );
  return at === null ? undefined : momentOf(at, now);
}

/** Some programs give seconds, and others milliseconds. */
export function epochMs(number: number): number {
  return number < 1e11 ? number * 1_000 : number;
}

/**
 * The moment at which the clock of a zone shows this time. Without a zone it is that of this machine.
 *
 * The text has minutes alone, and is read somewhat after it was written. A minute that has just begun or
 * ended is therefore meant as it is, and not that of the next day. The limit may last to the end of it.
 */
function momentOf(
  [, month, day, year, hour, minute = "0", half, zone]: RegExpExecArray,
  now: number,
): number | undefined {
  const offset = offsetOf(zone, now);
  const number = month === undefined ? 0 : MONTHS.indexOf(month.toLowerCase());
  if (offset === undefined || number < 0 || Number(hour) > 12 || Number(minute) > 59) return undefined;
  const hours = (Number(hour) % 12) + (half!.toLowerCase() === "pm" ? 12 : 0);
  const here = new Date(now + offset);
  const on = (years: number, months: number, date: number): number =>
    epochOf(Date.UTC(years, months, date, hours, Number(minute)), zone);
  const moments = [-1, 0, 1].map((step) =>
    month === undefined
      ? on(here.getUTCFullYear(), here.getUTCMonth(), here.getUTCDate() + step)
      : on(year === undefined ? here.getUTCFullYear() + step : Number(year), number, Number(day)),
  );
  const moment = moments.find((one) => one + JUST_NOW_MS > now);
  if (moment === undefined || moment > now) return moment;
  return moment + (Math.floor((now - moment) / MINUTE_MS) + 1) * MINUTE_MS;
}

/** @param local a time as UTC. @returns when the clock of the zone shows it: the later moment of two, when it is set back. */
function epochOf(local: number, zone: string | undefined): number {
  const moments = [-DAY_MS, DAY_MS].map((near) => local - offsetOf(zone, local + near)!);
  const shown = moments.filter((moment) => offsetOf(zone, moment) === local - moment);
  return Math.max(...(shown.length === 0 ? moments : shown));
}

/** The time by which a zone's clock is ahead of UTC. @returns `undefined` for a zone that does not exist. */
function offsetOf(zone: string | undefined, now: number): number | undefined {
  try {
    const format = new Intl.DateTimeFormat("en-US", {
      ...defined({ timeZone: zone }),
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
    });
    const parts = Object.fromEntries(
      format.formatToParts(now).map(({ type, value }) => [type, Number(value)]),
    );
    const shown = Date.UTC(parts["year"]!, parts["month"]! - 1, parts["day"], parts["hour"], parts["minute"]);
    return shown - Math.floor(now / MINUTE_MS) * MINUTE_MS;
  } catch {
    return undefined;
  }
}
