// `DraftBoard`: the drafts of the processes that share a database, in the memory of its owner.
//
//   - A watch lasts some seconds, so a process that has ended watches nothing. Without a watch no draft is kept.
//   - It is bounded: the least recently watched session makes room for another, and the oldest draft of a
//     session for a newer one.

import type { Draft, NewDrafts, SharedDrafts, ShownDraft } from "@holdfast/core";

/** Longer than the pause in which a process that shows drafts asks whether somebody watches. */
const WATCH_MS = 10_000;
const SESSIONS_MAX = 50;
/** The most drafts of a session. */
const DRAFTS_MAX = 8;

interface Watched {
  untilMs: number;
  /** By task, with the number of its change. */
  readonly drafts: Map<number, { readonly draft: Draft; readonly change: number }>;
}

export class DraftBoard implements SharedDrafts {
  readonly #monotonic: () => number;
  readonly #sessions = new Map<string, Watched>();
  #changes = 0;

  constructor(monotonic: () => number = () => performance.now()) {
    this.#monotonic = monotonic;
  }

  async show(drafts: readonly ShownDraft[]): Promise<readonly string[]> {
    this.#forgetUnwatched();
    for (const { sessionId, draft } of drafts) {
      const shown = this.#sessions.get(sessionId)?.drafts;
      if (draft === undefined || shown === undefined) continue;
      shown.delete(draft.task);
      if (shown.size === DRAFTS_MAX) shown.delete(first(shown));
      shown.set(draft.task, { draft, change: ++this.#changes });
    }
    const ids = new Set(drafts.map(({ sessionId }) => sessionId));
    return [...ids].filter((sessionId) => this.#sessions.has(sessionId));
  }

  async watch(sessionIds: readonly string[], after: number): Promise<NewDrafts> {
    this.#forgetUnwatched();
    const drafts = sessionIds.slice(0, SESSIONS_MAX).flatMap((sessionId) => {
      const watched = this.#sessions.get(sessionId) ?? { untilMs: 0, drafts: new Map() };
      watched.untilMs = this.#monotonic() + WATCH_MS;
      this.#sessions.delete(sessionId);
      if (this.#sessions.size === SESSIONS_MAX) this.#sessions.delete(first(this.#sessions));
      this.#sessions.set(sessionId, watched);
      return [...watched.drafts.values()]
        .filter(({ change }) => change > after)
        .map(({ draft }) => ({ sessionId, draft }));
    });
    return { drafts, next: this.#changes };
  }

  #forgetUnwatched(): void {
    const now = this.#monotonic();
    for (const [sessionId, { untilMs }] of this.#sessions)
      if (untilMs < now) this.#sessions.delete(sessionId);
  }
}

function first<K>(map: ReadonlyMap<K, unknown>): K {
  return map.keys().next().value!;
}
