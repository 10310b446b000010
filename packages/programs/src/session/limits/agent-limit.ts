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
  const at =
    /\b(?:resets?|try again)(?: at| on)? (?:([a-z]{3})[a-z]* (\d{1,2})(?:st|nd|rd|th)?(?:, \d{4})?,? (?:at )?)?(\d{1,2})(?::(\d\d))? ?(am|pm)(?: \(([\w/+-]+)\))?/i.exec(
      text,
    );
  return at === null ? undefined : momentOf(at, now);
}

/** Some programs give seconds, and others milliseconds. */
export function epochMs(number: number): number {
  return number < 1e11 ? number * 1_000 : number;
}

/** The next moment at which the clock of a zone shows this time. Without a zone it is that of this machine. */
function momentOf(
  [, month, day, hour, minute = "0", half, zone]: RegExpExecArray,
  now: number,
): number | undefined {
  const hours = (Number(hour) % 12) + (half!.toLowerCase() === "pm" ? 12 : 0);
  const offset = offsetOf(zone, now);
  if (offset === undefined || hours > 23 || Number(minute) > 59) return undefined;
  const local = new Date(now + offset);
  if (month === undefined) {
    const today = Date.UTC(
      local.getUTCFullYear(),
      local.getUTCMonth(),
      local.getUTCDate(),
      hours,
      Number(minute),
    );
    const moment = today - offset;
    return moment > now ? moment : moment + DAY_MS;
  }
  const number = MONTHS.indexOf(month.toLowerCase());
  if (number < 0) return undefined;
  const inYear = (year: number): number =>
    Date.UTC(year, number, Number(day), hours, Number(minute)) - offset;
  const moment = inYear(local.getUTCFullYear());
  return moment > now ? moment : inYear(local.getUTCFullYear() + 1);
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
