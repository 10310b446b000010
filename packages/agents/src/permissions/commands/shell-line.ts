// `readLine`: the simple commands of a line for a shell, by the parser `unbash`. Pure.
//
//   - A word has a value only where every shell gives it the same one. Expansions, globs and braces have
//     none.
//   - The parser reads bash, and `sh` may be another shell. A construct that they read differently makes the
//     line unclear: `[[ ]]`, `(( ))`, `&>`, `<<<`, `$'…'`, `$"…"`, `select`, functions and coprocesses. An
//     error of the parser does the same.
//   - Commands inside of substitutions, here-documents and unclear constructs are commands of the line, too.

import type { Assignment, Command, ParsedScript, Redirection, SyntaxNode, Word } from "unbash";

import { shellParser } from "../../lazy-packages.ts";

/** The value of a word, `null` for one that only the shell knows. */
export type WordValue = string | null;

export interface RedirectedFile {
  readonly path: WordValue;
  readonly isWritten: boolean;
}

export interface SimpleCommand {
  /** The program and its arguments. */
  readonly words: readonly WordValue[];
  /** The words as they stand in the line. */
  readonly texts: readonly string[];
  /** The variables that it gets, as `NAME=value`. */
  readonly assignments: readonly string[];
  /** The files that it is connected with. `/dev/null` is none. */
  readonly files: readonly RedirectedFile[];
}

export interface ShellLine {
  readonly commands: readonly SimpleCommand[];
  /** Files that compound commands are connected with. */
  readonly files: readonly RedirectedFile[];
  /** It may run other commands than these. */
  readonly isUnclear: boolean;
}

/** Constructs that all shells read alike, and those whose words have no value and whose commands are found. */
const CLEAR: ReadonlySet<string> = new Set(
  (
    "Script Statement AndOr Pipeline Time Negation CompoundList Subshell BraceGroup If Elif While " +
    "For Case CaseItem Redirected Command Word Assignment Literal Glob SingleQuoted DoubleQuoted " +
    "SimpleExpansion ParameterExpansion CommandExpansion Redirect HereDoc HereDocBody " +
    "HereDocDelimiter FileDescriptor BraceExpansion ExtendedGlob " +
    "ArithmeticExpansion Default Remove Replace Slice CaseModification ArithmeticBinary " +
    "ArithmeticUnary ArithmeticTernary ArithmeticGroup ArithmeticWord"
  ).split(" "),
);

/** Redirections that dash reads as the end of a command in the background. */
const BASH_REDIRECTS: ReadonlySet<string> = new Set(["&>", "&>>"]);

export function readLine(line: string): ShellLine {
  const { parse, forEachChild } = shellParser();
  const commands: SimpleCommand[] = [];
  const files: RedirectedFile[] = [];
  let isUnclear = false;
  const visit = (node: SyntaxNode): void => {
    if (!CLEAR.has(node.type) || (node as ParsedScript).errors?.length) isUnclear = true;
    if (node.type === "Command") commands.push(commandOf(node, (what) => (isUnclear ||= what)));
    if (node.type === "Redirected") files.push(...filesOf(node.redirects, (what) => (isUnclear ||= what)));
    forEachChild(node, visit);
  };
  try {
    visit(parse(line));
  } catch {
    return { commands, files, isUnclear: true };
  }
  return { commands, files, isUnclear };
}

function commandOf(command: Command, note: (isUnclear: boolean) => void): SimpleCommand {
  const given = [...(command.name === undefined ? [] : [command.name]), ...command.args];
  const assignments = command.prefix.filter((part): part is Assignment => part.type === "Assignment");
  return {
    words: given.map(wordValue),
    texts: given.map(({ text }) => text),
    assignments: assignments.map(({ text }) => text),
    files: filesOf(command.redirects, note),
  };
}

function wordValue(word: Word | Assignment): WordValue {
  if (word.type === "Assignment") {
    const { name, append, index, value } = word;
    if (append === true || index !== undefined || value.type !== "Word") return null;
    const text = wordValue(value);
    return text === null ? null : `${name}=${text}`;
  }
  if (/(^|[=:])~/.test(word.text)) return null;
  const isLiteral = (word.parts ?? []).every(
    (part) =>
      part.type === "Literal" ||
      part.type === "SingleQuoted" ||
      (part.type === "DoubleQuoted" && part.parts.every(({ type }) => type === "Literal")),
  );
  return isLiteral ? word.value : null;
}

function filesOf(
  redirections: readonly Redirection[],
  note: (isUnclear: boolean) => void,
): readonly RedirectedFile[] {
  return redirections.flatMap((one): readonly RedirectedFile[] => {
    note(one.descriptor?.type === "FileDescriptorVariable" || one.type === "HereString");
    if (one.type === "HereDoc") return [{ path: "/dev/stdin", isWritten: false }];
    if (one.type === "HereString" || one.target === undefined) return [{ path: null, isWritten: false }];
    note(BASH_REDIRECTS.has(one.operator));
    const path = wordValue(one.target);
    const isDuplicate = (one.operator === ">&" || one.operator === "<&") && /^(\d+|-)$/.test(path ?? "");
    return isDuplicate || path === "/dev/null" ? [] : [{ path, isWritten: one.operator !== "<" }];
  });
}
