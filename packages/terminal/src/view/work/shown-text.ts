// `ShownText`: the text of an entry that was shown before its tokens came. The entry is read from the journal
// with the report of the agent, and its tokens come from the running task a moment later.
//
// `ShownDraft`: the tokens that were shown before their entry came, where a part of them may be missing.

export class ShownText {
  /** The part of the entry whose tokens have not come. */
  #left = "";
  /** Tokens that were taken for those of the entry. */
  #taken = "";

  /** An entry was shown whole. */
  entry(text: string): void {
    [this.#left, this.#taken] = [text, ""];
  }

  /** @returns the text that a token has still to show. It may begin with tokens that came before. */
  token(text: string): string {
    if (this.#left === "") return text;
    if (this.#left.startsWith(text)) {
      [this.#left, this.#taken] = [this.#left.slice(text.length), this.#taken + text];
      return "";
    }
    const unshown = this.#taken + text; // It is another text, which began like the entry.
    [this.#left, this.#taken] = ["", ""];
    return unshown;
  }
}

/** New text of a task that another process runs. */
export interface DraftPiece {
  readonly taskId: string;
  /** The task's name, where it is known. */
  readonly kind?: string;
  readonly text: string;
  /** The task has begun another text, or a part between was left out. */
  readonly isAnother: boolean;
}

/** The draft that a view shows: a text of one task, whose end may come with its entry alone. */
export class ShownDraft {
  #taskId = "";
  #text = "";
  /** How many took the place of another one. */
  #begun = 0;

  /** @param shown the part of the piece that is shown. @returns the id of the text, as a stream of tokens. */
  add({ taskId, isAnother }: DraftPiece, shown: string): string {
    if (isAnother) this.#begun++;
    this.#text = this.#taskId === taskId && !isAnother ? this.#text + shown : shown;
    this.#taskId = taskId;
    return `${taskId} draft ${this.#begun}`;
  }

  /** @returns the part of an entry's text that is not shown yet: its end, or all where parts of it were left out. */
  takeRest(text: string): { readonly type: "end" | "all"; readonly text: string } {
    const shown = this.#text;
    this.#text = "";
    if (shown === "" || text.trim() === shown.trim()) return { type: "end", text: "" };
    return text.startsWith(shown) ? { type: "end", text: text.slice(shown.length) } : { type: "all", text };
  }
}
