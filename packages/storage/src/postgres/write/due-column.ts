// The column `due_at` of a session's state: when the session is due, from when it is ready and from its claim.

import type { Head } from "../tables/heads.ts";

export function isForEver({ claim }: Head): boolean {
  return claim.owner !== undefined && claim.until === Infinity;
}

/** As `DUE_AT` works it out for rows that are there. */
export function dueColumn(readyAt: number | null, head: Head): number | null {
  if (readyAt === null || isForEver(head)) return null;
  return head.claim.owner === undefined ? readyAt : Math.max(readyAt, head.claim.until);
}

/** When a session is due, from when it is ready and the row's own claim: a renewal writes neither version nor body. */
export function dueAtSql(readyAt: string, row: string): string {
  return `CASE WHEN ${readyAt} IS NULL THEN NULL WHEN ${row}.holder IS NULL THEN ${readyAt}
    WHEN ${row}.until = 'Infinity' THEN NULL ELSE greatest(${readyAt}, ${row}.until) END`;
}
