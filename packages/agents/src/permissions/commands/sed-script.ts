// `isPlainSed`: whether a call of `sed` only prints, by its script. Pure.
//
// Its commands `e`, `w`, `W`, `r` and `R`, and the flags `e` and `w` of `s`, start programs, and write or
// read files. A script is plain if each of its commands is one of the others, as POSIX and GNU sed write
// them. Anything that is not read here is not plain.

import type { WordValue } from "./shell-line.ts";

/** Long options with their own meaning here. Sed takes the beginning of one for the whole. */
const LONG = ["expression", "file", "in-place", "line-length", "sandbox"] as const;
const FLAGS =
  /^-[nrEsuz]+$|^--(quiet|silent|regexp-extended|separate|unbuffered|null-data|posix|debug|sandbox|version|help)$/;

/**
 * Whether it does no more than read its files and print: it starts nothing, and writes at most the files that
 * it edits in place.
 */
export function isPlainSed(args: readonly WordValue[]): boolean {
  const scripts: string[] = [];
  const operands: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at];
    if (arg === null || arg === undefined) return false;
    if (arg === "--") {
      const rest = args.slice(at + 1);
      if (rest.includes(null)) return false;
      operands.push(...(rest as readonly string[]));
      break;
    }
    if (!arg.startsWith("-") || arg === "-") operands.push(arg);
    else if (!FLAGS.test(arg)) {
      const script = scriptOf(arg);
      if (script === undefined) return false;
      if (script === "next") {
        const next = args[++at];
        if (next === null || next === undefined) return false;
        scripts.push(next);
      } else if (script !== "none") scripts.push(script.text);
    }
  }
  if (scripts.length === 0) scripts.push(operands[0] ?? "");
  return scripts.every(isPlainScript);
}

/** The script of an option. @returns nothing for an option with a file of commands, and for one that is not known. */
function scriptOf(option: string): { readonly text: string } | "next" | "none" | undefined {
  if (option.startsWith("--")) {
    const [name = "", ...value] = option.slice(2).split("=");
    const meant = LONG.filter((one) => one.startsWith(name));
    if (name === "" || meant.length !== 1) return undefined;
    if (meant[0] === "expression") return value.length === 0 ? "next" : { text: value.join("=") };
    return meant[0] === "in-place" ? "none" : undefined;
  }
  const [, , letter, rest = ""] = /^-([nrEsuz]*)([a-zA-Z])(.*)$/s.exec(option) ?? [];
  if (letter === "i") return "none";
  if (letter === "e") return rest === "" ? "next" : { text: rest };
  return undefined;
}

/** Commands without an argument. */
const BARE = "pdPDqQ=nNgGhHxzl{}";
/** One address, or two, and `!`. */
const ADDRESS =
  /^(?:(?:\d+(?:~\d+)?|\$|\/(?:[^/\\\n[]|\\.)*\/I?)(?:\s*,\s*(?:[+~]?\d+|\$|\/(?:[^/\\\n[]|\\.)*\/I?))?)?\s*!?\s*/;

function isPlainScript(script: string): boolean {
  let rest = script;
  for (;;) {
    rest = rest.replace(/^[\s;]+/, "");
    if (rest === "") return true;
    rest = rest.slice(ADDRESS.exec(rest)?.[0].length ?? 0);
    const [command = ""] = rest;
    const after = afterCommand(command, rest.slice(1));
    if (after === undefined) return false;
    rest = after;
  }
}

/** The text behind a command. @returns nothing for a command that is not plain. */
function afterCommand(command: string, rest: string): string | undefined {
  if (command === "s" || command === "y") {
    const parts = afterParts(rest);
    const [flags] = /^[gpiImM\d]*/.exec(parts ?? "") ?? [""];
    return parts === undefined ? undefined : ended(parts.slice(command === "s" ? flags.length : 0));
  }
  if (command !== "" && BARE.includes(command))
    return "{}".includes(command) ? rest : ended(rest.replace(/^\s*\d*/, ""));
  return undefined;
}

/** The text behind the two parts of `s/…/…/`, with any delimiter. A class of characters may hide one, so it is not read. */
function afterParts(text: string): string | undefined {
  const [delimiter = "\n"] = text;
  if (/[\s\\;[\]]/.test(delimiter)) return undefined;
  let at = 1;
  for (let part = 0; part < 2; part += 1) {
    while (at < text.length && text[at] !== delimiter) {
      if (text[at] === "[" && part === 0) return undefined;
      at += text[at] === "\\" ? 2 : 1;
    }
    if (at >= text.length) return undefined;
    at += 1;
  }
  return text.slice(at);
}

/** The text behind the end of a command. */
function ended(text: string): string | undefined {
  return /^\s*($|[;}\n])/.test(text) ? text.replace(/^\s*;?/, "") : undefined;
}
