// The watchdog's own thread. It shares memory with the process it watches, and receives the list of its
// claims.

import { writeSync } from "node:fs";
import { Session } from "node:inspector";
import { clearInterval, setInterval, setTimeout } from "node:timers";
import { parentPort, workerData } from "node:worker_threads";
import { lineOf, type RenewInThread } from "@holdfast/core";
import { killStartedBy } from "@holdfast/system";
import { accuse, threadTime, type HeldClaims, type WatchdogThreadData } from "./watchdog.ts";
import { WatchdogMemory } from "./watchdog-memory.ts";
import { BlockedRenewal } from "./blocked-renewal.ts";

const { shared, sliceMs, stepBlocksMs, path, pid } = workerData as WatchdogThreadData;
const memory = new WatchdogMemory(shared);
const renewal = new BlockedRenewal({
  memory,
  stepBlocksMs,
  threadTime,
  now: () => performance.now(),
  load: (module) => import(module) as Promise<{ readonly renew: RenewInThread }>,
});
parentPort?.on("message", (held: HeldClaims) => renewal.receive(held));

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
  const opened = memory.get("opened");
  const open = memory.get("isOpen") === 1;
  if (!open || opened !== slice || wasStopped) openSince = open ? now : Infinity;
  slice = opened;
  renewal.look(now);
  const due = renewal.abandonAt;
  if (due !== expected || wasStopped) overdueSince = Infinity;
  expected = due;
  // mutant: process-without-leases-ended
  if (due !== 0n && threadTime() >= due) overdueSince = Math.min(overdueSince, now);
  const isSliceStuck = now - openSince >= sliceMs;
  const isOverdue = now - overdueSince >= OVERDUE_MS; // watchdog-4.
  if (!isSliceStuck && !isOverdue && !renewal.isRefused) return;
  clearInterval(looking);
  // Read the names now: if the slice ends after all, the next one writes other names.
  const sessionIds = isSliceStuck || now - openSince >= OVERDUE_MS ? memory.sliceMembers : [];
  const busy: Busy = { sessionIds, step: sessionIds.length === 0 ? renewal.blockedBy : undefined };
  const howLong = isSliceStuck ? `for more than ${sliceMs} ms` : renewal.blockedText(now);
  whereStuck((place) => end(busy, place, howLong));
}

/** Sessions of a slice, or a step, that kept the process busy. */
interface Busy {
  readonly sessionIds: readonly string[];
  readonly step: string | undefined;
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

function end({ sessionIds, step }: Busy, place: string | undefined, howLong: string): void {
  killStartedBy(pid); // watchdog-5.
  try {
    if (path !== undefined && sessionIds.length > 0) accuse(path, sessionIds, place);
  } catch {
    // The names could not be written, so no session is accused; the process must end all the same.
  }
  const [only, ...others] = sessionIds;
  const sessions = others.length === 0 ? `session ${only}` : `one of ${sessionIds.length} sessions`;
  const who = only === undefined ? (step ?? "something") : sessions;
  // Standard error directly: the process's own streams belong to the thread that is stuck.
  writeSync(
    2,
    `error[E_AGENT_BUSY]: ${who} kept the process busy ${howLong} without awaiting\n` +
      (place === undefined ? "" : `  at: ${place}\n`) +
      `  expected: agents that compute only briefly between two awaits, and steps that block for less than their time-out, or ` +
      `${stepBlocksMs / 1_000} s\n` +
      `  fix: await the work, in a process of its own or in a task with \`inThread\`; nothing committed is lost, and \`holdfast resume\`, or another ` +
      `runner, resumes the session\n`,
  );
  process.kill(pid, "SIGKILL");
}
