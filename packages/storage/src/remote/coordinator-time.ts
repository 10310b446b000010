// The coordinator's time, as a process elsewhere knows it: what an answer said it is there, and how long ago that was.
//
//   coordinator-time-4. It is never later than the coordinator's clock, so that nothing that is planned by it happens
//       early there (S3). What was said is counted on a little slower than this machine's monotonic clock goes: neither
//       crystals nor a coordinator that draws its clock towards another one differ by more. Each answer makes up for
//       that, and a stream of arrivals brings one again and again.
//   coordinator-time-5. It goes back only where an answer shows that it is ahead, as when another coordinator has taken
//       over that knows of an earlier time, and then at once: whoever waited until the time there has come as far would
//       wait for as long as it is behind. A session's own time does not go back for all that (D3).
//   coordinator-time-6. Once an answer was heard, the wall clock of this machine counts for nothing.
//
// It knows no requests: it is told when one was sent and what its answer said.

import type { Clock } from "@holdfast/core";

const RATE = 0.98;

interface Heard {
  readonly time: number;
  /** By the monotonic clock. */
  readonly at: number;
}

export class CoordinatorTime {
  readonly #machine: Pick<Clock, "now" | "monotonic">;
  #heard: Heard | undefined;

  constructor(machine: Pick<Clock, "now" | "monotonic">) {
    this.#machine = machine;
  }

  /** Epoch milliseconds. */
  now(): number {
    if (this.#heard === undefined) return this.#machine.now();
    return Math.floor(countedOn(this.#heard, this.#machine.monotonic()));
  }

  /** How long ago it was this time there, by what was heard last; 0 when it has not been yet. */
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
    this.heard(Number(answer.now), askedAt);
    return answer;
  }

  /** @param askedAt by the monotonic clock: at some moment since then it was this time there. */
  heard(time: number, askedAt: number): void {
    const at = this.#machine.monotonic();
    if (this.#heard === undefined || countedOn(this.#heard, at) < time) {
      this.#heard = { time, at };
      return;
    }
    // coordinator-time-5. However soon after the question it was read. What was asked before the last answer may be older than that.
    const latest = time + (at - askedAt) / RATE;
    if (askedAt >= this.#heard.at && countedOn(this.#heard, at) > latest) this.#heard = { time, at };
  }
}

function countedOn({ time, at }: Heard, now: number): number {
  return time + (now - at) * RATE;
}
