// The ports of a Node process: `systemClock`, `systemRandom`, `sha256` and `environmentSecrets`.

import { hash, randomBytes } from "node:crypto";
import { clearTimeout, setTimeout } from "node:timers";
import type { AgentStorage, AgentTracer, Clock, Hash, Random } from "@holdfast/core";
import { keyVariables, type SecretSource } from "@holdfast/system";

const MAX_TIMEOUT_MS = 2 ** 31 - 1;

// Read before other code patches them, such as the fake timers of a test runner.
const wallNow = Date.now.bind(Date);
const monotonicNow = performance.now.bind(performance);

export const systemClock: Clock = {
  now: wallNow,
  monotonic: monotonicNow,
  setTimer(callback, ms, isIdle = false) {
    // `setTimeout` counts from the start of its turn of the event loop, so it may be early. Beyond 2^31-1 ms
    // it fires at once.
    let timer: NodeJS.Timeout;
    const dueAt = monotonicNow() + ms;
    const arm = (leftMs: number): void => {
      timer = setTimeout(look, Math.min(Math.ceil(leftMs), MAX_TIMEOUT_MS));
      if (isIdle) timer.unref();
    };
    const look = (): void => {
      const leftMs = dueAt - monotonicNow();
      if (leftMs > 0) arm(leftMs);
      else callback();
    };
    arm(Math.max(0, ms));
    return () => clearTimeout(timer);
  },
};

/** The clock of this process, or the time of a storage that has a clock of its own. */
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

/** The hash of the empty input, which most closures have. Made on demand: the first hash of a process takes 2 ms. */
let emptySha256: string | undefined;

export const sha256: Hash = (text) => {
  if (text !== "") return hash("sha256", text, "base64url");
  emptySha256 ??= hash("sha256", "", "base64url");
  return emptySha256;
};

/** A tracer that drops every event. */
export const silentTracer: AgentTracer = { trace() {} };

/** Secrets by the names of environment variables. Only declared names are asked for. */
export const environmentSecrets: SecretSource = { get: (name) => process.env[name] };

/** The values of the variables that are keys. */
export function environmentKeys(): readonly string[] {
  return keyVariables(process.env).flatMap((name) => process.env[name] ?? []);
}

/** Whether to check for mistakes that cost a little to find. */
export function isDevelopment(): boolean {
  return process.env["NODE_ENV"] !== "production";
}
