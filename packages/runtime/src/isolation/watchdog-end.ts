// `endStuck`: how the watchdog's thread ends a process that is stuck. It is loaded only then.

import { writeSync } from "node:fs";
import { Session } from "node:inspector";
import { setTimeout } from "node:timers";
import { lineOf } from "@holdfast/core";
import { killStartedBy } from "@holdfast/system/processes";
import { accuse, type WatchdogThreadData } from "./watchdog.ts";

/** How long a process that is stuck may take to say where. */
const PAUSE_MS = 1_000;

/** Sessions of a slice, or a step, that keep the process `pid` busy. */
export interface Stuck extends Pick<WatchdogThreadData, "stepBlocksMs" | "path" | "pid"> {
  readonly sessionIds: readonly string[];
  readonly step: string | undefined;
  /** For how long, as text: `for more than 2000 ms`. */
  readonly howLong: string;
}

/** Says where the process is stuck, and kills it with all that it started. The sessions become suspects. */
export function endStuck(stuck: Stuck): void {
  whereStuck((place) => end(stuck, place));
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

function end({ sessionIds, step, howLong, stepBlocksMs, path, pid }: Stuck, place: string | undefined): void {
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
