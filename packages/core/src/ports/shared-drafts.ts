// `SharedDrafts`: the texts that models are writing, between the processes that share a storage.
//
//   - Nothing is stored. A draft is the whole text so far, or the end of a long one, so the next draft makes up
//     for a lost one.
//   - Only sessions that some process watches have drafts.

/** The most characters of a draft. */
export const DRAFT_CHARS_MAX = 16_000;

export interface Draft {
  /** The task, by its number in the session. */
  readonly task: number;
  readonly text: string;
}

/** A session in which a model writes, and its text where a process watches the session. */
export interface ShownDraft {
  readonly sessionId: string;
  readonly draft?: Draft;
}

export interface NewDrafts {
  readonly drafts: readonly Required<ShownDraft>[];
  /** The `after` of the next call. */
  readonly next: number;
}

export interface SharedDrafts {
  /** @returns the sessions, among these, that some process watches. */
  show(drafts: readonly ShownDraft[]): Promise<readonly string[]>;
  /**
   * Watch sessions for some seconds.
   *
   * @param after the `next` of the call before; 0 for the first one.
   */
  watch(sessionIds: readonly string[], after: number): Promise<NewDrafts>;
}
