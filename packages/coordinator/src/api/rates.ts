// `Rates` limit how often a token may make each kind of call.
//
// There is a bucket for each token and kind of call, filled at a rate up to a burst; each call takes one out.
// A full bucket is the same as a new one. Full buckets are removed when there are more than 10,000 buckets,
// and more than twice as many as after the last removal.

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

  /** @throws Refusal `rate_limited`, with the time to wait. */
  take(kind: string, tokenId: string): void {
    const rate = this.#rates[kind];
    if (rate === undefined) return;
    const key = `${kind} ${tokenId}`;
    const now = this.#now();
    const bucket = this.#buckets.get(key) ?? { left: rate.burst, at: now };
    const left = filled(bucket, rate, now);
    // mutant: rate-unlimited
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
