// Where the conversation ends, as a kernel must know it: the last entry, how many there are, and which numbers are entries.
//
// The entries themselves are storage's. Of those before the checkpoint not even the numbers are here: only that they are lower
// than the first of this kernel's life.

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

  /** Number of the entry appended last. */
  get leaf(): number | undefined {
    return this.#leaf;
  }

  get count(): number {
    return this.#count;
  }

  /** An entry was appended by the command of this number. Answers its index in the conversation. */
  appended(id: number): number {
    this.#ids.add(id);
    this.#leaf = id;
    return this.#count++;
  }

  /** The number in an entry's id; `undefined` when it is no entry of this session. */
  numberOf(entryId: string): number | undefined {
    // Those of before the checkpoint are not in memory: storage knows them.
    const isKnown = (id: number | undefined): boolean =>
      id !== undefined && (id < this.#baseId || this.#ids.has(id));
    return this.#names.map((name) => positionIn(entryId, name)).find(isKnown);
  }
}
