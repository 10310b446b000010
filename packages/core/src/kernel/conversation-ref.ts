// A conversation as an input of tasks: a reference, resolved to its entries where the task runs.

export class ConversationRef {
  /** How many were ever encoded: tells them from data that looks alike. */
  static encoded = 0;
  readonly leaf: number | undefined;

  constructor(leaf: number | undefined) {
    this.leaf = leaf;
  }

  toJSON(): { readonly $conversation: number | null } {
    ConversationRef.encoded++;
    return { $conversation: this.leaf ?? null };
  }
}
