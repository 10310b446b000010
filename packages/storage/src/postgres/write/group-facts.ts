// `Facts` holds the database rows from which the writes of one group of changes are computed. `Need` asks for
// a row that is missing.
//
// The computation is synchronous. When it meets a row that was not read yet, it throws a `Need`. The caller
// reads the row into the facts and computes the group again from the beginning, until no row is missing.

import type { AuditRow, JournalRecord } from "@holdfast/core";
import type { Head } from "../tables/heads.ts";
import type { Item } from "../tables/items.ts";

/** A row, or a group of rows, that must be read before the group can be computed. */
export type Wanted =
  | { readonly type: "head"; readonly sessionId: string }
  | { readonly type: "landing"; readonly flight: Promise<unknown> }
  | { readonly type: "children"; readonly head: Head }
  | { readonly type: "exhausted"; readonly payer: string; readonly version: number }
  | { readonly type: "journal"; readonly head: Head; readonly from: number; readonly to: number }
  | { readonly type: "seen"; readonly head: Head; readonly mark: string }
  | { readonly type: "oldest_audit"; readonly limit: number }
  | { readonly type: "item"; readonly kind: string; readonly key: string };

/** Thrown by the computation of a group, and caught by the caller that reads rows. Nobody else sees it. */
export class Need extends Error {
  override readonly name = "Need";
  readonly wanted: Wanted;

  constructor(wanted: Wanted) {
    super(`a group needs to know of a ${wanted.type}`);
    this.wanted = wanted;
  }
}

/** The facts of one group, good for one try. */
export class Facts {
  isCareful = false;
  /** The heads that were read for the group: a session tree may be larger than the cache. */
  readonly heads = new Map<string, Head>();
  readonly absent = new Set<string>();
  /** Sessions with damaged rows, with the error that says so. */
  readonly damaged = new Map<string, Error>();
  readonly journals = new Map<string, readonly JournalRecord[]>();
  readonly seen = new Map<string, boolean>();
  /** Sessions that are paused for an exhausted account, by the payer and its version (working-set-6). */
  readonly exhausted = new Map<string, readonly string[]>();
  readonly items = new Map<string, Item | undefined>();
  /** The oldest rows of the audit, by how many were asked for. */
  readonly oldestAudit = new Map<number, readonly AuditRow[]>();

  /** Another process was faster: all facts may be out of date. */
  reset(): void {
    this.isCareful = true;
    const { heads, absent, damaged, journals, seen, exhausted, items, oldestAudit } = this;
    for (const known of [heads, absent, damaged, journals, seen, exhausted, items, oldestAudit])
      known.clear();
  }
}

export const keyOf = (...parts: readonly (string | number)[]): string => parts.join("\u0000");
