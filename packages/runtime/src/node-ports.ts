// The ports of a Node process: real time, real randomness, SHA-256.

import { hash, randomBytes } from "node:crypto";
import type { AgentStorage, AgentTracer, Clock, Hash, Random } from "@holdfast/core";

const MAX_TIMEOUT_MS = 2 ** 31 - 1;

// Taken before anybody patches them, our own development checks included.
const wallNow = Date.now.bind(Date);
const monotonicNow = performance.now.bind(performance);
const realTimeout = setTimeout;

export const systemClock: Clock = {
  now: wallNow,
  monotonic: monotonicNow,
  setTimer(callback, ms, isIdle = false) {
    // `setTimeout` fires at once beyond 2^31-1 ms, so longer ones are made of several.
    let timer: NodeJS.Timeout;
    const arm = (left: number): void => {
      const now = Math.min(left, MAX_TIMEOUT_MS);
      timer = realTimeout(() => (left > now ? arm(left - now) : callback()), now);
      if (isIdle) timer.unref();
    };
    arm(Math.max(0, Math.ceil(ms)));
    return () => clearTimeout(timer);
  },
};

/** This process's clock, going by a storage's time where that is another one. */
export function clockFor(storage: AgentStorage): Clock {
  return storage.now === undefined ? systemClock : { ...systemClock, now: () => storage.now!() };
}

/** Unpredictable 32-bit integers, drawn 1,024 at a time because each draw is a system call. */
export function systemRandom(): Random {
  let pool = new Uint32Array(0);
  let next = 0;
  return {
    u32() {
      if (next === pool.length) {
        const bytes = randomBytes(4_096);
        pool = new Uint32Array(bytes.buffer, bytes.byteOffset, 1_024);
        next = 0;
      }
      return pool[next++]!;
    },
  };
}

/** Of no input, which most closures have. Made when first asked for: the first hash of a process takes 2 ms. */
let emptySha256: string | undefined;

export const sha256: Hash = (text) => {
  if (text !== "") return hash("sha256", text, "base64url");
  emptySha256 ??= hash("sha256", "", "base64url");
  return emptySha256;
};

export const silentTracer: AgentTracer = { trace() {} };

/** Whether mistakes should be looked for that cost a little to find. */
export function isDevelopment(): boolean {
  return process.env["NODE_ENV"] !== "production";
}
