// `PendingSignals`: the signals of a session that are not consumed, as its kernel sees them. They are first
// in, first out, per name.

import { isReservedName, REQUEST_PREFIX } from "../journal/signal-names.ts";
import { Fifo } from "../collections/fifo.ts";
import type { StoredSignal } from "../session/changes.ts";
import { WakeQueue, type Queued } from "../collections/wake-queue.ts";

export interface PendingSignalsHost {
  /** A signal of this name is now pending, and none was before. */
  onFirst(name: string): void;
}

interface Request extends Queued {
  readonly name: string;
}

export class PendingSignals {
  readonly #host: PendingSignalsHost;
  #chars = 0;
  #byName = new Map<string, Fifo<StoredSignal>>();
  /** The requests of children, by their order. */
  #requests = new WakeQueue<Request>();

  constructor(host: PendingSignalsHost) {
    this.#host = host;
  }

  /**
   * Add stored signals, or take over those of the kernel before a checkpoint, so that a backlog is not
   * examined again.
   */
  begin(signals: readonly StoredSignal[] | PendingSignals): void {
    if (!(signals instanceof PendingSignals)) {
      for (const signal of signals) this.add(signal);
      return;
    }
    [this.#byName, this.#requests, this.#chars] = [signals.#byName, signals.#requests, signals.#chars];
    [signals.#byName, signals.#requests, signals.#chars] = [new Map(), new WakeQueue(), 0];
  }

  /** The length of all payloads. */
  get chars(): number {
    return this.#chars;
  }

  add(signal: StoredSignal): void {
    const { name, order } = signal;
    if (name.startsWith(REQUEST_PREFIX))
      this.#requests.set({ name, queuedFor: Infinity, queueIndex: -1 }, order);
    let queue = this.#byName.get(name);
    if (queue === undefined) {
      this.#byName.set(name, (queue = new Fifo()));
      this.#host.onFirst(name);
    }
    queue.push(signal);
    this.#chars += charsOf(signal);
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }

  take(name: string): StoredSignal | undefined {
    const queue = this.#byName.get(name);
    // mutant: signals-last-first
    const signal = queue?.shift();
    if (queue?.size === 0) this.#byName.delete(name);
    if (signal !== undefined) this.#chars -= charsOf(signal);
    return signal;
  }

  /** Whether a request of a child is pending. */
  get hasRequest(): boolean {
    return this.#requests.first() !== undefined;
  }

  /** The oldest request of any child. */
  takeRequest(): StoredSignal | undefined {
    const oldest = this.#requests.first();
    if (oldest === undefined) return undefined;
    this.#requests.set(oldest, Infinity);
    return this.take(oldest.name);
  }

  all(): StoredSignal[] {
    return [...this.#byName.values()].flatMap((queue) => [...queue]).sort((a, b) => a.order - b.order);
  }

  /** All signals whose name matches, in the order they arrived. Signals between sessions are left out. */
  drain(pattern: string): StoredSignal[] {
    const matches = signalPattern(pattern);
    const names = [...this.#byName.keys()].filter((name) => matches(name) && !isReservedName(name));
    const taken = names.flatMap((name) => this.#byName.get(name)?.drain() ?? []);
    for (const name of names) this.#byName.delete(name);
    for (const signal of taken) this.#chars -= charsOf(signal);
    return taken.sort((a, b) => a.order - b.order);
  }
}

function charsOf({ payload }: StoredSignal): number {
  return payload?.length ?? 0;
}

/**
 * `*` stands for any text without a dot, `**` for any text: `ci.*` matches `ci.failed`, `ci.**` also
 * `ci.job.failed`.
 */
export function signalPattern(pattern: string): (name: string) => boolean {
  if (!pattern.includes("*")) return (name) => name === pattern;
  const parts = pattern.split(/(\*\*|\*)/).flatMap((part) => (part.startsWith("*") ? part : part.split("")));
  return (name) => matchesParts(parts, name);
}

/**
 * Match part by part, with every length of `name` that the parts so far can match. A regular expression might
 * take very long.
 */
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
