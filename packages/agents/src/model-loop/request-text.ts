// A request of a person or a parent as the text that the model reads (`requestText`).

/** A request as the text that the model reads: a text itself, `{ text }`, or JSON. */
export function requestText(input: unknown): string {
  if (typeof input === "string") return input;
  const { text, prompt } = (input ?? {}) as { readonly text?: unknown; readonly prompt?: unknown };
  if (typeof text === "string") return text;
  if (typeof prompt === "string") return prompt;
  return JSON.stringify(input ?? "", null, 2);
}
