// The signals a session has been sent and not yet consumed, as its kernel sees them: first in, first out, per name.

import type { StoredSignal } from "../ports/storage.ts";

export class PendingSignals {
  readonly #byName = new Map<string, StoredSignal[]>();

  add(signal: StoredSignal): void {
    const queue = this.#byName.get(signal.name);
    if (queue === undefined) this.#byName.set(signal.name, [signal]);
    else queue.push(signal);
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }

  take(name: string): StoredSignal | undefined {
    const queue = this.#byName.get(name);
    const signal = queue?.shift();
    if (queue?.length === 0) this.#byName.delete(name);
    return signal;
  }

  all(): StoredSignal[] {
    return [...this.#byName.values()].flat().sort((a, b) => a.order - b.order);
  }

  /** All whose name matches, in the order they arrived. */
  drain(pattern: string): StoredSignal[] {
    const matches = signalPattern(pattern);
    const names = [...this.#byName.keys()].filter(matches);
    const taken = names.flatMap((name) => this.#byName.get(name) ?? []);
    for (const name of names) this.#byName.delete(name);
    return taken.sort((a, b) => a.order - b.order);
  }
}

/** `*` stands for any text without a dot, `**` for any text: `ci.*` matches `ci.failed`, `ci.**` also `ci.job.failed`. */
export function signalPattern(pattern: string): (name: string) => boolean {
  if (!pattern.includes("*")) return (name) => name === pattern;
  const source = pattern
    .split(/(\*\*|\*)/)
    .map((part) => (part === "**" ? ".*" : part === "*" ? "[^.]*" : part.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`)))
    .join("");
  const expression = new RegExp(`^${source}$`, "s");
  return (name) => expression.test(name);
}
