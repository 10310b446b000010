// The watchdog's own thread. It shares memory with the process it watches, and nothing else.

import { writeSync } from "node:fs";
import { Session } from "node:inspector";
import { workerData } from "node:worker_threads";
import { lineOf } from "@holdfast/core";
import { accuse, WATCHDOG_HEADER_BYTES, type WatchdogThreadData } from "./watchdog.ts";

const { shared, sliceMs, path, pid } = workerData as WatchdogThreadData;
const state = new Int32Array(shared, 0, 3);
const names = new Uint8Array(shared, WATCHDOG_HEADER_BYTES);

/** How long a process that is stuck may take to say where. */
const PAUSE_MS = 1_000;

let slice = -1;
let since = 0;

const looking = setInterval(
  () => {
    const now = performance.now();
    const opened = Atomics.load(state, 0);
    const open = Atomics.load(state, 1) === 1;
    if (!open || opened !== slice) {
      slice = opened;
      since = now;
      return;
    }
    if (now - since < sliceMs) return;
    clearInterval(looking);
    // Now: should the slice end after all, the next one would write other names.
    const sessionIds = new TextDecoder().decode(names.slice(0, state[2])).split("\n").slice(0, -1);
    whereStuck((place) => end(sessionIds, place));
  },
  Math.max(10, sliceMs / 10),
);

/**
 * Ask the process's engine to pause, which it does in the middle of a loop, and answer with the author's line where it stands.
 * Once, soon, and whatever happens: a process that is stuck must end.
 */
function whereStuck(answer: (place: string | undefined) => void): void {
  let isAnswered = false;
  const answerOnce = (place: string | undefined): void => {
    if (isAnswered) return;
    isAnswered = true;
    answer(place);
  };
  setTimeout(() => answerOnce(undefined), PAUSE_MS);
  try {
    const urls = new Map<string, string>();
    const session = new Session();
    session.connectToMainThread();
    session.on("Debugger.scriptParsed", ({ params }) => void urls.set(params.scriptId, params.url));
    session.on("Debugger.paused", ({ params }) => {
      const frames = params.callFrames.map(({ location: { scriptId, lineNumber, columnNumber = 0 } }) => {
        return `    at ${urls.get(scriptId) ?? ""}:${lineNumber + 1}:${columnNumber + 1}`;
      });
      answerOnce(lineOf(Object.assign(new Error(), { stack: frames.join("\n") })));
    });
    session.post("Debugger.enable", () => session.post("Debugger.pause"));
  } catch {
    answerOnce(undefined);
  }
}

function end(sessionIds: readonly string[], place: string | undefined): void {
  if (path !== undefined) accuse(path, sessionIds, place);
  const who = sessionIds.length === 1 ? `session ${sessionIds[0]}` : `one of ${sessionIds.length} sessions`;
  // Standard error directly: the process's own streams belong to the thread that is stuck.
  writeSync(
    2,
    `error[E_AGENT_BUSY]: ${who} kept the process busy for more than ${sliceMs} ms without awaiting\n` +
      (place === undefined ? "" : `  at: ${place}\n`) +
      `  expected: agents compute between two awaits for a moment only; long work belongs in a task\n` +
      `  fix: move the loop into ctx.run() or a task; nothing committed is lost, and \`holdfast resume\` goes on\n`,
  );
  process.kill(pid, "SIGKILL");
}
