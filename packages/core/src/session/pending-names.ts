// `PendingNames`: how many signals of each name a session has not consumed.
//
// It finds whether one of them answers a wait. The cost grows with the number of waits, however many signals
// are pending.

import { REQUEST_PREFIX } from "../journal/signal-names.ts";
import type { Wait } from "./session.ts";

export class PendingNames {
  readonly #counts = new Map<string, number>();
  /** How many are requests of children: a session always waits for these. */
  #requests = 0;

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    if (name.startsWith(REQUEST_PREFIX)) this.#requests++;
  }

  remove(name: string): void {
    const left = (this.#counts.get(name) ?? 0) - 1;
    if (left > 0) this.#counts.set(name, left);
    else this.#counts.delete(name);
    if (name.startsWith(REQUEST_PREFIX)) this.#requests--;
  }

  /** Whether one of them is what these waits stand for, as `isAnsweredBy` has it. */
  answers(waits: readonly Wait[]): boolean {
    if (waits.length === 0 || this.#counts.size === 0) return false;
    return this.#requests > 0 || waits.some((wait) => "name" in wait && this.#counts.has(wait.name));
  }
}
