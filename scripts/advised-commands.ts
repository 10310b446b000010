// `advisedCommands`: the command lines that sources tell people to call, in errors, notes and questions.
//
// A text advises a command in backticks (`holdfast list`), after a colon ("with: holdfast resume ID"), and as
// the first argument of `io.call`. A value that is only known later stands as `LATER`.

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

/** An argument of a usage: one of these words, such as `list`, or any value. */
interface Place {
  readonly words: readonly string[] | undefined;
  readonly repeats: boolean;
}

/** Whether a usage has room for these arguments. Fewer are a mention of the command, which a person completes. */
export function takesArguments(usage: string, given: readonly string[]): boolean {
  return waysOf(usage).some((places) => {
    const last = places.at(-1);
    return given.every((argument, i) => {
      const place = places[i] ?? (last?.repeats === true ? last : undefined);
      if (place === undefined) return argument.startsWith(LATER);
      return place.words === undefined || place.words.includes(argument.replace(LATER, ""));
    });
  });
}

/** The action that these arguments begin with, where the usage has actions. */
export function actionOf(usage: string, given: readonly string[]): string | undefined {
  const action = given[0]?.replace(LATER, "");
  return waysOf(usage).some(([first]) => first?.words?.includes(action ?? "")) ? action : undefined;
}

/** The parts of a usage that begin with this action. */
export function waysOfAction(usage: string, action: string): readonly string[] {
  return dividedAt(usage, " | ").filter((way) => placesOf(way)[0]?.words?.includes(action) === true);
}

function waysOf(usage: string): readonly (readonly Place[])[] {
  return dividedAt(usage, " | ").map(placesOf);
}

function placesOf(way: string): readonly Place[] {
  const [, ...tokens] = dividedAt(way, " ");
  return tokens.flatMap((token, i) => (isOfOption(token, tokens[i - 1]) ? [] : [placeOf(token)]));
}

/** An option, or the value of the one before it. */
function isOfOption(token: string, before: string | undefined): boolean {
  return /^\[?-/.test(token) || (/(^|\|)--?[a-z-]+$/.test(before ?? "") && /^[A-Z]/.test(token));
}

function placeOf(token: string): Place {
  const name = token.replaceAll(/[[\].]/g, "");
  return {
    words: /^[a-z|]+$/.test(name) ? name.split("|") : undefined,
    repeats: token.includes("..."),
  };
}

/** Parts between separators that stand outside of brackets. */
function dividedAt(text: string, separator: string): readonly string[] {
  const parts = [""];
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    depth += text[i] === "[" ? 1 : text[i] === "]" ? -1 : 0;
    if (depth === 0 && text.startsWith(separator, i)) {
      parts.push("");
      i += separator.length - 1;
    } else parts[parts.length - 1] += text[i]!;
  }
  return parts.filter((part) => part !== "");
}
