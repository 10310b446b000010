// Preloaded into a process (`node --import`) whose wall clock a test sets. The file named by
// HOLDFAST_TEST_CLOCK holds the clock's error in milliseconds, and a change takes effect at once. Monotonic
// clocks do not change, as when a real clock is set.

import { readFileSync } from "node:fs";

const file = process.env["HOLDFAST_TEST_CLOCK"];
/** Asked thousands of times a second, and set by hand. */
const READ_EVERY_MS = 10;

let readAt = -Infinity;
let offMs = 0;

function off(): number {
  if (file === undefined || performance.now() - readAt < READ_EVERY_MS) return offMs;
  readAt = performance.now();
  try {
    offMs = Number(readFileSync(file, "utf8"));
  } catch {
    offMs = 0; // Nobody has set it yet.
  }
  return offMs;
}

const realNow = Date.now.bind(Date);
const now = (): number => realNow() + off();

Date.now = now; // Others may put theirs over it, and call this one.
globalThis.Date = new Proxy(Date, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget) as object,
});
