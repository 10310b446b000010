// `LeaseKeeper`: renews the claims of a process, and lets go of its sessions when it cannot.
//
// The keeper is idle while the process holds no claim. Otherwise one call every `renewMs` renews all claims,
// without waiting for the answer to the previous call, which may be lost. Storage counts a lease from the
// arrival of a call, the keeper from before the call, so its own lease always ends first. A confirmed renewal
// covers all claims, from the time of its call.
//
//   O4. When no renewal is confirmed until shortly before the lease's end, the keeper lets go of all
//       sessions. The margin is for the process trees of their tasks to end before another process may claim
//       the same work. After a process was suspended, timers of its tasks may fire before the timer of the
//       lease. Therefore every slice, standstill and commit calls `check` first. Every attempt does so at its
//       end, at a report, and when its signal is read. A process whose event loop is blocked runs no check
//       (O5): its watchdog knows when the keeper must let go. While a step blocks the loop, the watchdog
//       renews in its place. Else it ends the process.
//   D3. Time is monotonic: a wall clock that jumps neither ends a lease here nor keeps one.
//
// It knows no session and no storage: its host announces claims, says whether any are held, and lets go.

import { UsageError, type Clock } from "@holdfast/core";

/** A command that ignores SIGTERM is killed two seconds later, and noticing that may take one more. */
const MARGIN_MS = 3_000;
/** The delay after a refused renewal: short, as little time may be left. */
const RETRY_MS = 250;
/** How many renewals fit into a lease: all but one may be lost. */
const RENEWALS = 4;

export interface LeaseKeeperHost {
  readonly clock: Clock;
  /** How long a claim lasts without being renewed. `Infinity` needs no keeper: then nothing here ever happens. */
  readonly leaseMs: number;
  /** How often to renew; about a quarter of the lease when absent. */
  readonly renewMs: number | undefined;
  /** Make every claim of this process last until `leaseMs` from now. */
  renew(): Promise<unknown>;
  /** Whether this process holds, or is about to hold, any claim. */
  isHolding(): boolean;
  /** Let go of all sessions, as their leases may end soon. Must not throw. */
  abandonAll(): void;
  /**
   * Called with the milliseconds until all sessions are let go if no renewal is confirmed, or `undefined`
   * when none is held. Must not throw.
   */
  watch?(abandonInMs: number | undefined): void;
  /**
   * How long ago the watchdog's thread asked for its last confirmed renewal; `undefined` when it made none.
   * It renews while the event loop is blocked. Must not throw.
   */
  renewedAgoMs?(): number | undefined;
}

export class LeaseKeeper {
  readonly #host: LeaseKeeperHost;
  /** How often claims are renewed, and how often to look for ended leases of other processes. */
  readonly renewMs: number;
  readonly #marginMs: number;
  /** Every claim held was made or renewed by a call that began at or after this moment; `undefined` while idle. */
  #since: number | undefined;
  /** Identifies the time since the keeper was last idle: a new object after each idle time. */
  #tenure = {};
  #nextAt = 0;
  #cancelTimer: (() => void) | undefined;
  #closed = false;

  /** @throws UsageError when `renewMs` is too long for the lease. */
  constructor(host: LeaseKeeperHost) {
    const { leaseMs, renewMs = Math.floor(leaseMs / RENEWALS) } = host;
    if (!(leaseMs > 0 && renewMs > 0 && renewMs <= leaseMs / 3)) {
      throw new UsageError(`a lease of ${leaseMs} ms cannot be renewed every ${renewMs} ms`, {
        expected: "numbers above 0, and `renewMs` at most a third of `leaseMs`: two renewals may be lost",
      });
    }
    this.#host = host;
    this.renewMs = renewMs;
    this.#marginMs = Math.min(MARGIN_MS, leaseMs / 2);
  }

  get leaseMs(): number {
    return this.#host.leaseMs;
  }

  /** How long after a confirmed renewal all sessions are let go. */
  get abandonMs(): number {
    // mutant: leases-kept-too-long
    return this.leaseMs - this.#marginMs;
  }

  /**
   * A claim is about to be requested. Call this before each claim, as its lease may begin any time from now
   * on.
   *
   * @param ageMs the highest age of a claim that was made before this call.
   */
  claiming(ageMs = 0): void {
    if (this.leaseMs === Infinity || this.#closed) return;
    const now = this.#host.clock.monotonic();
    const began = now - ageMs;
    if (this.#since !== undefined && this.#since <= began) return;
    // An older claim must be renewed sooner than the others.
    const nextAt = began + this.renewMs;
    this.#nextAt = this.#since === undefined ? nextAt : Math.min(this.#nextAt, nextAt);
    this.#since = began;
    this.#arm(now);
  }

  close(): void {
    this.#closed = true;
    this.#goIdle();
  }

  /** Let go of all sessions now if their leases could have ended. */
  check(): void {
    if (this.#since === undefined) return;
    const now = this.#host.clock.monotonic();
    if (now < this.#abandonAt(this.#since)) return;
    // mutant: thread-renewal-ignored
    this.#since = Math.max(this.#since, now - (this.#host.renewedAgoMs?.() ?? Infinity));
    if (now < this.#abandonAt(this.#since)) return;
    this.#goIdle();
    // mutant: lapsed-leases-kept
    this.#host.abandonAll();
  }

  #goIdle(): void {
    this.#since = undefined;
    this.#tenure = {};
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#host.watch?.(undefined);
  }

  #look(): void {
    if (!this.#host.isHolding()) return this.#goIdle();
    // The timer may be late, as after the process was suspended. Then no claim is renewed that another
    // process may hold by now.
    // mutant: lapsed-lease-renewed
    this.check();
    if (this.#since === undefined) return;
    const now = this.#host.clock.monotonic();
    // mutant: leases-not-renewed
    if (now >= this.#nextAt) this.#renew(now);
    this.#arm(now);
  }

  #renew(askedAt: number): void {
    const tenure = this.#tenure;
    // mutant: lost-renewal-awaited
    this.#nextAt = askedAt + this.renewMs;
    this.#host.renew().then(
      () => this.#answered(tenure, askedAt),
      () => this.#answered(tenure, undefined),
    );
  }

  /** An answer to a call from before the last idle time says nothing about the claims held now. */
  #answered(tenure: object, confirmedAt: number | undefined): void {
    if (this.#tenure !== tenure || this.#since === undefined) return;
    const now = this.#host.clock.monotonic();
    // mutant: renewal-counted-late
    if (confirmedAt === undefined) this.#nextAt = Math.min(this.#nextAt, now + RETRY_MS);
    else this.#since = Math.max(this.#since, confirmedAt);
    this.#arm(now);
  }

  #arm(now: number): void {
    if (this.#since === undefined) return;
    const abandonAt = this.#abandonAt(this.#since);
    const at = Math.min(this.#nextAt, abandonAt);
    this.#host.watch?.(abandonAt - now);
    this.#cancelTimer?.();
    this.#cancelTimer = this.#host.clock.setTimer(() => this.#look(), Math.max(0, at - now));
  }

  #abandonAt(since: number): number {
    return since + this.abandonMs;
  }
}
