// `nextAuditRow`, `verifyAudit`, `AuditWalk`: the chain of hashes that reveals a changed or removed audit row. Each row's
// hash covers the hash of the row before it.
//
//   - A row's text has its fields in one order, however its storage orders them.
//   - Old rows may be removed from the beginning (ST59). The row that records it has the link to the first row
//     that is left. `AuditWalk` meets that row later, and checks the first one then.
//   - Rows that were cut off at the end are noticed only by an operator who kept the last hash elsewhere.

import { defined } from "../../defined.ts";
import type { Audit, AuditRow } from "./audit.ts";
import type { Hash } from "../../hash.ts";
import { decodeJson } from "../../json/json.ts";

/** The point where a chain continues: the last row, or its known part. */
export type AuditLink = Pick<AuditRow, "seq" | "hash">;

/** Before the first row. */
export const AUDIT_START: AuditLink = { seq: 0, hash: "" };

/** Whether rows of an audit are as they were written. */
export type AuditVerdict = { readonly status: "intact"; readonly last: AuditLink } | BrokenAudit;

/** The first row that differs from the row that was written there. */
interface BrokenAudit {
  readonly status: "broken";
  readonly seq: number;
  readonly got: string;
  readonly expected: string;
}

const TRIM = "audit.trim";

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
    ...defined({ requestId, details }),
    outcome,
  };
  return { ...row, hash: hash(chained(last, row)) };
}

/** ST59. The rows that go: from the oldest on, as far as they are older than a time, and never the newest. */
export function trimmable(
  oldest: readonly AuditRow[],
  newest: AuditLink,
  before: number,
): readonly AuditRow[] {
  const kept = oldest.findIndex(({ at, seq }) => at >= before || seq >= newest.seq);
  return kept < 0 ? oldest : oldest.slice(0, kept);
}

/** ST59. The row about a removal, which links to the last removed row. */
export function trimAuditOf(actor: string, rows: number, { seq, hash }: AuditLink): Audit {
  return { actor, action: TRIM, object: "audit", details: JSON.stringify({ rows, last: { seq, hash } }) };
}

/**
 * Whether rows, read in their order, continue the chain from `from`. Without it they are all rows of an audit,
 * of which old ones may have been removed (ST59).
 */
export function verifyAudit(rows: readonly AuditRow[], hash: Hash, from?: AuditLink): AuditVerdict {
  const walk = new AuditWalk(hash, from);
  for (const row of rows) {
    const broken = walk.add(row);
    if (broken !== undefined) return broken;
  }
  return walk.end() ?? { status: "intact", last: walk.last };
}

/** Checks the rows of an audit one after the other, and goes on behind a broken one. */
export class AuditWalk {
  readonly #hash: Hash;
  #last: AuditLink | undefined;
  /** The first row, until the row that links to it. */
  #unlinked: AuditRow | undefined;

  constructor(hash: Hash, from?: AuditLink) {
    this.#hash = hash;
    this.#last = from;
  }

  get last(): AuditLink {
    const { seq, hash } = this.#last ?? AUDIT_START;
    return { seq, hash };
  }

  add(row: AuditRow): BrokenAudit | undefined {
    const isFirst = this.#last === undefined;
    const { last } = this;
    this.#last = row;
    if (isFirst && row.seq > 1) {
      this.#unlinked = row;
      return undefined;
    }
    const broken = this.#compare(last, row);
    if (broken !== undefined) return this.end() ?? broken;
    return this.#linkFirst(row);
  }

  /** To be called behind the last row. */
  end(): BrokenAudit | undefined {
    const first = this.#unlinked;
    this.#unlinked = undefined;
    return first && { status: "broken", seq: first.seq, got: `row ${first.seq}`, expected: "row 1" };
  }

  #linkFirst({ action, details }: AuditRow): BrokenAudit | undefined {
    const first = this.#unlinked;
    if (first === undefined || action !== TRIM || details === undefined) return undefined;
    const { last } = decodeJson(details) as { readonly last: AuditLink };
    if (last.seq !== first.seq - 1) return undefined; // An older removal.
    this.#unlinked = undefined;
    return this.#compare(last, first);
  }

  #compare(last: AuditLink, row: AuditRow): BrokenAudit | undefined {
    const { seq } = row;
    if (seq !== last.seq + 1)
      return { status: "broken", seq, got: `row ${seq}`, expected: `row ${last.seq + 1}` };
    const expected = this.#hash(chained(last, row));
    return row.hash === expected ? undefined : { status: "broken", seq, got: row.hash, expected };
  }
}

function chained(last: AuditLink, row: Omit<AuditRow, "hash">): string {
  const { seq, at, actor, action, object, requestId, details, outcome } = row;
  // mutant: audit-chain-cut
  return `${last.hash}\n${JSON.stringify({ seq, at, actor, action, object, requestId, details, outcome })}`;
}
