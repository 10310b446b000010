// `nextAuditRow`, `verifyAudit`, `AuditWalk`: the chain of hashes that reveals a changed or removed audit row. Each row's
// hash covers the hash of the row before it.
//
//   - A row's text has its fields in one order, however its storage orders them.
//   - Old rows may be removed from the beginning (ST59). The row that records it has the link to the first row
//     that is left. `AuditWalk` meets that row later, and checks the first one then. The same holds for rows
//     that are removed while it reads.
//   - Rows that were cut off at the end are noticed only by an operator who kept the last hash elsewhere.

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
/** The most gaps that wait for the row that explains them. */
const GAPS_MAX = 100;

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
    if (broken !== undefined) return walk.end()[0] ?? broken;
  }
  return walk.end()[0] ?? { status: "intact", last: walk.last };
}

/** Checks the rows of an audit one after the other, and goes on behind a broken one. */
export class AuditWalk {
  readonly #hash: Hash;
  #last: AuditLink | undefined;
  /** Rows behind a gap, until the row that links to them: old rows may be removed while others are read. */
  #unlinked: readonly Unlinked[] = [];

  constructor(hash: Hash, from?: AuditLink) {
    this.#hash = hash;
    this.#last = from;
  }

  get last(): AuditLink {
    const { seq, hash } = this.#last ?? AUDIT_START;
    return { seq, hash };
  }

  add(row: AuditRow): BrokenAudit | undefined {
    const { last } = this;
    this.#last = row;
    if (row.seq > last.seq + 1 && this.#unlinked.length < GAPS_MAX) {
      this.#unlinked = [...this.#unlinked, { row, last }];
      return undefined;
    }
    return this.#compare(last, row) ?? this.#linkGap(row);
  }

  /** To be called behind the last row: the gaps that no row explains. */
  end(): readonly BrokenAudit[] {
    const gaps = this.#unlinked.map(({ row, last }) => gapBefore(row, last));
    this.#unlinked = [];
    return gaps;
  }

  #linkGap({ action, details }: AuditRow): BrokenAudit | undefined {
    if (action !== TRIM || details === undefined || this.#unlinked.length === 0) return undefined;
    const { last } = decodeJson(details) as { readonly last: AuditLink };
    const linked = this.#unlinked.find(({ row }) => row.seq === last.seq + 1);
    if (linked === undefined) return undefined; // An older removal.
    this.#unlinked = this.#unlinked.filter((gap) => gap !== linked);
    return this.#compare(last, linked.row);
  }

  #compare(last: AuditLink, row: AuditRow): BrokenAudit | undefined {
    const { seq } = row;
    if (seq !== last.seq + 1) return gapBefore(row, last);
    const expected = this.#hash(chained(last, row));
    return row.hash === expected ? undefined : { status: "broken", seq, got: row.hash, expected };
  }
}

interface Unlinked {
  readonly row: AuditRow;
  /** The row before the gap. */
  readonly last: AuditLink;
}

function gapBefore({ seq }: AuditRow, last: AuditLink): BrokenAudit {
  return { status: "broken", seq, got: `row ${seq}`, expected: `row ${last.seq + 1}` };
}

function chained(last: AuditLink, row: Omit<AuditRow, "hash">): string {
  const { seq, at, actor, action, object, requestId, details, outcome } = row;
  // mutant: audit-chain-cut
  return `${last.hash}\n${JSON.stringify({ seq, at, actor, action, object, requestId, details, outcome })}`;
}
