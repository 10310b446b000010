// `ConversationTip`: the end of the conversation, as a kernel needs it. It has the last entry, the count, and
// the numbers that are entries.
//
// Storage has the entries themselves. Even the numbers of entries before the checkpoint are not here. They
// are known to be lower than the first number of this kernel.

import { positionIn } from "../ids.ts";

export class ConversationTip {
  readonly #names: readonly string[];
  readonly #baseId: number;
  readonly #ids = new Set<number>();
  #leaf: number | undefined;
  #count: number;

  constructor(life: {
    readonly sessionId: string;
    readonly baseId: number;
    readonly leaf: number | undefined;
    readonly entryCount: number;
    readonly origins?: readonly string[];
  }) {
    this.#names = [life.sessionId, ...(life.origins ?? [])];
    this.#baseId = life.baseId;
    this.#leaf = life.leaf;
    this.#count = life.entryCount;
  }

  /** Number of the last entry. */
  get leaf(): number | undefined {
    return this.#leaf;
  }

  get count(): number {
    return this.#count;
  }

  /** Count an entry that the command of this number appended. Returns its index in the conversation. */
  appended(id: number): number {
    this.#ids.add(id);
    this.#leaf = id;
    return this.#count++;
  }

  /** The number in an entry's id; `undefined` when this session has no such entry. */
  numberOf(entryId: string): number | undefined {
    // Entries from before the checkpoint are not in memory, but storage has them.
    const isKnown = (id: number | undefined): boolean =>
      id !== undefined && (id < this.#baseId || this.#ids.has(id));
    return this.#names.map((name) => positionIn(entryId, name)).find(isKnown);
  }
}
