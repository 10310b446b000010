// `ConversationRef`: a conversation as an input of tasks. The task's executor resolves the reference to the
// entries.

/** A point of a session's conversation, as the input of a task. The task gets the entries up to that point. */
export class ConversationRef {
  readonly leaf: number | undefined;

  constructor(leaf: number | undefined) {
    this.leaf = leaf;
  }

  toJSON(): { readonly $conversation: number | null } {
    return { $conversation: this.leaf ?? null };
  }
}

/**
 * The key of an encoded reference. Quotes inside strings are escaped, so only a key looks like this in JSON
 * text.
 */
const KEY = '"$conversation":';

/** How many references a value holds, and how many keys in its text look like one. */
export function countReferences(
  value: unknown,
  text: string,
): { readonly references: number; readonly keys: number } {
  const keys = text.split(KEY).length - 1;
  let references = 0;
  if (keys > 0)
    JSON.stringify(value, function (this: Readonly<Record<string, unknown>>, key: string, encoded: unknown) {
      if (this[key] instanceof ConversationRef) references++;
      return encoded;
    });
  return { references, keys };
}
