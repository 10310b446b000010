// The sentences of the project: of comments, of Markdown files, and the names of tests.
//
// A sentence keeps its text for messages and a masked copy for checks. In the copy each piece of code, each
// quotation and each address is one opaque word. Such a piece is not written in plain English.

import type { Comment } from "oxc-parser";
import { child, nameOf, type Node, type Source } from "./tree.ts";

export interface Sentence {
  readonly line: number;
  readonly text: string;
  /** The text with code, quotations and addresses masked. It has the same length as the text. */
  readonly masked: string;
}

export interface NamedTest {
  readonly kind: "test" | "describe";
  readonly name: string;
  readonly line: number;
}

interface Line {
  readonly line: number;
  readonly text: string;
}

/** The first letter of a masked piece, and the letter that fills the rest of it. */
export const CODE = "\uE000";
const FILLER = "\uE001";

/** Lines of comments that tools read. */
const DIRECTIVE = /^(@ts-|oxlint-|eslint|prettier-|v8 ignore|#|\/\s*<|@vitest-)/;
/** Lines that draw or show something and are no prose. */
const DRAWN = /[─│┌┐└┘├┤▲▼►◄═║]|^\s*[-=~*]{4,}\s*$/;
const CODE_LINE =
  /^\s*(const|let|await|import|export|return|if|for|npm|npx|node|holdfast|curl|SELECT)\b.*([({=].*[;{(})]|--.*)$|^\s*[\w.$#[\]]+(\(| = ).*;$|=>\s*[({]?/;
/** A list marker, a label or a tag begins a new paragraph and is no part of its first sentence. */
const LEAD =
  /^(?:(?:[-*+•]|\d+[.)]|\*{0,2}[A-Z]{1,4}\d+[a-z]?[.:]\*{0,2}|[a-z][a-z-]*-\d+[a-z]?[.:]|@[a-z]\w*(?:\s+\{.*\})?)\s+)+/;
/** A row of a list that is aligned by spaces: its term is no part of the sentence. */
const ALIGNED = /^\S.*?[^\s.:;!?] {2,}(?=\S)/;
/** An option of a command line begins a new paragraph. */
const OPTION = /^(?:… |-- )?-{1,2}\w|^-- /;
const ABBREVIATION = /\b(e\.g|i\.e|etc|vs|cf|no|ca|approx)\.$/i;
const MASKED =
  /```.*?```|`[^`]*`|"[^"]*"|“[^”]*”|(?<=\])\([^()\s]*\)|<[!/a-zA-Z][^>]*>|(?<!\*)\*\w+\*(?!\*)|\bhttps?:\/\/[^\s)>\]]+|\$\{[^}]*\}/g;

export function sentencesOfComments(source: Source): readonly Sentence[] {
  return blocksOf(source).flatMap((block) => sentencesOfLines(block, false));
}

export function sentencesOfProse(text: string): readonly Sentence[] {
  return sentencesOfLines(
    text.split("\n").map((line, index) => ({ line: index + 1, text: line })),
    true,
  );
}

/** Calls of `test`, `it` and `describe` by the name they are given, also as `test.each(…)(name)`. */
export function testsIn(source: Source): readonly NamedTest[] {
  const tests: NamedTest[] = [];
  source.walk((node) => {
    if (node.type !== "CallExpression") return;
    const root = nameOf(calleeRoot(node)) ?? "";
    if (!/^(test|it|describe|suite)$/.test(root)) return;
    const name = literalText([node["arguments"]].flat()[0] as Node | undefined);
    if (name === undefined) return;
    const kind = root === "describe" || root === "suite" ? "describe" : "test";
    tests.push({ kind, name, line: source.lineAt(node.start) });
  });
  return tests;
}

/** A test's name as one sentence, without its labels. */
export function sentenceOfName({ name, line }: NamedTest): Sentence {
  const text = name.replace(/^(?:[A-Za-z-]*\d+[a-z]?(?:, )?)+: /, "");
  return { line, text, masked: mask(text).replace(/[$%]\w+(\.\w+)*/g, masking) };
}

function calleeRoot(node: Node): Node {
  const inner = child(node, "callee") ?? child(node, "object") ?? child(node, "tag");
  return inner === undefined ? node : calleeRoot(inner);
}

/** The text of a literal; what a template inserts is shown as `${…}`. */
function literalText(node: Node | undefined): string | undefined {
  if (node?.type === "Literal" && typeof node["value"] === "string") return node["value"];
  if (node?.type !== "TemplateLiteral") return undefined;
  return (node["quasis"] as { value: { raw: string } }[]).map(({ value }) => value.raw).join("${…}");
}

/** Comments as blocks of lines; line comments that follow each other directly are one block. */
function blocksOf(source: Source): Line[][] {
  const blocks: Line[][] = [];
  let previous: Comment | undefined;
  for (const comment of source.comments) {
    if (comment.value.startsWith(" mutant: ")) continue; // The name of a marker is no sentence.
    const line = source.lineAt(comment.start);
    const isAlone = /^\s*$/.test(source.text.slice(lineStart(source.text, comment.start), comment.start));
    if (comment.type === "Block") {
      const lines = comment.value.split("\n").map((text, index) => ({
        line: line + index,
        text: text.replace(/^\s*\*+ ?/, "").replace(/\s+$/, ""),
      }));
      blocks.push(lines);
      previous = undefined;
      continue;
    }
    const text = comment.value.replace(/^\/?\s?/, "");
    const follows =
      previous !== undefined && /^\r?\n[ \t]*$/.test(source.text.slice(previous.end, comment.start));
    if (follows && isAlone) blocks.at(-1)?.push({ line, text });
    else blocks.push([{ line, text }]);
    previous = isAlone ? comment : undefined;
  }
  return blocks;
}

function lineStart(text: string, offset: number): number {
  return text.lastIndexOf("\n", offset - 1) + 1;
}

function sentencesOfLines(lines: readonly Line[], isMarkdown: boolean): Sentence[] {
  const sentences: Sentence[] = [];
  let paragraph: Line[] = [];
  let isFenced = false;
  const end = (): void => {
    sentences.push(...sentencesOfParagraph(paragraph));
    paragraph = [];
  };
  for (const { line, text } of lines) {
    const trimmed = text.trim();
    if (trimmed.startsWith("```")) isFenced = !isFenced;
    const isHeading = isMarkdown && trimmed.startsWith("#");
    const isShown = isMarkdown ? false : DIRECTIVE.test(trimmed) || CODE_LINE.test(trimmed);
    if (
      isFenced ||
      trimmed === "" ||
      trimmed.startsWith("```") ||
      isHeading ||
      isShown ||
      DRAWN.test(trimmed)
    ) {
      end();
    } else if (trimmed.startsWith("|")) {
      end();
      if (!/^[|\s:-]+$/.test(trimmed))
        sentences.push(...cellsOf(trimmed).flatMap((cell) => sentencesOfParagraph([{ line, text: cell }])));
    } else {
      if (OPTION.test(trimmed)) end();
      const opening = LEAD.test(trimmed) ? LEAD : ALIGNED;
      if (opening.test(trimmed)) end();
      paragraph.push({ line, text: paragraph.length === 0 ? trimmed.replace(opening, "") : trimmed });
    }
  }
  end();
  return sentences;
}

function cellsOf(row: string): string[] {
  return row.split(/(?<!\\)\|/).map((cell) => cell.trim());
}

function sentencesOfParagraph(lines: readonly Line[]): Sentence[] {
  const text = lines.map((line) => line.text).join(" ");
  if (text === "") return [];
  const masked = mask(text);
  const lineAt = (offset: number): number => {
    let end = 0;
    for (const { line, text: part } of lines) {
      end += part.length + 1;
      if (offset < end) return line;
    }
    return lines.at(-1)?.line ?? 0;
  };
  const sentences: Sentence[] = [];
  let start = 0;
  const close = (end: number): void => {
    sentences.push({ line: lineAt(start), text: text.slice(start, end), masked: masked.slice(start, end) });
    start = end;
  };
  for (const { index, 0: mark } of masked.matchAll(/[.!?][)*_’']*\s+(?=[*_(‘']*[\p{Lu}\uE000])/gu)) {
    if (!ABBREVIATION.test(masked.slice(start, index + 1))) close(index + mark.length);
  }
  close(text.length);
  return sentences;
}

function mask(text: string): string {
  return text.replace(MASKED, masking);
}

function masking(piece: string): string {
  return CODE + FILLER.repeat(piece.length - 1);
}
