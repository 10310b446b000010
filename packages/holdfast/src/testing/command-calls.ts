// `callCommand`: commands without processes of their own, by a process that calls them one after another
// (`command-server.ts`).
//
//   - Calls do not overlap: folder, environment and outputs belong to the whole process. A test that needs
//     two commands at once starts one of them.
//   command-calls-2. Node loads the code of a user once in a process. When a file with code has changed since
//       an earlier call, the next call is made in a new process.
//   - A command that continues a session has a new process, so that it has nothing but what is stored. A new
//     process costs as much as five calls, so `npm test` starts one for the first such command of each test
//     file. A campaign starts one for each (`HOLDFAST_CAMPAIGN`).

import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { entriesBelow } from "@holdfast/testkit";
import { expect } from "vitest";
import { isCampaign } from "@holdfast/testkit/campaign";
import type { Answer, Call } from "./command-server.ts";

/** The end of a command. */
export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

const SERVER = fileURLToPath(new URL("command-server.ts", import.meta.url));
const CODE = /\.[cm]?[jt]s$/;

/** The test files in which a session was continued by a new process. */
const continuedIn = new Set<string | undefined>();
let server: ChildProcess | undefined;
let last: Promise<unknown> = Promise.resolve();

/** @param code what was known of the user's code in the project; it is brought up to date. */
export function callCommand(
  main: string,
  project: string,
  code: Map<string, number>,
  call: Call,
): Promise<Finished> {
  // Calls do not overlap: folder, environment and outputs belong to the whole process.
  const finished = last.then(() => {
    if (hasChangedCode(project, code) || needsNewProcess(call.args)) stop();
    server ??= start(main);
    return finish(server, call);
  });
  last = finished.catch(() => {});
  return finished;
}

async function finish(by: ChildProcess, call: Call): Promise<Finished> {
  const over = new AbortController();
  const answered = once(by, "message", over).then(([answer]) => ({ signal: null, ...(answer as Answer) }));
  const ended = once(by, "exit", over).then(([code, signal]): Finished => ({
    code: code as number,
    signal: signal as NodeJS.Signals,
    stdout: "",
    stderr: "",
  }));
  for (const one of [answered, ended]) one.catch(() => {}); // The later one is aborted.
  by.send(call);
  try {
    return await Promise.race([answered, ended]);
  } finally {
    over.abort();
  }
}

function needsNewProcess(args: readonly string[]): boolean {
  const { testPath } = expect.getState();
  if (!continues(args) || (!isCampaign && continuedIn.has(testPath))) return false;
  continuedIn.add(testPath);
  return true;
}

function continues([command = "", ...rest]: readonly string[]): boolean {
  if (command === "chat") return rest.includes("--session");
  return ["replay", "resume"].includes(command) || rest.includes("--continue");
}

/** command-calls-2. */
function hasChangedCode(project: string, code: Map<string, number>): boolean {
  let hasChanged = false;
  for (const entry of entriesBelow(project)) {
    if (!entry.isFile() || !CODE.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    const changedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    hasChanged ||= (code.get(path) ?? changedAt) !== changedAt;
    code.set(path, changedAt);
  }
  return hasChanged;
}

function stop(): void {
  server?.disconnect();
  server = undefined;
}

function start(main: string): ChildProcess {
  const started = fork(SERVER, [main], {
    execArgv: ["--no-warnings"],
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  started.once("exit", () => {
    if (server === started) server = undefined;
  });
  // It must not keep the worker of the tests.
  started.unref();
  started.channel?.unref();
  return started;
}
