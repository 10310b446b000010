// `holdfast local stop`, `status`, `restart` and `logs`: what a command asks of a stack that runs, or has
// run.

import { setTimeout as delay } from "node:timers/promises";
import { HoldfastError, NotFoundError, UsageError } from "@holdfast/core";
import { isRunning } from "@holdfast/system/processes";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import {
  COMPONENTS,
  findRunningStack,
  readStackState,
  stackPaths,
  type Component,
  type StackState,
} from "@holdfast/place/local-stack";
import { duration } from "@holdfast/terminal/frame/plain-text";
import { endOfLog, followLog, lastLines } from "./log-reader.ts";
import { whenStackStopped } from "./service/stack-service.ts";
import type { LogLine } from "./stack-log.ts";
import { statusLines } from "./stack-text.ts";

/** Longer than the supervisor takes after the grace to end everything by force. */
const STOP_MS = 25_000;
/** A stop that takes longer says why. */
const SILENT_MS = 1_000;
const RESTART_MS = 60_000;
const LOOK_MS = 30;
const NOT_RUNNING_EXIT = 4;
const FAILED_EXIT = 1;
const LINES = 100;

/** Stops the stack if it runs. @returns the exit code. */
export async function stopStack(io: Io): Promise<number> {
  const state = findRunningStack(io);
  if (state === undefined) {
    io.result({ status: "stopped" }, "");
    io.note("the local stack is not running");
    return 0;
  }
  const { supervisor, graceMs } = state;
  process.kill(supervisor.pid, "SIGTERM");
  const isGone = async (ms: number): Promise<boolean> => {
    for (const deadline = performance.now() + ms; performance.now() < deadline; await delay(LOOK_MS))
      if (!isRunning(supervisor)) return true;
    return false;
  };
  if (!(await isGone(SILENT_MS))) {
    const grace = duration(graceMs);
    io.note(
      `running steps have ${grace} to end; \`${io.call("local stop")}\` once more hands them over at once`,
    );
    if (!(await isGone(graceMs + STOP_MS))) process.kill(supervisor.pid, "SIGKILL");
  }
  io.result({ status: "stopped" }, "");
  io.note(
    `${io.notes.symbols.done} the local stack has stopped; its sessions stay, and a start continues them`,
  );
  const next = whenStackStopped(io);
  if (next !== undefined) io.note(`it is a service: ${next}; \`${io.call("local disable")}\` removes it`);
  return 0;
}

/** @returns the exit code: 4 when it is not running, 1 when it was given up. */
export function showStack(io: Io): number {
  const paths = stackPaths(io);
  const state = readStackState(paths);
  if (state === undefined) {
    io.result({ status: "stopped" }, "");
    io.note("the local stack was never started: `holdfast local start --agents FILE` starts it");
    return NOT_RUNNING_EXIT;
  }
  const isAlive = isRunning(state.supervisor);
  const status = isAlive || state.status === "failed" ? state.status : "stopped";
  io.show(
    { ...state, status, processes: isAlive ? state.processes : [], folder: paths.folder, log: paths.log },
    statusLines(state, isAlive, paths, Date.now()).join("\n"),
  );
  if (isAlive) return 0;
  return status === "failed" ? FAILED_EXIT : NOT_RUNNING_EXIT;
}

/** Starts coordinator and runner again. @returns the exit code. */
export async function restartStack(io: Io): Promise<number> {
  const before = findRunningStack(io);
  if (before === undefined)
    throw new NotFoundError("not_found", "the local stack is not running", {
      fix: "start it with `holdfast local start --agents FILE`",
    });
  process.kill(before.supervisor.pid, "SIGUSR2");
  const after = await untilRenewed(before, io);
  if (after.problem !== undefined)
    throw new HoldfastError("agent_invalid", `the agents were not loaded again: ${after.problem}`, {
      fix: "correct the file; the runner with its last version still runs",
    });
  io.result(after, "");
  io.note(`${io.notes.symbols.done} the coordinator and the runner were started again`);
  const draining = after.processes.filter(({ status }) => status === "draining").length;
  if (draining > 0) io.note("the runner before ends when its sessions have ended or continue in the new one");
  return 0;
}

async function untilRenewed({ supervisor, renewals }: StackState, io: Io): Promise<StackState> {
  for (const deadline = performance.now() + RESTART_MS; performance.now() < deadline; await delay(LOOK_MS)) {
    const now = findRunningStack(io);
    if (now === undefined || now.supervisor.pid !== supervisor.pid) break;
    if (now.renewals > renewals) return now;
  }
  throw new HoldfastError("unavailable", "the stack was not started again in time", {
    fix: "run `holdfast local status` and `holdfast local logs` to see why",
  });
}

// ---- logs --------------------------------------------------------------------------------------------------------

/** @returns the exit code. */
export async function showStackLogs(args: Arguments, io: Io): Promise<number> {
  const component = componentOf(args.text("component"));
  const lines = linesOf(args.text("lines"));
  const matches = (line: LogLine): boolean => component === undefined || line.component === component;
  const { log } = stackPaths(io);
  const from = endOfLog(log);
  const over = new AbortController();
  // Before the first line: a person who has seen it may press Ctrl-C.
  const release = args.has("follow") ? io.onStop(() => over.abort()) : () => {};
  try {
    for (const line of lastLines(log, lines, matches)) showLine(line, io);
    if (!args.has("follow")) return 0;
    for await (const line of followLog(log, from, over.signal)) {
      if (matches(line)) showLine(line, io);
      if (io.isOutputClosed) break;
    }
  } finally {
    release();
  }
  return 0;
}

function showLine(line: LogLine, io: Io): void {
  const { at, component, text } = line;
  io.show(line, `${io.results.paint.dim(at)} ${component.padEnd(11)} ${text}`);
}

function componentOf(text: string | undefined): Component | undefined {
  const found = COMPONENTS.find((component) => component === text);
  if (text === undefined || found !== undefined) return found;
  throw new UsageError(`the stack has no component "${text}"`, {
    at: "--component",
    expected: COMPONENTS.join(", "),
  });
}

function linesOf(text: string | undefined): number {
  if (text === undefined) return LINES;
  if (/^\d{1,7}$/.test(text)) return Number(text);
  throw new UsageError(`"${text}" is no number of lines`, { at: "--lines", expected: "a whole number" });
}
