// A request of a person or a parent as the text that the model reads (`requestText`), and its way to the
// model (`Delivery`).

/** A request as the text that the model reads: a text itself, `{ text }`, or JSON. */
export function requestText(input: unknown): string {
  if (typeof input === "string") return input;
  const { text, prompt } = (input ?? {}) as { readonly text?: unknown; readonly prompt?: unknown };
  if (typeof text === "string") return text;
  if (typeof prompt === "string") return prompt;
  return JSON.stringify(input ?? "", null, 2);
}

/** `steer`: the message reached the model in the middle of its work. `queue`: it waited for the end of that work. */
export type Delivery = "steer" | "queue";

/** Content of an entry of a message that was sent during the work on another one. */
export interface DeliveredMessage {
  readonly text: string;
  readonly delivery: Delivery;
}

/** Whether the sender of a request wanted it to wait for the end of the work. */
export function isQueued(payload: unknown): boolean {
  return (payload as { readonly delivery?: unknown } | null | undefined)?.delivery === "queue";
}
