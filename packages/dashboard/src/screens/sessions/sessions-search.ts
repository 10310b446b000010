// `SessionsSearch`: the filters of the sessions, as the address has them and as the server is asked for them.

import type { ListQuery } from "../../api/session-list.ts";
import { MICRO } from "../../parts/text.ts";

export interface SessionsSearch {
  readonly status?: string;
  readonly agent?: string;
  readonly owner?: string;
  /** A demand of the session: `name` or `name=value`. */
  readonly label?: string;
  readonly text?: string;
  /** The first and the last day of its end, as `2026-11-27`. */
  readonly endedFrom?: string;
  readonly endedTo?: string;
  /** The least that it has spent, in dollars. */
  readonly cost?: string;
}

const FILTERS = ["status", "agent", "owner", "label", "text", "endedFrom", "endedTo", "cost"] as const;

export function readSessionsSearch(search: Readonly<Record<string, unknown>>): SessionsSearch {
  return Object.fromEntries(
    FILTERS.flatMap((name) => {
      const value = search[name];
      const text = typeof value === "number" ? String(value) : value;
      return typeof text === "string" && text !== "" ? [[name, text.slice(0, 200)]] : [];
    }),
  );
}

const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** The request for the filters in the address. A filter that cannot be read is none. */
export function queryOf(search: SessionsSearch): ListQuery {
  const { status, agent, owner, label, text, endedFrom, endedTo, cost } = search;
  const micro = Math.round(Number(cost) * MICRO);
  return Object.fromEntries(
    Object.entries({
      status,
      agent,
      owner,
      label,
      text,
      endedFrom: dayBegin(endedFrom, 0),
      endedBefore: dayBegin(endedTo, 1),
      costFromMicroUsd:
        cost !== undefined && Number.isSafeInteger(micro) && micro >= 0 ? String(micro) : undefined,
    }).filter(([, value]) => value !== undefined),
  );
}

/** The begin of a day of this browser's time zone, some days later. */
function dayBegin(day: string | undefined, daysLater: number): string | undefined {
  if (day === undefined || !DAY.test(day)) return undefined;
  const [year = 0, month = 1, date = 1] = day.split("-").map(Number);
  return String(Math.max(0, new Date(year, month - 1, date + daysLater).getTime()));
}
