// The network between the nodes of a fleet: messages that take time, overtake each other, get lost, come
// twice, or meet a cut.
//
//   - Messages are independent: the arrival of a request does not imply that of its reply.
//   - A cut has a direction. Messages that are in flight when it begins are lost as well.
//
// The network knows nodes only by name, and does not read the messages.

import type { Dice } from "../world/dice.ts";
import type { EventLog } from "../world/event-log.ts";
import type { Scheduler } from "../world/scheduler.ts";

/** The faults of each message: probabilities, and the maximum delay in milliseconds. */
export interface NetworkFaults {
  readonly delayMs: number;
  readonly dropped: number;
  readonly duplicated: number;
  /** The message takes up to `SLOW_MS`. */
  readonly slow: number;
}

export interface NetworkOptions {
  readonly scheduler: Scheduler;
  readonly dice: Dice;
  readonly log: EventLog;
  faults(): NetworkFaults;
}

/** Longer than any lease and any patience. */
const SLOW_MS = 40_000;

export class Network {
  readonly #options: NetworkOptions;
  /** How many cuts there are from one node to another. */
  readonly #cuts = new Map<string, number>();

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  /** Have something happen at another node, perhaps. */
  send(from: string, to: string, what: string, arrive: () => void): void {
    const { scheduler, dice, log } = this.#options;
    const { dropped, duplicated } = this.#options.faults();
    const isLost = this.#isCut(from, to) || dice.chance(dropped);
    if (isLost) return log.add(from, `${what} to ${to} is lost`);
    const copies = duplicated > 0 && dice.chance(duplicated) ? 2 : 1;
    if (copies > 1) log.add(from, `${what} to ${to} goes twice`);
    for (let i = 0; i < copies; i++) {
      scheduler.after(this.#drawDelay(), undefined, () => {
        if (!this.#isCut(from, to)) arrive();
      });
    }
  }

  /** For a while, no message gets from a node of `from` to a node of `to`. */
  cut(from: readonly string[], to: readonly string[], ms: number): void {
    const links = from.flatMap((one) =>
      to.filter((other) => other !== one).map((other) => linkOf(one, other)),
    );
    for (const link of links) this.#cuts.set(link, (this.#cuts.get(link) ?? 0) + 1);
    this.#options.log.add("network", `is cut from ${from.join(", ")} to ${to.join(", ")} for ${ms} ms`);
    this.#options.scheduler.after(ms, undefined, () => {
      for (const link of links) this.#cuts.set(link, Math.max(0, (this.#cuts.get(link) ?? 0) - 1));
    });
  }

  /** Nothing is cut any more. */
  heal(): void {
    this.#cuts.clear();
  }

  #isCut(from: string, to: string): boolean {
    return (this.#cuts.get(linkOf(from, to)) ?? 0) > 0;
  }

  #drawDelay(): number {
    const { dice } = this.#options;
    const { delayMs, slow } = this.#options.faults();
    if (slow > 0 && dice.chance(slow)) return dice.between(0, SLOW_MS);
    return delayMs === 0 ? 0 : dice.between(0, delayMs);
  }
}

function linkOf(from: string, to: string): string {
  return `${from} ${to}`;
}
