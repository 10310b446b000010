// How often a token may do what.
//
// A bucket per token and kind of call, filled at a rate up to a burst; each call takes one out. One that is full says nothing that a
// new one would not, so full ones are forgotten whenever there are twice as many as were left the last time.

import { Refusal } from "../call/refusal.ts";

export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

interface Bucket {
  left: number;
  at: number;
}

const BUCKETS_MIN = 10_000;

export class Rates {
  readonly #rates: Readonly<Record<string, Rate>>;
  readonly #now: () => number;
  readonly #buckets = new Map<string, Bucket>();
  #forgetAt = BUCKETS_MIN;

  /** @param now milliseconds that only grow. */
  constructor(rates: Readonly<Record<string, Rate>>, now: () => number) {
    this.#rates = rates;
    this.#now = now;
  }

  /** @throws Refusal `rate_limited`, which says when again. */
  take(kind: string, tokenId: string): void {
    const rate = this.#rates[kind];
    if (rate === undefined) return;
    const key = `${kind} ${tokenId}`;
    const now = this.#now();
    const bucket = this.#buckets.get(key) ?? { left: rate.burst, at: now };
    const left = filled(bucket, rate, now);
    if (left < 1) {
      const retryAfterMs = ((1 - left) / rate.perSecond) * 1000;
      throw new Refusal("rate_limited", `the token has reached its limit of ${kind}s`, {
        expected: `at most ${rate.perSecond} ${kind}s a second, in bursts of at most ${rate.burst}`,
        fix: `try again in ${Math.ceil(retryAfterMs)} ms`,
        retryAfterMs,
      });
    }
    this.#buckets.set(key, { left: left - 1, at: now });
    if (this.#buckets.size > this.#forgetAt) this.#forgetFull(now);
  }

  #forgetFull(now: number): void {
    for (const [key, bucket] of this.#buckets) {
      const rate = this.#rates[key.slice(0, key.indexOf(" "))];
      if (rate === undefined || filled(bucket, rate, now) >= rate.burst) this.#buckets.delete(key);
    }
    this.#forgetAt = Math.max(BUCKETS_MIN, 2 * this.#buckets.size);
  }
}

function filled(bucket: Bucket, rate: Rate, now: number): number {
  return Math.min(rate.burst, bucket.left + ((now - bucket.at) / 1000) * rate.perSecond);
}
