// When agents run: slices, shared by all sessions of a process.
//
//   K2. A slice is what runs between two immediates queued together: Node runs only ticks and microtasks between them, so
//       at the second one every agent that was delivered to stands still. Queuing the second one late would let an
//       immediate of the agent's in between, and its order would depend on the load.
//   slice-loop-2b. A turn of the event loop costs more than delivering to one session. So a turn has as many slices as the one before it
//       had use for, and one more; whatever else the process has to do waits no longer than for `SLICES_PER_TURN`.
//
// Knows nothing of kernels: a member says whether it had something to deliver, and is told when it stands still.

/** Hears of each slice before it runs: the watchdog (K4a). Must not throw. */
export interface SliceObserver {
  opened(members: readonly SliceMember[]): void;
  closed(): void;
  /** Whether this session is to have its slices alone. */
  isSuspect(sessionId: string): boolean;
}

export interface SliceMember {
  readonly sessionId: string;
  /** Whether it is to have the next slice. Nobody's but the loop's. */
  isReady: boolean;
  /** Deliver one outcome. False when there was none, or none may be delivered now. Must not throw. */
  deliver(): boolean;
  /** The agent stands still. May call `wake` for another slice. Must not throw. */
  standstill(): void;
}

/** Runs a callback in a turn of the event loop of its own, after those given before it: `setImmediate`, or a simulator's. */
export type Immediate = (callback: () => void) => void;

const SLICES_PER_TURN = 16;

export class SliceLoop {
  readonly #observer: SliceObserver | undefined;
  readonly #afterSlice: () => void;
  readonly #immediate: Immediate;
  /** Members that were given the next slice, in that order; those that left since are no longer ready. */
  #ready: SliceMember[] = [];
  #running: SliceMember[] = [];
  /** Slices of this turn that are yet to come. */
  #queued = 0;
  /** Of this turn that had anybody to deliver to. */
  #used = 0;
  #inSlice = false;

  /** @param afterSlice called once after all members of a slice stood still: the moment to commit what they left. */
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

  /** Take a session out: it is over. */
  leave(member: SliceMember): void {
    member.isReady = false;
  }

  /** Whether agents are running this very moment. */
  get inSlice(): boolean {
    return this.#inSlice;
  }

  readonly #open = (): void => {
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
  };

  readonly #close = (): void => {
    this.#queued--;
    if (this.#inSlice) this.#endSlice();
    if (this.#ready.length > 0) this.#queue();
  };

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
