// `compareCommand`: whether the pattern of a rule matches a command, as `git diff:*` does `git diff --stat`.
// Pure.
//
//   - An `allow` matches a command whose words are the pattern's. A word without a value is no word of a
//     pattern.
//   - An `allow` with `:*` covers no argument by which the program writes a file or reads outside of the
//     folder (`CAREFUL_PROGRAMS`).
//   - A restriction matches each reading of a command, whatever folder its program is named in.
//   command-rules-4. A restriction may match where a word has no value, and where options stand between the
//       words of the pattern or in another spelling.

import type { PermissionDecision } from "../../record/agent-record.ts";
import { lineReadings, nameOf, type ReadCommand } from "./command-readings.ts";
import { CAREFUL_PROGRAMS, isOneOf } from "./programs.ts";
import { readLine, type WordValue } from "./shell-line.ts";

export type Comparison = "matches" | "may match" | "differs";

interface CommandPattern {
  readonly words: readonly string[];
  /** Any arguments may follow. */
  readonly isOpen: boolean;
}

/** @returns nothing for a pattern that is not one simple command. */
export function commandPatternOf(pattern: string): CommandPattern | undefined {
  const isOpen = pattern.endsWith(":*");
  const { commands, files, isUnclear } = readLine(isOpen ? pattern.slice(0, -2) : pattern);
  const [command] = commands;
  if (command === undefined || commands.length > 1 || isUnclear) return undefined;
  if (files.length > 0 || command.files.length > 0) return undefined;
  const words = [...command.assignments, ...command.words.map((word, at) => word ?? command.texts[at] ?? "")];
  return words.length === 0 ? undefined : { words, isOpen };
}

/** The command as a pattern that matches it alone. @returns nothing where no pattern can say that. */
export function exactCommand(line: string): string | undefined {
  const [command] = readLine(line).commands;
  const [read, ...others] = lineReadings(line).commands;
  if (command === undefined || read === undefined || others.length > 0) return undefined;
  const text = [...command.assignments, ...command.texts].join(" ");
  const isExact = !/:\*$|^\*$/.test(text) && compareCommand(text, "allow", read) === "matches";
  return isExact ? text : undefined;
}

export function compareCommand(
  pattern: string,
  decision: PermissionDecision,
  { readings, isHidden, runsFile, line, files }: ReadCommand,
): Comparison {
  const wanted = commandPatternOf(pattern);
  if (wanted === undefined) return decision === "allow" ? "differs" : "matches";
  if (decision === "allow") {
    const isFree = isHidden || line !== undefined || files.length > 0;
    const isNamed = runsFile === undefined || wanted.words.includes(runsFile);
    const isAllowed = readings.some(({ words, isAllowable }) => isAllowable && allows(wanted, words));
    return !isFree && isNamed && isAllowed ? "matches" : "differs";
  }
  const found = readings.map(({ words }) => restricts(wanted, words));
  if (found.includes("matches")) return "matches";
  return isHidden || runsFile !== undefined || found.includes("may match") ? "may match" : "differs";
}

/** The folders of a system's own programs. */
const SYSTEM_PROGRAM = /^\/(usr\/)?s?bin\/[^/]+$/;

function allows({ words: wanted, isOpen }: CommandPattern, words: readonly WordValue[]): boolean {
  const [program = null] = words;
  if (program === null || words.length < wanted.length) return false;
  if (!isOpen && words.length > wanted.length) return false;
  const named = wanted[0] === program || (SYSTEM_PROGRAM.test(program) && wanted[0] === nameOf(program));
  if (!named || !wanted.every((word, at) => at === 0 || word === words[at])) return false;
  const careful = CAREFUL_PROGRAMS[nameOf(program)]?.uncovered;
  return (
    careful === undefined ||
    words.slice(wanted.length).every((word) => word !== null && !isOneOf(careful, word))
  );
}

function restricts({ words: wanted, isOpen }: CommandPattern, words: readonly WordValue[]): Comparison {
  const [program, ...given] = words;
  if (program === undefined) return "differs";
  if (program === null) return "may match";
  const [wantedProgram = "", ...others] = wanted;
  if (nameOf(program) !== nameOf(wantedProgram)) return "differs";
  const isPrefix = others.every((word, at) => word === given[at]);
  if (isPrefix && (isOpen || given.length === others.length)) return "matches";
  if (others.length === 0) return given.includes(null) ? "may match" : "differs";
  return isPrefix ? "differs" : spelledOtherwise(others, given);
}

/** command-rules-4. An option may have a value behind it. */
function spelledOtherwise(wanted: readonly string[], given: readonly WordValue[]): Comparison {
  let at = 0;
  let hasOptions = false;
  let follows = false;
  for (const word of given) {
    const next = wanted[at];
    if (next === undefined) break;
    if (word === null) return "may match";
    const isOption = word.startsWith("-") && word.length > 1;
    if (word === next) at += 1;
    else if (!isOption && !follows && !next.startsWith("-")) return "differs";
    if (word !== next) hasOptions ||= isOption;
    follows = isOption && !word.includes("=");
  }
  const rest = wanted.slice(at);
  return rest.length === 0 || (hasOptions && rest.every((word) => word.startsWith("-")))
    ? "may match"
    : "differs";
}
