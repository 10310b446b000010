// `SimulatedWatchdog`: the watchdog of a simulated process, with the real renewals of its thread while a step
// blocks the event loop (watchdog-7).
//
// The thread looks only while a step blocks. It ends the process as the real one does, before its leases end
// (watchdog-4).

import type { RenewInThread } from "@holdfast/core";
import { BlockedRenewal, WatchdogMemory, type HeldClaims } from "@holdfast/runtime/internal";
import type { ProcessLife } from "../world/process-life.ts";
import type { Scheduler } from "../world/scheduler.ts";

const LOOK_MS = 500;
const OVERDUE_MS = 750;

export interface SimulatedWatchdogHost {
  readonly scheduler: Scheduler;
  readonly life: ProcessLife;
  readonly stepBlocksMs: number;
  readonly renew: RenewInThread;
  /** The thread ends the process. */
  end(): void;
}

export class SimulatedWatchdog {
  readonly #host: SimulatedWatchdogHost;
  readonly #memory = new WatchdogMemory();
  readonly #renewal: BlockedRenewal;
  #held: HeldClaims | undefined;
  #onStep: (() => void) | undefined;
  #overdueSince = Infinity;
  /** When the event loop showed last that it turns. */
  #turnedAt = -Infinity;

  constructor(host: SimulatedWatchdogHost) {
    this.#host = host;
    this.#renewal = new BlockedRenewal({
      memory: this.#memory,
      stepBlocksMs: host.stepBlocksMs,
      threadTime: () => this.#threadTime(),
      now: () => this.#now(),
      load: async () => ({ renew: host.renew }),
    });
  }

  // ---- what a runtime asks of it
  // -----------------------------------------------------------------------------------

  opened(members: readonly { readonly sessionId: string }[]): void {
    this.#memory.openSlice(members);
  }

  closed(): void {
    this.#memory.closeSlice();
  }

  began(sessionId: string, task: string, timeoutMs: number | undefined): number {
    const { scheduler, life } = this.#host;
    if (this.#onStep !== undefined) scheduler.after(0, life, () => this.#onStep?.());
    return this.#memory.addStep(sessionId, task, timeoutMs);
  }

  returned(): void {
    this.#memory.stepReturned();
  }

  ended(step: number): void {
    this.#memory.removeStep(step);
  }

  expectAbandon(inMs: number | undefined): void {
    this.#turnedAt = this.#now();
    this.#memory.abandonAt = inMs === undefined ? 0n : this.#threadTime() + BigInt(Math.ceil(inMs));
  }

  claims(sessionId: string): void {
    if (this.#held === undefined || this.#memory.addClaim(sessionId)) return;
    this.holds({ ...this.#held, sessionIds: [...this.#held.sessionIds, ...this.#memory.claims, sessionId] });
  }

  holds(held: HeldClaims): void {
    this.#held = held;
    this.#renewal.receive(held);
    this.#memory.clearClaims();
  }

  renewedAgoMs(): number | undefined {
    const at = this.#memory.renewedAt;
    return at === 0n ? undefined : Number(this.#threadTime() - at);
  }

  isSuspect(): boolean {
    return false;
  }

  isCharged(): boolean {
    return false;
  }

  placeOf(): undefined {}

  clear(): void {}

  // ---- the blocked step
  // --------------------------------------------------------------------------------------------

  /**
   * Calls once when a step may block: not between the end of the leases and the moment at which the process
   * lets go of them.
   */
  whenBlockable(call: () => void): void {
    this.#onStep = (): void => {
      if (this.#host.life.isPaused || this.blockable.length === 0 || this.#isDue) return;
      this.#onStep = undefined;
      call();
    };
    this.#onStep();
  }

  /** The sessions of the steps of which one may block, when no slice of an agent is open. */
  get blockable(): readonly string[] {
    if (this.#memory.get("isOpen") === 1) return [];
    return [...new Set(this.#memory.steps.map(({ sessionId }) => sessionId))];
  }

  /** How long a step may block now (blocked-renewal-2). */
  get limitMs(): number {
    const [only, ...others] = this.#memory.steps;
    return (others.length === 0 ? only?.timeoutMs : undefined) ?? this.#host.stepBlocksMs;
  }

  /** A step blocks from now on, while the life is paused. */
  block(): void {
    this.#overdueSince = Infinity;
    this.#renewal.look(this.#turnedAt);
    this.#look();
  }

  #look(): void {
    const { life, scheduler, end } = this.#host;
    if (!life.isAlive || !life.isPaused) return;
    const now = this.#now();
    this.#renewal.look(now);
    this.#overdueSince = this.#isDue ? Math.min(this.#overdueSince, now) : Infinity;
    if (this.#renewal.isRefused || now - this.#overdueSince >= OVERDUE_MS) return end();
    scheduler.after(LOOK_MS, undefined, () => this.#look());
  }

  /** Whether the process must let go of its leases. */
  get #isDue(): boolean {
    const due = this.#renewal.abandonAt;
    return due !== 0n && this.#threadTime() >= due;
  }

  #now(): number {
    return this.#host.life.clock.monotonic();
  }

  #threadTime(): bigint {
    return BigInt(Math.floor(this.#now()));
  }
}
