// The watchdog's own thread. It shares memory with the process it watches, and nothing else.

import { writeSync } from "node:fs";
import { Session } from "node:inspector";
import { workerData } from "node:worker_threads";
import { lineOf } from "@holdfast/core";
import { killStartedBy } from "../processes/started-processes.ts";
import {
  accuse,
  threadTime,
  WATCHDOG_NAMES_AT,
  WATCHDOG_STATE_AT,
  type WatchdogThreadData,
} from "./watchdog.ts";

const { shared, sliceMs, path, pid } = workerData as WatchdogThreadData;
const abandonAt = new BigInt64Array(shared, 0, 1);
const state = new Int32Array(shared, WATCHDOG_STATE_AT, 3);
const names = new Uint8Array(shared, WATCHDOG_NAMES_AT);

/** How long a process that is stuck may take to say where. */
const PAUSE_MS = 1_000;
/** A process that has not let go of its leases this long after the announced time is stuck. */
const OVERDUE_MS = 750;
const LOOK_MS = Math.max(10, sliceMs / 10);
/** Looks that are further apart mean that the process was suspended, and this thread with it. */
const STOPPED_MS = 4 * LOOK_MS;

let lookedAt = performance.now();
let slice = -1;
let openSince = 0;
let expected = 0n;
let overdueSince = Infinity;

const looking = setInterval(look, LOOK_MS);

function look(): void {
  const now = performance.now();
  // mutant: stopped-process-ended
  const wasStopped = now - lookedAt > STOPPED_MS; // watchdog-6.
  lookedAt = now;
  const opened = Atomics.load(state, 0);
  const open = Atomics.load(state, 1) === 1;
  if (!open || opened !== slice || wasStopped) openSince = open ? now : Infinity;
  slice = opened;
  const due = Atomics.load(abandonAt, 0);
  if (due !== expected || wasStopped) overdueSince = Infinity;
  expected = due;
  // mutant: process-without-leases-ended
  if (due !== 0n && threadTime() >= due) overdueSince = Math.min(overdueSince, now);
  const isSliceStuck = now - openSince >= sliceMs;
  const isOverdue = now - overdueSince >= OVERDUE_MS; // watchdog-4.
  if (!isSliceStuck && !isOverdue) return;
  clearInterval(looking);
  // Read the names now: if the slice ends after all, the next one writes other names.
  const written = new TextDecoder().decode(names.slice(0, state[2])).split("\n").slice(0, -1);
  const sessionIds = isSliceStuck || now - openSince >= OVERDUE_MS ? written : [];
  whereStuck((place) => end(sessionIds, place, isSliceStuck ? `for more than ${sliceMs} ms` : undefined));
}

/**
 * Ask V8 to pause the process, which works in the middle of a loop, and answer with the author's line there.
 * The answer comes once and soon, even without a line, as a process that is stuck must end.
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

/** @param howLong a slice was open; `undefined` when its leases are why the process ends. */
function end(sessionIds: readonly string[], place: string | undefined, howLong: string | undefined): void {
  killStartedBy(pid); // watchdog-5.
  try {
    if (path !== undefined && sessionIds.length > 0) accuse(path, sessionIds, place);
  } catch {
    // The names could not be written, so no session is accused; the process must end all the same.
  }
  const [only, ...others] = sessionIds;
  const who =
    only === undefined
      ? "something"
      : others.length === 0
        ? `session ${only}`
        : `one of ${sessionIds.length} sessions`;
  // Standard error directly: the process's own streams belong to the thread that is stuck.
  writeSync(
    2,
    `error[E_AGENT_BUSY]: ${who} kept the process busy ${howLong ?? "until its leases could expire,"} without awaiting\n` +
      (place === undefined ? "" : `  at: ${place}\n`) +
      `  expected: agents and tasks that compute only briefly between two awaits; long work of agents belongs in a task, long ` +
      `work of tasks in a process or thread of its own\n` +
      `  fix: move the loop there; nothing committed is lost, and \`holdfast resume\`, or another runner, resumes the session\n`,
  );
  process.kill(pid, "SIGKILL");
}
