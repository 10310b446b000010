// `SliceLoop`: runs agents in slices, which all sessions of a process share.
//
//   K2. A slice is the time between two immediates that are queued together. Node runs only ticks and
//       microtasks between them. Therefore every agent with a delivery is quiescent at the second one. If the
//       second one were queued later, an agent's own immediate could run in between, and its order would
//       depend on the load.
//   - A turn of the event loop costs more than delivering to one session. Therefore a turn has one slice more
//     than the previous turn used, and at most `SLICES_PER_TURN`. Other work of the process waits no longer
//     than that.
//
// A slice runs in the neutral context, whatever code has called `wake` (neutral-context-1).
//
// It knows no kernels: a member says whether it had something to deliver, and is called when it is quiescent.

import { setImmediate } from "node:timers";
import { inNeutral } from "./neutral-context.ts";

/** Hears of each slice before it runs: the watchdog (K4a). Must not throw. */
export interface SliceObserver {
  opened(members: readonly SliceMember[]): void;
  closed(): void;
  /** Whether this session must be alone in its slices. */
  isSuspect(sessionId: string): boolean;
}

export interface SliceMember {
  readonly sessionId: string;
  /** Whether it takes part in the next slice. Only the loop may use this. */
  isReady: boolean;
  /** Deliver one outcome. False when there was none, or none may be delivered now. Must not throw. */
  deliver(): boolean;
  /** The agent is quiescent. May call `wake` for another slice. Must not throw. */
  standstill(): void;
}

/** Runs each callback in its own turn of the event loop, in the order of the calls, as `setImmediate` does. */
export type Immediate = (callback: () => void) => void;

const SLICES_PER_TURN = 16;

export class SliceLoop {
  readonly #observer: SliceObserver | undefined;
  readonly #afterSlice: () => void;
  readonly #immediate: Immediate;
  /**
   * Members of the next slice, in the order of their calls of `wake`; members that left are no longer ready.
   */
  #ready: SliceMember[] = [];
  #running: SliceMember[] = [];
  /** The remaining slices of this turn. */
  #queued = 0;
  /** The slices of this turn that had a member. */
  #used = 0;
  #inSlice = false;

  /** @param afterSlice called once when all members of a slice are quiescent, to commit their segments. */
  constructor(afterSlice: () => void, observer?: SliceObserver, immediate: Immediate = setImmediate) {
    this.#afterSlice = afterSlice;
    this.#observer = observer;
    this.#immediate = immediate;
  }

  /** Give a session the next slice. */
  wake(member: SliceMember): void {
    if (member.isReady) return;
    member.isReady = true;
    this.#ready.push(member);
    this.#queue();
  }

  #queue(): void {
    if (this.#queued > 0) return;
    this.#queued = Math.min(this.#used + 1, SLICES_PER_TURN);
    this.#used = 0;
    for (let i = 0; i < this.#queued; i++) {
      this.#immediate(this.#open);
      this.#immediate(this.#close);
    }
  }

  /** Remove a session that is over. */
  leave(member: SliceMember): void {
    member.isReady = false;
  }

  /** Whether agents are running this very moment. */
  get inSlice(): boolean {
    return this.#inSlice;
  }

  readonly #open = inNeutral(() => {
    if (this.#ready.length === 0) return;
    const members = this.#takeReady();
    this.#used++;
    this.#inSlice = true;
    this.#observer?.opened(members);
    for (const member of members) {
      if (!member.isReady) continue;
      member.isReady = false;
      if (member.deliver()) this.#running.push(member);
    }
  });

  readonly #close = inNeutral(() => {
    this.#queued--;
    if (this.#inSlice) this.#endSlice();
    if (this.#ready.length > 0) this.#queue();
  });

  #endSlice(): void {
    const running = this.#running;
    this.#running = [];
    this.#inSlice = false;
    this.#observer?.closed();
    for (const member of running) member.standstill();
    this.#afterSlice();
  }

  #takeReady(): SliceMember[] {
    const observer = this.#observer;
    const ready = this.#ready;
    this.#ready = [];
    if (observer === undefined) return ready;
    const members = ready.filter((member) => member.isReady);
    const suspect = members.find((member) => observer.isSuspect(member.sessionId));
    if (suspect === undefined) return members;
    this.#ready = members.filter((member) => member !== suspect);
    return [suspect];
  }
}
