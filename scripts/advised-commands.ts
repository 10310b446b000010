// `advisedCommands`: the command lines that sources tell people to call, in errors, notes and questions.
//
// A text advises a command in backticks (`holdfast list`), after a colon ("with: holdfast resume ID"), and as
// the first argument of `io.call`. A value that is only known later stands as `LATER`.

import type { Syntax } from "../packages/terminal/src/frame/command.ts";
import { argumentsOf } from "../packages/terminal/src/frame/help.ts";
import { LATER, printedTexts, speakingSources, type PrintedText } from "./printed-texts.ts";
import type { Node, Tree } from "./tidy/tree.ts";

export interface Advice {
  /** `file:line`. */
  readonly at: string;
  /** The words after `holdfast`. */
  readonly words: readonly string[];
}

export function advisedCommands(tree: Tree): readonly Advice[] {
  return speakingSources(tree).flatMap(printedTexts).flatMap(adviceOf);
}

function adviceOf({ at, text, node, parent }: PrintedText): readonly Advice[] {
  const isCall = parent?.type === "CallExpression" && isIoCall(parent) && parent["arguments"] !== undefined;
  const isFirst = isCall && (parent["arguments"] as readonly Node[])[0] === node;
  return (isFirst ? [text] : commandsIn(text)).map((line) => ({ at, words: wordsOf(line) }));
}

function isIoCall({ callee }: Node): boolean {
  const { type, object, property } = callee as Node;
  if (type !== "MemberExpression") return false;
  return (object as Node)["name"] === "io" && (property as Node)["name"] === "call";
}

function commandsIn(text: string): readonly string[] {
  const quoted = [...text.matchAll(/`holdfast ([a-z][^`]*)`/g)];
  const bare = [...text.replaceAll(/`[^`]*`/g, "").matchAll(/: holdfast ([a-z][^`;]*)/g)];
  return [...quoted, ...bare].map(([, command]) => command!);
}

/** As a shell divides them, without the brackets of what may be left out. */
export function wordsOf(line: string): readonly string[] {
  return [...line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) =>
    word.replaceAll(/^[['"]+|[\]'",.;]+$/g, ""),
  );
}

/** Whether a command has room for these arguments. Fewer are a mention of the command, which a person completes. */
export function takesArguments(syntax: Syntax, given: readonly string[]): boolean {
  const action = actionOf(syntax, given);
  if (syntax.actions !== undefined && action === undefined) return given.length === 0;
  const taken = argumentsOf(syntax, action);
  const rest = syntax.actions === undefined ? given : given.slice(1);
  return rest.every(
    (argument, i) => i < taken.length || taken.at(-1)?.repeats === true || argument.startsWith(LATER),
  );
}

/** The action that these arguments begin with, where the command has actions. */
export function actionOf({ actions = {} }: Syntax, given: readonly string[]): string | undefined {
  const action = given[0]?.replace(LATER, "") ?? "";
  return Object.hasOwn(actions, action) ? action : undefined;
}
