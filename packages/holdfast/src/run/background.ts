// `runInBackground`: the same command line in a process of its own, which stays when its terminal is gone.
//
//   - The command returns once the session runs. An error before that is passed on as the command's own.
//   - The process writes to a log of the user's data folder. The newest `LOGS_KEPT` logs are kept.
//   - Everything else is as for any process that runs a session: `attach` follows it, `list` names it, and
//     after its death `resume` continues the session.

import { spawn } from "node:child_process";
import { closeSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { HoldfastError, type ErrorCode, type ErrorDetails } from "@holdfast/core";
import { dataFolder, makePrivateFolder, openPrivateAppend, withHandedKeys } from "@holdfast/system";
import { COMMON_OPTIONS, type Arguments, type Io, type Options } from "@holdfast/terminal/frame/command";
import { plain } from "@holdfast/terminal/frame/plain-text";

const LOOK_MS = 100;
const LOGS_KEPT = 100;
const SHOWN_CHARS = 2_000;

interface BackgroundCall {
  readonly command: "run" | "resume";
  /** The options of the command. The call's own are passed on. */
  readonly options: Options;
  /** The arguments of the command. */
  readonly words: readonly string[];
  readonly sessionId: string;
  /** The input. The process gets it by its standard input, where no other user sees it. */
  readonly input?: unknown;
}

/** @returns the exit code. */
export async function runInBackground(call: BackgroundCall, args: Arguments, io: Io): Promise<number> {
  const { sessionId, input } = call;
  const log = logOf(sessionId, io);
  makePrivateFolder(dirname(log));
  removeOldLogs(dirname(log));
  rmSync(log, { force: true });
  const output = openPrivateAppend(log);
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1]!, ...wordsOf(call, args)], {
    cwd: io.cwd,
    detached: true,
    stdio: [input === undefined ? "ignore" : "pipe", output, output],
    env: withHandedKeys(process.env, io.keys.handed),
  });
  closeSync(output);
  child.stdin?.on("error", () => {}); // It ended first, and its end is shown.
  child.stdin?.end(JSON.stringify(input));
  const ended = new Promise<boolean>((over) => {
    child.on("error", () => over(false));
    child.on("exit", (code) => over(code === 0));
  });
  const begun = async (): Promise<boolean> => {
    while (!hasBegun(log)) await delay(LOOK_MS);
    return true;
  };
  if (!(await Promise.race([ended, begun()]))) throw errorIn(log);
  child.unref();
  io.note("runs in the background");
  io.note(`  follow it:    ${io.call(`attach ${sessionId}`)}`);
  io.note(`  stop it:      ${io.call(`cancel ${sessionId}`)}`);
  io.note(`  see them all: ${io.call("top")}`);
  io.note(`  answer them:  ${io.call("inbox")}`);
  io.result({ sessionId, pid: child.pid, log }, sessionId);
  return 0;
}

function wordsOf(
  { command, options, words, sessionId, input }: BackgroundCall,
  args: Arguments,
): readonly string[] {
  const given = Object.entries({ ...COMMON_OPTIONS, ...options }).flatMap(([name, { value }]) => {
    if (
      name === "json" ||
      name === "detach" ||
      name === "session" ||
      (name === "input" && input !== undefined)
    )
      return [];
    if (value === undefined) return args.has(name) ? [`--${name}`] : [];
    return args.texts(name).map((text) => `--${name}=${text}`);
  });
  return [
    command,
    ...given,
    "--json",
    ...(command === "run" ? [`--session=${sessionId}`] : []),
    ...(input === undefined ? [] : ["--input=-"]),
    "--",
    ...words,
  ];
}

/** The error that the process has written last. */
function errorIn(log: string): HoldfastError {
  const written = readFileSync(log, "utf8").trimEnd();
  rmSync(log, { force: true });
  try {
    const { code, message, ...details } = JSON.parse(written.split("\n").at(-1)!) as ErrorJson;
    return new HoldfastError(code.slice("E_".length).toLowerCase() as ErrorCode, message, details);
  } catch {
    return new HoldfastError("agent_error", "the process ended before its session ran", {
      got: plain(written.slice(-SHOWN_CHARS)),
      fix: "run it without --detach to see more",
    });
  }
}

interface ErrorJson extends ErrorDetails {
  readonly code: string;
  readonly message: string;
}

/** Whether the session has begun: with `--json` the command says so first. */
function hasBegun(log: string): boolean {
  return /^\{"type":"session"/m.test(readFileSync(log, "utf8"));
}

/** Forgets what the process of a deleted session has written. */
export function removeLog(sessionId: string, io: Pick<Io, "env">): void {
  rmSync(logOf(sessionId, io), { force: true });
}

function logOf(sessionId: string, io: Pick<Io, "env">): string {
  return join(dataFolder(io), "background", `${sessionId}.log`);
}

function removeOldLogs(folder: string): void {
  const changed = (name: string): number => statSync(join(folder, name)).mtimeMs;
  const logs = readdirSync(folder).toSorted((a, b) => changed(a) - changed(b));
  for (const name of logs.slice(0, Math.max(0, logs.length - LOGS_KEPT + 1)))
    rmSync(join(folder, name), { force: true });
}
