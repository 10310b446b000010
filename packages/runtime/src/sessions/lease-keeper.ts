// Keeps the claims of a process alive, and lets go of what it runs when it no longer can.
//
// Idle while the process holds nothing. Otherwise all its claims are renewed by one call every `renewMs`, whether or not the one
// before it was answered: one that got lost on its way is not waited for. Storage counts a lease from when it hears of it, we from
// before we ask, so ours always ends first; what is confirmed is the oldest of them.
//
//   O4. When a renewal is not confirmed until shortly before the lease's end, everything is let go of: the margin is for the
//       process trees of its tasks to end before somebody else can be given the same work. Whoever begins something may ask
//       before: a process that was stopped for long comes to that sooner than to its timers, of which those of its tasks may be due
//       first. So every slice, standstill and commit, and every attempt's end, report and look at its signal asks. A process whose event loop is blocked
//       comes to nothing at all (O5): a watchdog is told by when to expect this, and ends the process instead.
//   D3. Time is monotonic: a wall clock that jumps neither ends a lease here nor keeps one.
//
// It knows no session and no storage: it is told when something is claimed, asks whether anything is held, and says when to let go.

import { UsageError, type Clock } from "@holdfast/core";

/** A command that ignores SIGTERM is killed two seconds later; one more is for us to notice. */
const MARGIN_MS = 3_000;
/** When a renewal was refused: soon, as there may be little time left. */
const RETRY_MS = 250;
/** Of a lease: four renewals fit into it, so that three may be lost. */
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
  /** Let go of everything: the lease can pass on soon. Must not throw. */
  letGo(): void;
  /** Told in how many milliseconds everything is let go of if no renewal comes; `undefined` when nothing is. Must not throw. */
  watch?(letGoInMs: number | undefined): void;
}

export class LeaseKeeper {
  readonly #host: LeaseKeeperHost;
  /** How often claims are renewed: also how soon a lease of another process that has passed should be noticed. */
  readonly renewMs: number;
  readonly #marginMs: number;
  /** Every claim held was made or renewed by a call that began at or after this moment; `undefined` while idle. */
  #since: number | undefined;
  /** Of what is held since it was idle: another after each end. */
  #tenure = {};
  #nextAt = 0;
  #cancelTimer: (() => void) | undefined;
  #closed = false;

  /** @throws UsageError when leases could not be renewed in time. */
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

  /**
   * A claim is about to be asked for. Call before each, as its lease may begin any time from now on.
   *
   * @param ageMs of one that was made before it was asked for: at most so long ago.
   */
  claiming(ageMs = 0): void {
    if (this.leaseMs === Infinity || this.#closed) return;
    const now = this.#host.clock.monotonic();
    const began = now - ageMs;
    if (this.#since !== undefined && this.#since <= began) return;
    // One that is old already is renewed sooner than the others had to be.
    const nextAt = began + this.renewMs;
    this.#nextAt = this.#since === undefined ? nextAt : Math.min(this.#nextAt, nextAt);
    this.#since = began;
    this.#arm(now);
  }

  close(): void {
    this.#closed = true;
    this.#goIdle();
  }

  /** Let go of everything now if its lease could have passed on. */
  check(): void {
    if (this.#since === undefined) return;
    if (this.#host.clock.monotonic() < this.#letGoAt(this.#since)) return;
    this.#goIdle();
    this.#host.letGo();
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
    // Also when we come too late, as after the process was stopped: then nothing is renewed that may be another's by now.
    this.check();
    if (this.#since === undefined) return;
    const now = this.#host.clock.monotonic();
    if (now >= this.#nextAt) this.#renew(now);
    this.#arm(now);
  }

  #renew(askedAt: number): void {
    const tenure = this.#tenure;
    this.#nextAt = askedAt + this.renewMs;
    this.#host.renew().then(
      () => this.#answered(tenure, askedAt),
      () => this.#answered(tenure, undefined),
    );
  }

  /** An answer to what was asked before everything was let go of, or all was released, says nothing of what is held now. */
  #answered(tenure: object, confirmedAt: number | undefined): void {
    if (this.#tenure !== tenure || this.#since === undefined) return;
    const now = this.#host.clock.monotonic();
    if (confirmedAt === undefined) this.#nextAt = Math.min(this.#nextAt, now + RETRY_MS);
    else this.#since = Math.max(this.#since, confirmedAt);
    this.#arm(now);
  }

  #arm(now: number): void {
    if (this.#since === undefined) return;
    const letGoAt = this.#letGoAt(this.#since);
    const at = Math.min(this.#nextAt, letGoAt);
    this.#host.watch?.(letGoAt - now);
    this.#cancelTimer?.();
    this.#cancelTimer = this.#host.clock.setTimer(() => this.#look(), Math.max(0, at - now));
  }

  #letGoAt(since: number): number {
    return since + this.leaseMs - this.#marginMs;
  }
}
