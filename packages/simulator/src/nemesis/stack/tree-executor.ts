// An executor with a tree of processes, for the local stack under kills. It runs as a program of its own.
//
//   - It holds an abstract socket with the name of its session while it lives. A second executor of the same
//     session finds the name taken, and says so.
//   - It leaves processes behind in its process group and in a group of their own. Somebody else must end
//     them.
//   - It writes down which of its reports were acknowledged, so that a loss of one is noticed.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { monotonicMs } from "../observed.ts";

/** One line of the file `executors.jsonl` beside the project. */
export interface ExecutorLine {
  readonly at: number;
  readonly sessionId: string;
  readonly what: "began" | "acknowledged" | "second" | "variable" | "ended";
  /** The text of an acknowledged report, or the name of a variable. */
  readonly text: string;
}

const STEPS = 4;
const STEP_MS = 120;
/** All that an executor may find in its environment. */
const VARIABLES = /^(PATH|HOME|LANG|TERM|TMPDIR|AGENT_\w+|HOLDFAST_(EXECUTION|TAG)|LC_CTYPE|PWD|SHLVL|_)$/;

if (process.argv.includes("--schema")) process.exit(1);
const { session_id: sessionId, mode } = JSON.parse(readFileSync(0, "utf8")) as {
  readonly session_id: string;
  readonly mode: string;
};
note("began", mode);
const lock = createServer().listen(`\0holdfast-stack-${sessionId}`);
await once(lock, "listening").catch(() => note("second", mode));
for (const name of Object.keys(process.env)) if (!VARIABLES.test(name)) note("variable", name);
// Somebody else must end these processes.
spawn("sh", ["-c", "sleep 600 & setsid sleep 600 & wait"], { stdio: "ignore" }).unref();
for (let step = 0; step < STEPS; step++) {
  const text = `${mode} ${process.pid} ${step}`;
  await report({ event_type: "message", role: "assistant", content: text });
  note("acknowledged", text);
  await sleep(STEP_MS);
}
await report({ event_type: "result", result_text: "done" });
note("ended", mode);
process.exit(0);

function note(what: ExecutorLine["what"], text: string): void {
  const line: ExecutorLine = { at: monotonicMs(), sessionId, what, text };
  appendFileSync("../executors.jsonl", `${JSON.stringify(line)}\n`);
}

async function report(event: object): Promise<void> {
  const response = await fetch(`${process.env["AGENT_ORCHESTRATOR_API_URL"]}/events`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(event),
  });
  if (!response.ok) throw new Error(`the report was answered ${response.status}: ${await response.text()}`);
}
