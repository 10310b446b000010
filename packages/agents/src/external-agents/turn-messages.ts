// The signals that concern a turn of an external agent (`News`), and the messages of people to the program at work (`Messages`).

import type { AgentContext } from "@holdfast/runtime";

import type { AgentRecord } from "../agent-files/agent-record.ts";
import { FEEDBACK_SIGNALS, feedbackText } from "../model-loop/feedback.ts";
import type { LiveTurns, MessageReceipt } from "./turn-task.ts";

/** The signals of a conversation are those of the model loop. */
const NEXT_INPUT = "next_input";
export const STEER = "steer";
export const INTERRUPT = "interrupt";

type Context = Pick<AgentContext, "signalReady" | "appendEntry" | "run" | "takeSignal">;

export interface TurnInput {
  readonly text: string;
  readonly conversation?: boolean;
  readonly model?: string;
  readonly permissionMode?: string;
  readonly keepAliveMs?: number;
  /** The name of a profile. */
  readonly profile?: string;
  /** A usage limit of the agent's account is waited for without a person. */
  readonly resumeAtReset?: boolean;
  /** The sandbox of the program. */
  readonly sandbox?: string;
  /** The session works in a git worktree of its own. */
  readonly worktree?: boolean;
  /** The folder that it works in; counts before `worktree`. */
  readonly workspace?: AgentRecord["workspace"];
}

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

/** The messages of people to the program at work. */
export class Messages {
  isInterrupted = false;
  readonly #ctx: Context;
  readonly #live: LiveTurns;
  readonly #restarts: boolean;
  readonly #steered: Promise<{ readonly text: string; readonly receipt: MessageReceipt }>[] = [];

  /** @param restarts whether a turn that does not take a message is interrupted for it. */
  constructor(ctx: Context, live: LiveTurns, restarts: boolean) {
    this.#ctx = ctx;
    this.#live = live;
    this.#restarts = restarts;
  }

  steer(text: string): void {
    this.#ctx.appendEntry({ role: "user", content: text });
    const given = this.#ctx.run<MessageReceipt>(
      "steer",
      async ({ sessionId }) => (await this.#live.get(sessionId)?.steer(text, this.#restarts)) ?? "rejected",
      { retry: { maxAttempts: 1 } },
    );
    this.#steered.push(
      given.then(
        (receipt) => ({ text, receipt }),
        () => ({ text, receipt: "rejected" as const }),
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

  /** The texts that did not reach the program in its turn. */
  async undelivered(): Promise<readonly string[]> {
    const steered = await Promise.all(this.#steered);
    return steered.filter(({ receipt }) => receipt !== "injected").map(({ text }) => text);
  }
}

/** The next request of a conversation: a person's, or feedback on its work (feedback-1). */
export async function nextRequest(
  ctx: Pick<AgentContext, "waitForSignal" | "signalReady" | "takeSignal" | "select">,
): Promise<string> {
  const { key, value } = await ctx.select({
    [NEXT_INPUT]: ctx.waitForSignal(NEXT_INPUT),
    ...Object.fromEntries(FEEDBACK_SIGNALS.map((name) => [name, ctx.signalReady(name)])),
  });
  return key === NEXT_INPUT ? readInput(value).text : feedbackText(key, ctx.takeSignal(key));
}

/** An input as its schema allows it, or the payload of a signal: a text, `{ text }` or `{ prompt }`. */
export function readInput(input: unknown): TurnInput {
  if (typeof input === "string") return { text: input };
  const { text, prompt, ...options } = (input ?? {}) as Omit<TurnInput, "text"> & {
    readonly text?: unknown;
    readonly prompt?: unknown;
  };
  const given = text ?? prompt;
  return { ...options, text: typeof given === "string" ? given : JSON.stringify(input ?? "") };
}
