// The `holdfast` command: finds the command that is meant, runs it, and turns what it throws into an exit
// code.

import { Console } from "node:console";
import { defined, didYouMean, HoldfastError, NotFoundError, toError, VERSION } from "@holdfast/core";
import type { OwnKeys } from "@holdfast/system";
import { parseArguments, refuse } from "@holdfast/terminal/frame/arguments";
import { errorJson, errorText, shownError } from "@holdfast/terminal/frame/command-error";
import { COMMANDS, GROUPS, type ListedCommand } from "./commands/index.ts";
import { placeOf } from "@holdfast/terminal/frame/error-place";
import { commandHelp, overview, USAGE } from "@holdfast/terminal/frame/help";
import { restoreTerminal } from "@holdfast/terminal/frame/screen/held-terminal";
import { Terminal } from "@holdfast/terminal/frame/terminal";

const NO_KEYS: OwnKeys = { handed: new Set(), visible: new Set(), exposed: [] };

/**
 * @param keys of the environment of this process.
 * @returns the exit code.
 */
export async function main(argv: string[], keys: OwnKeys = NO_KEYS): Promise<number> {
  if (!hasFolder()) {
    const gone = new NotFoundError("file_not_found", "the current folder no longer exists", {
      fix: "change to a folder that exists: cd",
    });
    process.stderr.write(
      `${saysJson(argv) ? errorJson(shownError(gone), false) : errorText(shownError(gone), false)}\n`,
    );
    return 2;
  }
  const terminal = new Terminal(keys);
  // Output that agents print is for people; standard output is for the result.
  globalThis.console = new Console(process.stderr, process.stderr);
  const io = terminal.io({
    isJson: saysJson(argv),
    debug: argv.includes("--debug"),
    db: undefined,
    url: undefined,
  });
  let isOver = false;
  const complainAtEnd = (error: unknown): number => {
    isOver = true;
    const code = io.complain(error);
    if (terminal.lastWords !== undefined) io.note(`continue with: ${terminal.lastWords}`);
    return code;
  };
  process.on("uncaughtException", (error) => process.exit(complainAtEnd(uncaught(error))));
  // A call of process.exit in an agent, or a top level that never settles, must not look like success.
  process.on("exit", (code) => {
    if (isOver || terminal.isStopped) return;
    const exitCode = complainAtEnd(endedEarly(code));
    if (code === 0) process.exitCode = exitCode;
  });
  let code: number;
  try {
    code = await dispatch(argv, terminal);
  } catch (error) {
    code = io.complain(error);
  }
  await terminal.drained();
  isOver = true;
  return code;
}

/** Written by `holdfast init`. */
const FIRST_AGENT = "agents/first-agent.ts";

/** Whether the folder we were called in is still there; Node throws a stack of its own. */
function hasFolder(): boolean {
  try {
    return process.cwd() !== "";
  } catch {
    return false;
  }
}

async function dispatch(argv: readonly string[], terminal: Terminal): Promise<number> {
  const [word, ...rest] = argv;
  if (word === undefined) {
    const { call } = terminal.io({ isJson: false, debug: false, db: undefined, url: undefined });
    const begin = `\`${call("init")}\` writes an agent that needs no key, and \`${call(`run ${FIRST_AGENT}`)}\` runs it`;
    terminal.printError(
      `${USAGE}\n\nBegin: ${begin}.\n\nCommands: ${Object.keys(COMMANDS).join(", ")}\n\`holdfast --help\` explains them.\n`,
    );
    return 2;
  }
  if (word === "--version" || word === "-v") {
    terminal.print(`${VERSION}\n`);
    return 0;
  }
  const isHelp = word === "help" || word === "--help" || word === "-h";
  const [named] = rest;
  if (isHelp && (named === undefined || named.startsWith("-"))) {
    terminal.print(overview(GROUPS));
    return 0;
  }
  const name = isHelp ? named! : word;
  const { summary, load } = findCommand(name);
  const command = await load();
  if (isHelp || asksForHelp(rest)) {
    terminal.print(commandHelp(command, summary));
    return 0;
  }
  const args = parseArguments(rest, command);
  const io = terminal.io({
    isJson: args.has("json"),
    debug: args.has("debug"),
    db: args.text("db"),
    url: args.text("url"),
  });
  restoreTerminal(io);
  // Every program that is started from here on is found by this variable.
  const { withoutProject } = await import("@holdfast/place/program-path");
  process.env["PATH"] = withoutProject(process.env["PATH"] ?? "", io);
  return command.run(args, io);
}

function findCommand(name: string): ListedCommand {
  const found = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (found !== undefined) return found;
  const names = Object.keys(COMMANDS);
  const what = name.startsWith("-")
    ? "the command comes first, before its options"
    : `there is no command ${name}`;
  const isFile = /\.[cm]?[jt]s$/.test(name);
  throw refuse(`${what}${didYouMean(name, names)}`, "COMMAND [OPTIONS]", {
    got: name,
    fix: isFile ? `run the agent with: holdfast run ${name}` : `use one of ${names.join(", ")}`,
  });
}

/**
 * Help is shown before the rest is checked: a person who asks for help may not know how to call the command.
 */
function asksForHelp(words: readonly string[]): boolean {
  const end = words.indexOf("--");
  return (end < 0 ? words : words.slice(0, end)).some((word) => word === "--help" || word === "-h");
}

function saysJson(words: readonly string[]): boolean {
  const end = words.indexOf("--");
  return (end < 0 ? words : words.slice(0, end)).includes("--json");
}

/** Node's exit code when nothing is left that a promise of the top level could wait for. */
const UNSETTLED = 13;

function endedEarly(code: number): HoldfastError {
  const what =
    code === UNSETTLED
      ? "the command had nothing left to wait for"
      : `something called process.exit(${code})`;
  return new HoldfastError("agent_error", `the process ended before the command did: ${what}`, {
    expected: "an agent, tasks and a file that do not end the process",
    fix: "throw an error instead, or return; committed work is kept",
  });
}

/** Something threw where nobody could catch it: a timer or an event of a task, most likely. */
function uncaught(thrown: unknown): HoldfastError {
  if (HoldfastError.is(thrown)) return thrown;
  const error = toError(thrown);
  const place = placeOf(error);
  return new HoldfastError("agent_error", `nobody caught ${error.name}: ${error.message}`, {
    ...defined({ at: place }),
    fix: "catch the error where it happens; committed work is kept",
    cause: error,
  });
}
