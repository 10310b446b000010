// The signals that concern a turn of an external agent (`News`), and the messages of people to the program at
// work (`Messages`).

import type { AgentContext } from "@holdfast/runtime";

import type { DeliveredMessage } from "@holdfast/agents";
import { type FollowUp, readFollowUp, readInput } from "./intent/turn-input.ts";
import type { LiveTurns, MessageReceipt } from "./turn-task.ts";

/** The signals of a conversation are those of the model loop. */
export const STEER = "steer";
/** A message for after the answer. */
export const FOLLOW_UP = "follow_up";
export const INTERRUPT = "interrupt";

type Context = Pick<AgentContext, "signalReady" | "appendEntry" | "run" | "takeSignal" | "drainSignals">;

/** The signals that concern a turn. Consumes nothing. */
export class News {
  readonly #ctx: Context;
  readonly #ready = new Map<string, Promise<string>>();

  constructor(ctx: Context, names: readonly string[]) {
    this.#ctx = ctx;
    for (const name of names) this.#await(name);
  }

  /** Settles with the name of a signal that is pending. */
  async next(): Promise<string> {
    const name = await Promise.race(this.#ready.values());
    this.#ready.delete(name);
    return name;
  }

  /** The signal was taken, and the next one counts. */
  taken(name: string): void {
    this.#await(name);
  }

  #await(name: string): void {
    this.#ready.set(
      name,
      this.#ctx.signalReady(name).then(() => name),
    );
  }
}

interface MessageOptions {
  readonly restarts: boolean;
  readonly kept: readonly FollowUp[];
}

/** The messages of people to the program at work. */
export class Messages {
  isInterrupted = false;
  /** The follow-up that the program has begun with. */
  request: string | undefined;
  readonly #ctx: Context;
  readonly #live: LiveTurns;
  readonly #restarts: boolean;
  readonly #steered: Promise<{ readonly text: string; readonly receipt: MessageReceipt }>[] = [];
  #followUps: readonly FollowUp[];
  /** The session keeps a follow-up itself, and so every later one, which would come before it otherwise. */
  #keeps: boolean;
  readonly #offers: Promise<unknown>[] = [];

  /**
   * @param restarts whether a turn that does not take a message is interrupted for it.
   * @param kept the follow-ups that the session keeps since an earlier turn.
   */
  constructor(ctx: Context, live: LiveTurns, { restarts, kept }: MessageOptions) {
    this.#ctx = ctx;
    this.#live = live;
    this.#restarts = restarts;
    this.#followUps = kept;
    this.#keeps = kept.length > 0;
  }

  /** The follow-ups that no program has begun with. */
  get followUps(): readonly FollowUp[] {
    return this.#followUps;
  }

  /**
   * Leaves a message for after the answer: with the program, which then needs no new process for it, or with
   * the session. A command stays with the session.
   */
  followUp(message: FollowUp): void {
    this.#followUps = [...this.#followUps, message];
    if (typeof message !== "string") {
      this.#keeps = true;
      return;
    }
    const offered = this.#ctx.run<MessageReceipt>(
      "follow_up",
      async ({ sessionId }) => {
        if (!this.#keeps)
          this.#keeps = (await this.#live.get(sessionId)?.agent.followUp(message)) !== "queued";
        return "queued" as const;
      },
      { retry: { maxAttempts: 1 } },
    );
    this.#offers.push(offered.then(undefined, () => {}));
  }

  /** The program has answered, and begins with this follow-up. */
  begun(text: string): void {
    const at = this.#followUps.indexOf(text);
    this.#followUps = this.#followUps.toSpliced(at, at === -1 ? 0 : 1);
    this.#ctx.appendEntry({ role: "user", content: queuedMessage(text) });
    this.request = text;
  }

  steer(text: string): void {
    this.#ctx.appendEntry({ role: "user", content: text });
    const given = this.#ctx.run<MessageReceipt>(
      "steer",
      async ({ sessionId }) => (await this.#live.get(sessionId)?.steer(text, this.#restarts)) ?? "queued",
      { retry: { maxAttempts: 1 } },
    );
    this.#steered.push(
      given.then(
        (receipt) => ({ text, receipt }),
        () => ({ text, receipt: "queued" as const }),
      ),
    );
  }

  interrupt(): void {
    this.#ctx.takeSignal(INTERRUPT);
    this.isInterrupted = true;
    void this.#ctx
      .run("interrupt", async ({ sessionId }) => void (await this.#live.get(sessionId)?.agent.abort()))
      .then(undefined, () => {});
  }

  /** Whether the turn was interrupted for a message. */
  async hasRestarted(): Promise<boolean> {
    return (await Promise.all(this.#steered)).some(({ receipt }) => receipt === "restarted");
  }

  /**
   * Takes the messages that came after the answer. A session that ends with it would lose them.
   *
   * @returns those that were for the turn.
   */
  takeLast(): readonly string[] {
    const payloads = (name: string) => this.#ctx.drainSignals(name).map(({ payload }) => payload);
    this.#followUps = [...this.#followUps, ...payloads(FOLLOW_UP).map(readFollowUp)];
    const texts = payloads(STEER).map((payload) => readInput(payload).text);
    for (const content of texts) this.#ctx.appendEntry({ role: "user", content });
    return texts;
  }

  /** The texts that did not reach the program in its turn. */
  async undelivered(): Promise<readonly string[]> {
    const steered = await Promise.all(this.#steered);
    await Promise.all(this.#offers);
    return steered.filter(({ receipt }) => receipt !== "injected").map(({ text }) => text);
  }
}

/** A request that has waited for the answer to another one. */
export function queuedMessage(text: string): DeliveredMessage {
  return { text, delivery: "queue" };
}
