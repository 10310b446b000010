// `readingsOf`: the command that a line shows, and those behind its wrappers. Pure.
//
//   - A command that may run something else than its readings is `hidden`: no rule allows it, and a
//     restriction asks.
//   - A shell that runs a file of commands is allowed by a rule that names the file. No line shows the
//     commands in it, so a restriction asks.
//   - No rule allows a reading that is not `allowable`, as the wrapper or a variable before it changes what
//     happens.

import {
  ARITHMETIC_BUILTINS,
  CAREFUL_PROGRAMS,
  DECISIVE_VARIABLE,
  GIT_LETTERS,
  HIDING_PROGRAMS,
  INTERPRETERS,
  isOneOf,
  PACKAGE_RUNNERS,
  SHELLS,
  WRAPPERS,
  type Wrapper,
} from "./programs.ts";
import { isPlainSed } from "./sed-script.ts";
import { readLine, type SimpleCommand, type WordValue } from "./shell-line.ts";

export interface Reading {
  readonly words: readonly WordValue[];
  readonly isAllowable: boolean;
}

export interface CommandReadings {
  readonly readings: readonly Reading[];
  /** A line that it gives to a shell, such as that of `sh -c`. */
  readonly line: string | undefined;
  readonly isHidden: boolean;
  readonly runsFile?: string;
}

/** Variables that change the words of a program and not what it does. */
const HARMLESS_VARIABLE =
  /^(CI|NODE_ENV|LANG|LC_[A-Z]+|TZ|NO_COLOR|FORCE_COLOR|TERM|COLUMNS|LINES)=[\w.:/@-]*$/;

const WRAPPERS_MAX = 20;
const GIT = "git";

function readingsOf({ words, assignments }: SimpleCommand): CommandReadings {
  const spelled: Reading[] = [];
  if (assignments.length > 0) spelled.push({ words: [...assignments, ...words], isAllowable: true });
  let reading: Reading = {
    words,
    isAllowable: assignments.every((assignment) => HARMLESS_VARIABLE.test(assignment)),
  };
  // Without a command they count for the rest of the line.
  if (assignments.some((one) => DECISIVE_VARIABLE.test(one) && !HARMLESS_VARIABLE.test(one)))
    return { readings: [...spelled, reading], line: undefined, isHidden: true };
  const readings = [...spelled];
  for (let count = 0; count <= WRAPPERS_MAX; count += 1) {
    readings.push(reading);
    const step = stepInto(reading.words);
    if (step.type === "end") return { readings, ...step.end };
    if (step.words.length === 0) return { readings, line: undefined, isHidden: false };
    const isAllowable = reading.isAllowable && step.isHarmless;
    if (step.isHidden)
      return {
        readings: [...readings, { words: step.words, isAllowable: false }],
        line: undefined,
        isHidden: true,
      };
    reading = { words: step.words, isAllowable };
  }
  return { readings, line: undefined, isHidden: true };
}

type Step =
  | { readonly type: "end"; readonly end: Omit<CommandReadings, "readings"> }
  | {
      readonly type: "inner";
      readonly words: readonly WordValue[];
      readonly isHarmless: boolean;
      readonly isHidden: boolean;
    };

const NOTHING_BEHIND: Step = { type: "end", end: { line: undefined, isHidden: false } };
const HIDDEN: Step = { type: "end", end: { line: undefined, isHidden: true } };

function stepInto([program, ...args]: readonly WordValue[]): Step {
  if (program === undefined) return NOTHING_BEHIND;
  if (program === null) return HIDDEN;
  const name = nameOf(program);
  if (HIDING_PROGRAMS.has(name.replace(/(?<=.)\..*$/, "")) || /^ld[-.]/.test(name)) return HIDDEN;
  if (ARITHMETIC_BUILTINS.has(name) && args.some((arg) => arg !== null && /[$`]|^\w+\[/.test(arg)))
    return HIDDEN;
  if (DECLARING.test(name) && args.some((arg) => arg === null || DECISIVE_VARIABLE.test(arg))) return HIDDEN;
  if (name.startsWith("git-")) {
    const words = [GIT, name.slice(GIT.length + 1), ...args];
    return { type: "inner", words, isHarmless: true, isHidden: false };
  }
  if (SHELLS.has(name)) return stepIntoShell(args);
  if (name === "command" && args.some((arg) => arg !== null && /^-[a-zA-Z]*[vV]/.test(arg)))
    return NOTHING_BEHIND;
  if (Object.hasOwn(WRAPPERS, name)) return stepIntoWrapper(WRAPPERS[name] ?? {}, args);
  if (name === "find") return stepIntoFind(args);
  if (Object.hasOwn(PACKAGE_RUNNERS, name) && PACKAGE_RUNNERS[name]!.test(args[0] ?? ""))
    return stepIntoWrapper(WRAPPERS["npx"]!, args.slice(1));
  return mayRunOthers(name, args) ? HIDDEN : NOTHING_BEHIND;
}

/** The name of a program without its folder. Some file systems do not look at the case of letters. */
export function nameOf(program: string): string {
  return program.slice(program.lastIndexOf("/") + 1).toLowerCase();
}

const DECLARING = /^(export|declare|typeset|local|readonly)$/;
/** The commands of git without an option that starts a program: what their words say decides nothing. */
const HARMLESS_GIT: ReadonlySet<WordValue> = new Set(
  "add branch checkout commit mv reset restore rev-parse rm stash status switch tag".split(" "),
);

function mayRunOthers(name: string, args: readonly WordValue[]): boolean {
  if (name === "sed" || name === "gsed") return !isPlainSed(args);
  const hiding = Object.hasOwn(CAREFUL_PROGRAMS, name) ? CAREFUL_PROGRAMS[name]?.hiding : undefined;
  if (hiding !== undefined && args.some((arg) => arg !== null && isOneOf(hiding, arg))) return true;
  if (name === "git") return gitMayRunOthers(args);
  if (hiding !== undefined && args.includes(null)) return true;
  const interpreter = name.replace(/[\d.]+$/, "");
  const letters = Object.hasOwn(INTERPRETERS, interpreter) ? INTERPRETERS[interpreter] : undefined;
  if (letters === undefined) return false;
  const given = args.some(
    (arg) =>
      arg === null ||
      arg === "eval" ||
      /^--(eval|print)/.test(arg) ||
      (/^-[a-zA-Z]/.test(arg) && letters.split("").some((letter) => arg.includes(letter, 1))),
  );
  // Without a file it reads its program from the standard input.
  const says = args.some(
    (arg) => arg !== null && (!arg.startsWith("-") || /^(--version|--help|-v|-V|-h)$/.test(arg)),
  );
  return given || !says;
}

function gitMayRunOthers(args: readonly WordValue[]): boolean {
  let at = 0;
  while (args[at]?.startsWith("-") === true) {
    if (args[at]!.startsWith("-c")) return true;
    at += /^(-C|--git-dir|--work-tree|--namespace)$/.test(args[at]!) ? 2 : 1;
  }
  const [command, ...rest] = args.slice(at);
  if (command === undefined) return false;
  if (command === null) return true;
  if (rest.includes(null) && !HARMLESS_GIT.has(command)) return true;
  const letters = Object.hasOwn(GIT_LETTERS, command) ? GIT_LETTERS[command]! : "";
  return rest.some((arg) => arg !== null && isOneOf({ letters }, arg));
}

/** A line after `-c`, or a file. The standard input has lines that nobody sees. */
function stepIntoShell(args: readonly WordValue[]): Step {
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at];
    if (arg === null || arg === undefined) return HIDDEN;
    if (/^(--version|--help)$/.test(arg)) return NOTHING_BEHIND;
    if (!/^[-+]/.test(arg)) return { type: "end", end: { line: undefined, isHidden: false, runsFile: arg } };
    if (!/^[-+][a-zA-Z]+$/.test(arg)) return HIDDEN;
    if (arg.startsWith("-") && arg.includes("s")) return HIDDEN;
    if (arg.startsWith("-") && arg.includes("c")) {
      const rest = args.slice(at + 1);
      const first = rest.findIndex((one) => one === null || !/^([-+][a-zA-Z]+)$/.test(one));
      const line = rest[first] === "--" ? rest[first + 1] : rest[first];
      return typeof line === "string" ? { type: "end", end: { line, isHidden: false } } : HIDDEN;
    }
    if (/^[-+][a-zA-Z]*[oO]$/.test(arg)) at += 1;
  }
  return HIDDEN;
}

function stepIntoFind(args: readonly WordValue[]): Step {
  const at = args.findIndex((arg) => arg !== null && /^-(exec|execdir|ok|okdir)$/.test(arg));
  if (at < 0) return args.includes(null) ? HIDDEN : NOTHING_BEHIND;
  const words = args.slice(at + 1).map((word) => (word?.includes("{}") === true ? null : word));
  return { type: "inner", words, isHarmless: false, isHidden: true };
}

function stepIntoWrapper(wrapper: Wrapper, args: readonly WordValue[]): Step {
  const { operands = 0, takesAssignments = false, addsArguments = false, isHarmless } = wrapper;
  const options = optionsOf(wrapper, args);
  if (options === undefined) return { type: "inner", words: [null], isHarmless: false, isHidden: true };
  let rest = args.slice(options + operands);
  if (takesAssignments) rest = rest.slice(rest.findIndex((word) => word === null || !/^\w+=/.test(word)));
  if (addsArguments && rest.length > 0)
    rest = [...rest.map((word) => (replaced(args, word) ? null : word)), null];
  const isPlain = options === 0;
  return {
    type: "inner",
    words: rest,
    isHarmless: isHarmless === "always" || (isHarmless === "plain" && isPlain),
    isHidden: addsArguments,
  };
}

/** Whether `xargs -I NAME` puts other text in the place of a part of the word. */
function replaced(args: readonly WordValue[], word: WordValue): boolean {
  const at = args.findIndex((arg) => arg?.startsWith("-I") === true || arg?.startsWith("-J") === true);
  const name = at < 0 ? "{}" : args[at]?.slice(2) || (args[at + 1] ?? "{}");
  return word?.includes(name) === true;
}

/** @returns the number of words of the options of a wrapper; nothing for an option that is not known. */
function optionsOf(wrapper: Wrapper, args: readonly WordValue[]): number | undefined {
  const { flags = "", values = "", longFlags = [], longValues = [] } = wrapper;
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at];
    if (arg === null || arg === undefined) return undefined;
    if (arg === "--") return at + 1;
    if (!arg.startsWith("-") || (arg === "-" && !flags.includes("i"))) return at;
    if (arg === "-") continue;
    if (arg.startsWith("--")) {
      const [name = "", value] = arg.slice(2).split("=", 2);
      if (longValues.includes(name)) at += value === undefined ? 1 : 0;
      else if (!longFlags.includes(name)) return undefined;
      continue;
    }
    const letters = arg.slice(1).split("");
    const valued = letters.findIndex((letter) => values.includes(letter));
    const plain = valued < 0 ? letters : letters.slice(0, valued);
    if (plain.some((letter) => !flags.includes(letter))) return undefined;
    if (valued === letters.length - 1 && valued >= 0) at += 1;
  }
  return args.length;
}

/** A simple command of a line, or of a line that the line gives to a shell. */
export interface ReadCommand extends CommandReadings {
  /** Without the files that it is connected with, no rule for a command says what happens. */
  readonly files: SimpleCommand["files"];
}

export interface LineReadings {
  readonly commands: readonly ReadCommand[];
  /** Files that compound commands are connected with. */
  readonly files: SimpleCommand["files"];
  /** It may run other commands than these. */
  readonly isUnclear: boolean;
}

const DEPTH_MAX = 5;

export function lineReadings(text: string, depth = 0): LineReadings {
  const { commands, files, isUnclear } = readLine(text);
  const found = commands.map((command) => ({ ...readingsOf(command), files: command.files }));
  if (depth > DEPTH_MAX) return { commands: found, files, isUnclear: true };
  const inner = found.flatMap((outer) =>
    outer.line === undefined ? [] : [within(outer, lineReadings(outer.line, depth + 1))],
  );
  return {
    commands: [...found, ...inner.flatMap((one) => one.commands)],
    files: [...files, ...inner.flatMap((one) => one.files)],
    isUnclear: isUnclear || inner.some((one) => one.isUnclear),
  };
}

/** A variable of a shell reaches the commands of its line. */
function within({ readings }: CommandReadings, line: LineReadings): LineReadings {
  if (readings.at(-1)?.isAllowable === true) return line;
  const unallowed = (one: ReadCommand): ReadCommand => ({
    ...one,
    readings: one.readings.map(({ words }) => ({ words, isAllowable: false })),
  });
  return { ...line, commands: line.commands.map(unallowed) };
}
