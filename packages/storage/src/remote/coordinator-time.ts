// CoordinatorTime: the coordinator's time, as a process elsewhere knows it. It adds to the time in an answer
// the time that has passed since.
//
//   coordinator-time-4. The time is never later than the coordinator's clock, so that nothing that is planned
//       by it happens early there (S3). The answered time is counted on a little slower than this machine's
//       monotonic clock goes. Neither crystals nor a coordinator that draws its clock towards another clock
//       differ by more. Each answer makes up for that, and a stream of arrivals brings one again and again.
//   - The time goes back only where an answer shows that it is ahead, as after another coordinator with an
//     earlier time took over. It then goes back at once, as waiting for the time there to catch up could take
//     long. A session's own time does not go back for all that (D3).
//   - After the first answer, the wall clock of this machine counts for nothing.
//
// It makes no requests: callers report when a request was sent and what time its answer gave.

import type { Clock } from "@holdfast/core";

const RATE = 0.98;

interface ReceivedTime {
  readonly time: number;
  /** By the monotonic clock. */
  readonly at: number;
}

export class CoordinatorTime {
  readonly #machine: Pick<Clock, "now" | "monotonic">;
  #received: ReceivedTime | undefined;

  constructor(machine: Pick<Clock, "now" | "monotonic">) {
    this.#machine = machine;
  }

  /** Epoch milliseconds. */
  now(): number {
    // mutant: machine-time-used
    if (this.#received === undefined) return this.#machine.now();
    return Math.floor(countedOn(this.#received, this.#machine.monotonic()));
  }

  /** How long ago it was this time there, by the last answer; 0 for a time to come. */
  since(time: number): number {
    return Math.max(0, this.now() - time);
  }

  /** Milliseconds that never go back, of this machine. */
  monotonic(): number {
    return this.#machine.monotonic();
  }

  /** Ask something whose answer says what time it is there. Rejects as the call does. */
  async asking<Answer extends { readonly now: bigint }>(call: () => Promise<Answer>): Promise<Answer> {
    const askedAt = this.monotonic();
    const answer = await call();
    this.received(Number(answer.now), askedAt);
    return answer;
  }

  /** @param askedAt by the monotonic clock: at some moment since then it was this time there. */
  received(time: number, askedAt: number): void {
    const at = this.#machine.monotonic();
    if (this.#received === undefined || countedOn(this.#received, at) < time) {
      this.#received = { time, at };
      return;
    }
    // `latest` is the latest time that it can be there now. The answer to a call that was sent before the
    // last answer came may be older than that answer.
    const latest = time + (at - askedAt) / RATE;
    if (askedAt >= this.#received.at && countedOn(this.#received, at) > latest) this.#received = { time, at };
  }
}

function countedOn({ time, at }: ReceivedTime, now: number): number {
  return time + (now - at) * RATE;
}
