// `BlockedRenewal`: the watchdog's thread renews the leases of its process while a step blocks the event loop
// (watchdog-7).
//
//   - The process shows that its loop turns, at least with each of its renewals. A loop that has not turned
//     for longer is blocked. If no slice is open and steps have begun, one of these steps blocks it.
//   blocked-renewal-2. Renewing ends with the step's time-out, or with `stepBlocksMs` where it has none or
//       cannot be named. The leases end then, and the thread ends the process before they do.
//   - Nothing is renewed once the last confirmed renewal is too old: another process may hold the sessions.
//   - A renewal that extends no claim was refused, and ends the process. The next one waits for no answer, as
//     in the keeper.

import type { RenewInThread } from "@holdfast/core";
import type { WatchdogMemory } from "./watchdog-memory.ts";
import type { HeldClaims } from "./watchdog.ts";

/** A loop that turns may be late by this much. */
const LATE_MS = 500;
const AGAIN_MS = 250;

export interface BlockedRenewalHost {
  readonly memory: WatchdogMemory;
  readonly stepBlocksMs: number;
  /** Milliseconds by a clock that all threads of a process share. */
  threadTime(): bigint;
  /** Milliseconds by the clock of `look`. */
  now(): number;
  /** Loads the module of a `ThreadRenewal`. */
  load(module: string): Promise<{ readonly renew: RenewInThread }>;
}

export class BlockedRenewal {
  readonly #host: BlockedRenewalHost;
  readonly #memory: WatchdogMemory;
  #held: HeldClaims | undefined;
  #renew: Promise<RenewInThread> | undefined;
  #module: string | undefined;
  #beats = -1;
  #turnedAt = -Infinity;
  #nextAt = 0;
  /** Whether storage said that no claim is this process's. */
  isRefused = false;

  constructor(host: BlockedRenewalHost) {
    this.#host = host;
    this.#memory = host.memory;
  }

  receive(held: HeldClaims): void {
    this.#held = held;
    if (this.#module === held.by.module) return;
    this.#module = held.by.module;
    this.#renew = this.#host.load(held.by.module).then(({ renew }) => renew);
    this.#renew.catch(() => {}); // The leases end then, as without this thread.
  }

  /** When leases are let go, with the renewals of this thread; 0 while none is held. */
  get abandonAt(): bigint {
    const { abandonAt, renewedAt } = this.#memory;
    if (abandonAt === 0n || renewedAt === 0n || this.#held === undefined) return abandonAt;
    const renewed = renewedAt + BigInt(Math.floor(this.#held.abandonMs));
    return renewed > abandonAt ? renewed : abandonAt;
  }

  /** The step that blocks the loop, for people. */
  get blockedBy(): string | undefined {
    const { steps } = this.#memory;
    const [first, ...others] = steps.map(({ sessionId, task }) => `step "${task}" of session ${sessionId}`);
    if (first === undefined || others.length === 0) return first;
    return `one of ${steps.length} steps (${[first, ...others].slice(0, 3).join(", ")}${others.length > 2 ? ", …" : ""})`;
  }

  blockedText(now: number): string {
    if (this.isRefused) return "until its claims were refused,";
    const isOverLimit = now - this.#turnedAt >= this.#limitMs;
    return isOverLimit ? `for more than ${this.#limitMs} ms` : "until its leases could expire,";
  }

  look(now: number): void {
    const beats = this.#memory.get("beats");
    if (beats !== this.#beats) this.#turnedAt = now;
    this.#beats = beats;
    const held = this.#held;
    if (held === undefined || now < this.#nextAt) return;
    // Another process may hold the sessions by now.
    if (this.#memory.abandonAt === 0n || this.#host.threadTime() >= this.abandonAt) return;
    if (this.#memory.get("isOpen") === 1 || this.#memory.get("running") === 0) return;
    const blockedMs = now - this.#turnedAt;
    const afterMs = held.everyMs + Math.min(LATE_MS, held.everyMs / 2);
    // mutant: step-blocks-without-limit
    if (blockedMs < afterMs || blockedMs >= this.#limitMs) return;
    void this.#ask(held, now);
  }

  /** blocked-renewal-2. */
  get #limitMs(): number {
    const { steps } = this.#memory;
    const [only, ...others] = steps;
    return (others.length === 0 ? only?.timeoutMs : undefined) ?? this.#host.stepBlocksMs;
  }

  async #ask(held: HeldClaims, now: number): Promise<void> {
    const { by, owner, leaseMs, everyMs, abandonMs } = held;
    this.#nextAt = now + everyMs;
    const askedAt = this.#host.threadTime();
    const sessionIds = [...new Set([...held.sessionIds, ...this.#memory.claims])];
    const signal = AbortSignal.timeout(abandonMs);
    try {
      const renew = await this.#renew!;
      const isExtended = await renew(by.data, {
        owner,
        leaseMs,
        sessionIds,
        blockedBy: this.blockedBy ?? "a step",
        signal,
      });
      const { renewedAt } = this.#memory;
      if (isExtended) this.#memory.renewedAt = askedAt > renewedAt ? askedAt : renewedAt;
      else this.isRefused = true; // A renewal that extends no claim was refused, and ends the process.
    } catch {
      this.#nextAt = Math.min(this.#nextAt, this.#host.now() + AGAIN_MS);
    }
  }
}
