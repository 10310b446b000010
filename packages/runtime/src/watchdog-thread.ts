// The watchdog's own thread. It shares memory with the process it watches, and nothing else.

import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { accuse, WATCHDOG_HEADER_BYTES, type WatchdogThreadData } from "./watchdog.ts";

const { shared, sliceMs, path, pid } = workerData as WatchdogThreadData;
const state = new Int32Array(shared, 0, 3);
const names = new Uint8Array(shared, WATCHDOG_HEADER_BYTES);

let slice = -1;
let since = 0;

setInterval(
  () => {
    const now = performance.now();
    const opened = Atomics.load(state, 0);
    const open = Atomics.load(state, 1) === 1;
    if (!open || opened !== slice) {
      slice = opened;
      since = now;
      return;
    }
    if (now - since >= sliceMs) end();
  },
  Math.max(10, sliceMs / 10),
);

function end(): void {
  const sessionIds = new TextDecoder().decode(names.slice(0, state[2])).split("\n").slice(0, -1);
  if (path !== undefined) accuse(path, sessionIds);
  const who = sessionIds.length === 1 ? `session ${sessionIds[0]}` : `one of ${sessionIds.length} sessions`;
  // Standard error directly: the process's own streams belong to the thread that is stuck.
  writeSync(
    2,
    `error[E_AGENT_BUSY]: ${who} kept the process busy for more than ${sliceMs} ms without awaiting\n` +
      `  expected: agents compute between two awaits for a moment only; long work belongs in a task\n` +
      `  fix: move the loop into ctx.run() or a task; nothing committed is lost, and \`holdfast resume\` goes on\n`,
  );
  process.kill(pid, "SIGKILL");
}
