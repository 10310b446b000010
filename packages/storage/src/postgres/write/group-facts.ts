// What a group has to know, and how it says that it does not know it yet.

import type { JournalRecord } from "@holdfast/core";
import type { Head } from "../tables/heads.ts";
import type { Item } from "../tables/items.ts";

/** What must be found out before the group can be worked out. */
export type Wanted =
  | { readonly type: "head"; readonly sessionId: string }
  | { readonly type: "landing"; readonly flight: Promise<unknown> }
  | { readonly type: "children"; readonly head: Head }
  | { readonly type: "waiting"; readonly sessionId: string }
  | { readonly type: "exhausted"; readonly payer: string }
  | { readonly type: "journal"; readonly head: Head; readonly from: number; readonly to: number }
  | { readonly type: "seen"; readonly head: Head; readonly mark: string }
  | { readonly type: "item"; readonly kind: string; readonly key: string };

export class Need extends Error {
  override readonly name = "Need";
  readonly wanted: Wanted;

  constructor(wanted: Wanted) {
    super(`a group needs to know of a ${wanted.type}`);
    this.wanted = wanted;
  }
}

/** What was found out for one group. Good for one try. */
export class Facts {
  isCareful = false;
  /** Those that were read for it: a family may be larger than what is kept at hand. */
  readonly heads = new Map<string, Head>();
  readonly absent = new Set<string>();
  /** Sessions whose rows are not what was written, with the error that says so. */
  readonly damaged = new Map<string, Error>();
  readonly journals = new Map<string, readonly JournalRecord[]>();
  readonly seen = new Map<string, boolean>();
  /** Whoever names a session as the parent that is not there yet. */
  readonly waiting = new Map<string, readonly string[]>();
  readonly exhausted = new Map<string, readonly string[]>();
  readonly items = new Map<string, Item | undefined>();

  /** Somebody else was faster: nothing of it holds any more. */
  reset(): void {
    this.isCareful = true;
    const { heads, absent, damaged, journals, seen, waiting, exhausted, items } = this;
    for (const known of [heads, absent, damaged, journals, seen, waiting, exhausted, items]) known.clear();
  }
}

export const keyOf = (...parts: readonly (string | number)[]): string => parts.join("\u0000");
