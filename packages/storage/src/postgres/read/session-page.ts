// `pageOf`, `countsOf`: a page of sessions, newest or oldest first, by any combination of filters, and the number of
// sessions of each status.
//
//   session-page-1. An index finds a page. A single filter reads as many rows as the page has. Several
//       filters walk the index of one of them.
//   session-page-2. Plans are made once for all values, perhaps over empty tables (postgres-database-3), so
//       no estimate may decide this. The leading filter is therefore a range of one value, and leads the
//       order as well: only its own index gives that order. An equality would be dropped from the order, and
//       the index of all sessions would do. Without a filter the range is that of all times. The planner
//       expects few rows in a range of unknown ends, and walks it first.
//   - A cursor is compared with the columns that order the page, which are those of an index.

import { SESSION_STATUSES, type StorageReader } from "@holdfast/core";
import type { Statement } from "../database/database.ts";
import { FROM_SESSION, SESSION_COLUMNS } from "../tables/rows.ts";

type SessionQuery = Parameters<StorageReader["sessions"]>[0];
type CountsQuery = Parameters<StorageReader["counts"]>[0];
type Filter = Exclude<keyof SessionQuery, "limit" | "before" | "oldestFirst">;

/** The first of these that a query has leads: filters with the fewest sessions for each value come first. */
const FILTERS: readonly (readonly [Filter, column: string])[] = [
  ["parent", "s.parent"],
  ["owner", "s.owner"],
  ["agent", "s.agent"],
  ["status", "t.status"],
];

type Asked = readonly [Statement, readonly unknown[]];

/** Each combination of filters is a statement of its own. */
export function pageOf(query: SessionQuery): Asked {
  return selected(query, "", SESSION_COLUMNS);
}

/** The sessions of each status, as the port says. Without a filter a limit of each, by the index of statuses. */
export function countsOf(query: CountsQuery): Asked {
  const { limit, owner, agent, parent } = query;
  if (owner === undefined && agent === undefined && parent === undefined)
    return [COUNTS, [limit, SESSION_STATUSES]];
  const [page, values] = selected(query, "counts_", "t.status");
  return [
    { ...page, text: `SELECT status, count(*)::int4 AS sessions FROM (${page.text}) page GROUP BY status` },
    values,
  ];
}

const COUNTS: Statement = {
  name: "counts",
  text: `SELECT v.status, (SELECT count(*)::int4 FROM (SELECT 1 FROM state t
      WHERE t.status >= v.status AND t.status <= v.status
      ORDER BY t.status DESC, t.born DESC, t.session_id DESC LIMIT $1) page) AS sessions
    FROM unnest($2::text[]) AS v (status)`,
};

function selected(query: SessionQuery, prefix: string, columns: string): Asked {
  const { limit, before, oldestFirst = false } = query;
  const values: unknown[] = [limit];
  const mark = (value: unknown): string => `$${values.push(value)}`;
  const asked = FILTERS.filter(([filter]) => query[filter] !== undefined);
  const [leading] = asked;
  const row = leading?.[0] === "status" ? "t" : "s";
  const order = [...(leading === undefined ? [] : [leading[1]]), `${row}.born`, `${row}.session_id`];
  const conditions = asked.map(([filter, column]) => {
    const value = mark(query[filter]);
    // The others are expressions, so that no index of theirs is walked, and its rows sorted.
    return column === leading?.[1]
      ? `${column} >= ${value} AND ${column} <= ${value}`
      : `${column} || '' = ${value}`;
  });
  if (before !== undefined) {
    const id = mark(before);
    const born = `(SELECT ${row}.born ${FROM_SESSION} WHERE s.session_id = ${id})`;
    conditions.push(
      `(${row}.born, ${row}.session_id) ${oldestFirst ? ">" : "<"} (${born}, ${id}::text COLLATE "C")`,
    );
  }
  if (leading === undefined)
    conditions.push(`s.born >= ${mark(0)} AND s.born <= ${mark(Number.MAX_SAFE_INTEGER)}`);
  const by = order.map((column) => `${column} ${oldestFirst ? "ASC" : "DESC"}`).join(", ");
  const names = asked.map(([filter]) => filter);
  return [
    {
      name:
        prefix +
        [oldestFirst ? "oldest" : "page", ...names, ...(before === undefined ? [] : ["before"])].join("_"),
      text: `SELECT ${columns} ${FROM_SESSION} WHERE ${conditions.join(" AND ")} ORDER BY ${by} LIMIT $1`,
    },
    values,
  ];
}
