// `Outbox`: the messages of a person to one session, from the moment they are sent until the agent has taken
// them.
//
//   - A message has one key and one name of its signal from its first sending on, over every retry. The
//     server stores it once, however often its answer is lost. An unchanged text that is sent again from the
//     box is the same message.
//   - Messages are sent one after another, in the order in which they were written.
//   - A message without an answer is sent again until there is one. A refused message waits for the person,
//     and so do the messages behind it.
//   - A message is kept with the tab until it is known to be stored. After a reload it waits for the person:
//     nothing is sent without a press.

import { ApiError, call, toError } from "./client.ts";
import { readDraft, writeDraft } from "./drafts.ts";

/** A message, and what became of it. */
export interface OutboxMessage {
  readonly key: string;
  /** The name of the signal that carries it. */
  readonly name: string;
  readonly text: string;
  /**
   * `waiting` behind an earlier one, `sending`, `unsent` until the person decides, `taken_back` into the box,
   * or `stored` by the server.
   */
  readonly state: "waiting" | "sending" | "unsent" | "taken_back" | "stored";
  /** The id of its signal, once it is stored: records of the journal name it. */
  readonly signalId?: string;
  /** Why it is not known to be stored. */
  readonly error?: Error;
}

const RETRY_MS = 1_000;
const RETRY_MAX_MS = 15_000;
/** Stored messages that are kept to be shown. */
const STORED_MAX = 20;

export class Outbox {
  readonly #path: string;
  readonly #draft: string;
  readonly #call: typeof call;
  readonly #listeners = new Set<() => void>();
  #isSending = false;
  messages: readonly OutboxMessage[];

  /** @param request asks the server. */
  constructor(sessionId: string, request: typeof call = call) {
    this.#path = `/v1/sessions/${encodeURIComponent(sessionId)}/signals`;
    this.#draft = `messages to ${sessionId}`;
    this.#call = request;
    this.messages = readMessages(this.#draft);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** @param name the signal for a text that was not sent before. */
  send(text: string, name: string): void {
    const before = this.messages.find((each) => each.state === "taken_back" && each.text === text);
    const message: OutboxMessage = {
      // The server stores a message once, however often its answer is lost.
      key: before?.key ?? crypto.randomUUID(),
      name: before?.name ?? name,
      text,
      state: "waiting",
    };
    this.#set([...this.messages.filter(({ state }) => state !== "taken_back"), message]);
    void this.#sendAll();
  }

  /** Sends a message again that waits for the person. */
  sendAgain(key: string): void {
    this.#change(key, { state: "waiting" });
    void this.#sendAll();
  }

  /**
   * @returns the text of a message that is not known to be stored, for the box. Its key counts until another
   *   text is sent.
   */
  takeBack(key: string): string {
    const text = this.messages.find((each) => each.key === key)?.text ?? "";
    this.#change(key, { state: "taken_back" });
    void this.#sendAll();
    return text;
  }

  async #sendAll(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    for (let retryMs = RETRY_MS; ;) {
      const next = this.messages.find(({ state }) => state !== "stored" && state !== "taken_back");
      if (next === undefined || next.state === "unsent") break;
      if (next.state === "waiting") this.#change(next.key, { state: "sending" });
      try {
        const { key, name, text } = next;
        const body = { name, payload: text, dedupKey: key };
        const { signalId } = await this.#call<{ readonly signalId: string }>("POST", this.#path, body);
        retryMs = RETRY_MS;
        // A text that was taken back meanwhile keeps its key until another one is sent.
        if (this.#stateOf(next.key) === "sending") this.#change(next.key, { state: "stored", signalId });
      } catch (thrown) {
        const error = toError(thrown);
        const isLost = !(error instanceof ApiError) || error.status >= 500 || error.status === 429;
        if (this.#stateOf(next.key) === "sending")
          this.#change(next.key, { state: isLost ? "sending" : "unsent", error });
        if (!isLost) continue;
        await new Promise((resolve) => setTimeout(resolve, retryMs));
        retryMs = Math.min(RETRY_MAX_MS, 2 * retryMs);
      }
    }
    this.#isSending = false;
  }

  #stateOf(key: string): OutboxMessage["state"] | undefined {
    return this.messages.find((each) => each.key === key)?.state;
  }

  #change(key: string, change: Partial<OutboxMessage>): void {
    this.#set(
      this.messages.map((each) => {
        if (each.key !== key) return each;
        const { error: _, ...message } = each;
        return { ...message, ...change };
      }),
    );
  }

  #set(messages: readonly OutboxMessage[]): void {
    const stored = messages.filter(({ state }) => state === "stored").slice(-STORED_MAX);
    this.messages = messages.filter((each) => each.state !== "stored" || stored.includes(each));
    const open = this.messages.filter(({ state }) => state !== "stored");
    writeDraft(
      this.#draft,
      open.length === 0
        ? ""
        : JSON.stringify(open.map(({ key, name, text, state }) => ({ key, name, text, state }))),
    );
    for (const listener of this.#listeners) listener();
  }
}

function readMessages(draft: string): readonly OutboxMessage[] {
  const kept = JSON.parse(readDraft(draft) || "[]") as readonly OutboxMessage[];
  return kept.map((each) => (each.state === "taken_back" ? each : { ...each, state: "unsent" }));
}
