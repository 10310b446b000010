// `nextAuditRow`, `verifyAudit`: the chain of hashes that reveals a changed or removed audit row. Each row's
// hash covers the hash of the row before it.
//
//   - A row's text has its fields in one order, however its storage orders them.
//   - Rows that were cut off at the end are noticed only by an operator who kept the last hash elsewhere.

import type { Audit, AuditRow } from "./audit.ts";
import type { Hash } from "../hash.ts";

/** The point where a chain continues: the last row, or its known part. */
export type AuditLink = Pick<AuditRow, "seq" | "hash">;

/** Before the first row. */
export const AUDIT_START: AuditLink = { seq: 0, hash: "" };

/** Whether rows of an audit are as they were written. */
export type AuditVerdict =
  | { readonly status: "intact"; readonly last: AuditLink }
  /** The first row that differs from the row that was written there. */
  | { readonly status: "broken"; readonly seq: number; readonly got: string; readonly expected: string };

/** Why some storage could not keep this audit to the byte, or `undefined`. */
export function findAuditProblem(audit: Audit): string | undefined {
  const wrong = Object.entries(audit).find(
    ([, text]: [string, string]) => !text.isWellFormed() || text.includes("\0"),
  );
  return wrong && `the ${wrong[0]} of an audit row has a NUL or a lone surrogate`;
}

/** The row that follows `last`. */
export function nextAuditRow(
  last: AuditLink,
  { actor, action, object, requestId, details }: Audit,
  { outcome, at, hash }: { readonly outcome: string; readonly at: number; readonly hash: Hash },
): AuditRow {
  const row = {
    seq: last.seq + 1,
    at,
    actor,
    action,
    object,
    ...(requestId === undefined ? {} : { requestId }),
    ...(details === undefined ? {} : { details }),
    outcome,
  };
  return { ...row, hash: hash(chained(last, row)) };
}

/** Whether rows, read in their order, continue the chain from `from`. */
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

function chained(last: AuditLink, row: Omit<AuditRow, "hash">): string {
  const { seq, at, actor, action, object, requestId, details, outcome } = row;
  // mutant: audit-chain-cut
  return `${last.hash}\n${JSON.stringify({ seq, at, actor, action, object, requestId, details, outcome })}`;
}
