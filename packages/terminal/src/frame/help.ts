// The help, from the data of the commands.

import { COMMON_OPTIONS, type Command, type Options } from "./command.ts";
import { table, wrapped } from "./plain-text.ts";

const WIDTH = 100;

export const USAGE = "usage: holdfast COMMAND [OPTIONS]";

/** The exit codes of the command; `docs/errors.md` lists the errors behind each. */
export const EXIT_CODES: Readonly<Record<number, string>> = {
  0: "done",
  1: "the session failed, or is paused",
  2: "wrong usage",
  3: "the agent's file or the configuration is wrong",
  4: "not found",
  5: "the model's provider refused the key, or the coordinator the token",
  6: "a conflict: claimed, locked, ended, cancelled",
  7: "the model or the coordinator is not available, or a port is taken",
  9: "a budget",
  10: "storage",
  11: "incompatible version, also of Node",
  12: "refused by a policy",
  70: "a defect of Holdfast",
  129: "stopped: the terminal was closed",
  130: "stopped: Ctrl-C",
  137: "ended by force, also by the watchdog when an agent kept the process busy",
  143: "stopped: asked to end",
};

/** @param groups the commands by subject, each with its summary. */
export function overview(
  groups: readonly (readonly [subject: string, summaries: Readonly<Record<string, string>>])[],
): string {
  // One table, so that the summaries of all groups stand in one column.
  const lines = table(groups.flatMap(([, summaries]) => Object.entries(summaries)));
  return [
    "Holdfast runs AI agents that must not lose their work.",
    "",
    USAGE,
    "",
    ...groups.flatMap(([subject, summaries]) => [
      subject,
      ...indented(lines.splice(0, Object.keys(summaries).length)),
      "",
    ]),
    "Options of every command",
    ...indented(optionLines(COMMON_OPTIONS)),
    "",
    "Examples",
    ...indented(
      table([
        [`holdfast run hello.ts --input '{"name": "Ada"}'`, "run an agent"],
        ["holdfast list", "its session, and all others of this project"],
        ["holdfast resume --last", "continue after a crash, or after Ctrl-C"],
      ]),
    ),
    "",
    "Exit codes",
    ...indented(table(Object.entries(EXIT_CODES).map(([code, means]) => [code, means]))),
    "",
    "`holdfast COMMAND --help` explains a command, with examples.",
    "",
  ].join("\n");
}

export function commandHelp({ usage, description, options, examples }: Command, summary: string): string {
  const own = optionLines(options);
  const common = Object.fromEntries(
    Object.entries(COMMON_OPTIONS).filter(([name]) => !Object.hasOwn(options, name)),
  );
  return [
    `${summary}.`,
    "",
    `usage: holdfast ${usage}`,
    ...(description === undefined ? [] : ["", ...wrapped(description, WIDTH)]),
    ...(own.length === 0 ? [] : ["", "Options", ...indented(own)]),
    "",
    "Options of every command",
    ...indented(optionLines(common)),
    "",
    "Examples",
    ...indented(
      examples.flatMap(([commandLine, does]) => [
        commandLine.includes("holdfast ") ? commandLine : `holdfast ${commandLine}`,
        `    ${does}`,
      ]),
    ),
    "",
  ].join("\n");
}

function optionLines(options: Options): string[] {
  return table(
    Object.entries(options).map(([name, { help, value, short }]) => [
      `${short === undefined ? "    " : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`,
      help,
    ]),
  );
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}
