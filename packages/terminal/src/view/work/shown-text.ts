// `ShownText`: the text of an entry that was shown before its tokens came. The entry is read from the journal
// with the report of the agent, and its tokens come from the running task a moment later.

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
