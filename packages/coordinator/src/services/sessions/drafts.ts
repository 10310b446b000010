// `Drafts` passes the texts that models are writing to the readers of their sessions at this coordinator.
//
//   - It keeps no text. A reader that comes later gets the next one, which is whole.
//   - A reader that does not take them keeps the newest text of a few tasks in memory.

/** The most tasks whose texts wait for a reader. More tasks seldom write at once, and the next texts follow soon. */
const TASKS_MAX = 8;

export interface Draft {
  /** The task, by its number in the session. */
  readonly task: bigint;
  readonly text: string;
}

export interface DraftReader {
  /** The newest text of each task since the last call. */
  take(): readonly Draft[];
  end(): void;
}

export class Drafts {
  readonly #readers = new Map<string, Set<(draft: Draft) => void>>();
  /** Called when a reader came. Must not throw. */
  onRead: () => void = () => undefined;

  /** @param onDraft called when there is something to take. Must not throw. */
  read(sessionId: string, onDraft: () => void): DraftReader {
    const waiting = new Map<bigint, Draft>();
    const receive = (draft: Draft): void => {
      if (waiting.size < TASKS_MAX || waiting.has(draft.task)) waiting.set(draft.task, draft);
      onDraft();
    };
    const readers = this.#readers.get(sessionId) ?? new Set();
    this.#readers.set(sessionId, readers);
    readers.add(receive);
    this.onRead();
    return {
      take: () => {
        const taken = [...waiting.values()];
        waiting.clear();
        return taken;
      },
      end: () => {
        readers.delete(receive);
        if (readers.size === 0 && this.#readers.get(sessionId) === readers) this.#readers.delete(sessionId);
      },
    };
  }

  /** The sessions that have a reader. */
  watched(): readonly string[] {
    return [...this.#readers.keys()];
  }

  isWatched(sessionId: string): boolean {
    return this.#readers.has(sessionId);
  }

  show(sessionId: string, draft: Draft): void {
    for (const receive of this.#readers.get(sessionId) ?? []) receive(draft);
  }
}
