// The chain that makes a change of an audit row, or its removal, show: each row's hash holds the one before it.
//
//   audit-chain-1. A row's text has its fields in one order, whoever stored it and in whatever order it keeps them.
//   audit-chain-2. Rows that are cut off at the end are missed by nobody who has not kept the last hash: an operator
//       keeps it elsewhere.

import type { Audit, AuditRow } from "./audit.ts";
import type { Hash } from "../hash.ts";

/** Where a chain is continued: the last row, or what is known of it. */
export type AuditLink = Pick<AuditRow, "seq" | "hash">;

/** Before the first row. */
export const AUDIT_START: AuditLink = { seq: 0, hash: "" };

export type AuditVerdict =
  | { readonly status: "intact"; readonly last: AuditLink }
  /** The first row that is not what was written behind the ones before it. */
  | { readonly status: "broken"; readonly seq: number; readonly got: string; readonly expected: string };

/** What could not be kept to the byte by every storage, or `undefined`. */
export function findAuditProblem(audit: Audit): string | undefined {
  const wrong = Object.entries(audit).find(
    ([, text]: [string, string]) => !text.isWellFormed() || text.includes("\0"),
  );
  return wrong && `the ${wrong[0]} of an audit row has a NUL or a lone surrogate`;
}

/** The row that follows `last`. */
export function nextAuditRow(
  last: AuditLink,
  { actor, action, object, requestId }: Audit,
  { outcome, at, hash }: { readonly outcome: string; readonly at: number; readonly hash: Hash },
): AuditRow {
  const row = {
    seq: last.seq + 1,
    at,
    actor,
    action,
    object,
    ...(requestId === undefined ? {} : { requestId }),
    outcome,
  };
  return { ...row, hash: hash(chained(last, row)) };
}

/** Whether rows, read in their order, are a chain behind `from`. */
export function verifyAudit(
  rows: readonly AuditRow[],
  hash: Hash,
  from: AuditLink = AUDIT_START,
): AuditVerdict {
  let last = from;
  for (const row of rows) {
    if (row.seq !== last.seq + 1)
      return { status: "broken", seq: row.seq, got: `row ${row.seq}`, expected: `row ${last.seq + 1}` };
    const expected = hash(chained(last, row));
    if (row.hash !== expected) return { status: "broken", seq: row.seq, got: row.hash, expected };
    last = row;
  }
  return { status: "intact", last: { seq: last.seq, hash: last.hash } };
}

/** audit-chain-1. */
function chained(last: AuditLink, row: Omit<AuditRow, "hash">): string {
  const { seq, at, actor, action, object, requestId, outcome } = row;
  return `${last.hash}\n${JSON.stringify({ seq, at, actor, action, object, requestId, outcome })}`;
}
