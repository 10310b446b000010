// The signals a session has been sent and not yet consumed, as its kernel sees them: first in, first out, per name.

import { isReservedName, REQUEST_PREFIX } from "../journal/signal-names.ts";
import type { StoredSignal } from "../ports/storage.ts";

export class PendingSignals {
  readonly #byName = new Map<string, StoredSignal[]>();
  /** Of signals that are none of this session's. */
  readonly #isDropped: (signal: StoredSignal) => boolean;
  #requests = 0;

  constructor(isDropped: (signal: StoredSignal) => boolean = () => false) {
    this.#isDropped = isDropped;
  }

  add(signal: StoredSignal): void {
    if (this.#isDropped(signal)) return;
    if (signal.name.startsWith(REQUEST_PREFIX)) this.#requests++;
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
    if (signal?.name.startsWith(REQUEST_PREFIX) === true) this.#requests--;
    if (queue?.length === 0) this.#byName.delete(name);
    return signal;
  }

  /** Whether a child asks something. */
  get hasRequest(): boolean {
    return this.#requests > 0;
  }

  /** The oldest request of any child. */
  takeRequest(): StoredSignal | undefined {
    let oldest: StoredSignal | undefined;
    for (const [name, [first]] of this.#byName) {
      if (!name.startsWith(REQUEST_PREFIX) || first === undefined) continue;
      if (oldest === undefined || first.order < oldest.order) oldest = first;
    }
    return oldest === undefined ? undefined : this.take(oldest.name);
  }

  all(): StoredSignal[] {
    return [...this.#byName.values()].flat().sort((a, b) => a.order - b.order);
  }

  /** All whose name matches, in the order they arrived. What sessions tell each other is no signal to those who drain. */
  drain(pattern: string): StoredSignal[] {
    const matches = signalPattern(pattern);
    const names = [...this.#byName.keys()].filter((name) => matches(name) && !isReservedName(name));
    const taken = names.flatMap((name) => this.#byName.get(name) ?? []);
    for (const name of names) this.#byName.delete(name);
    return taken.sort((a, b) => a.order - b.order);
  }
}

/** `*` stands for any text without a dot, `**` for any text: `ci.*` matches `ci.failed`, `ci.**` also `ci.job.failed`. */
export function signalPattern(pattern: string): (name: string) => boolean {
  if (!pattern.includes("*")) return (name) => name === pattern;
  const parts = pattern.split(/(\*\*|\*)/).flatMap((part) => (part.startsWith("*") ? part : part.split("")));
  return (name) => matchesParts(parts, name);
}

/** Step by step over the parts, keeping every length of `name` they can match: a regular expression may take for ever. */
function matchesParts(parts: readonly string[], name: string): boolean {
  let reached = Array.from({ length: name.length + 1 }, (_, length) => length === 0);
  for (const part of parts) {
    const next = reached.map((was) => part.startsWith("*") && was);
    for (let i = 1; i <= name.length; i++) {
      const char = name.charAt(i - 1);
      if (part === "**") next[i] ||= next[i - 1] === true;
      else if (part === "*") next[i] ||= next[i - 1] === true && char !== ".";
      else next[i] = reached[i - 1] === true && char === part;
    }
    reached = next;
  }
  return reached[name.length] === true;
}
