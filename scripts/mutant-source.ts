// Finds what a planted mutant replaces: `editOf` answers the change of a source that a mutant of `mutants.ts`
// describes.
//
// A comment `// mutant: MARKER` stands above the code that the mutant changes, so the place survives a move,
// another layout and new names around it. The marked code is the longest piece of syntax that begins below
// the comment. That is a statement, or a property, an operand or an argument that begins a line.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Edit } from "./mutant-edit.ts";
import { MUTANT_MARKER, parseSource, type Source } from "./tidy/tree.ts";

/** The part of a mutant that says what changes. */
export interface MarkedChange {
  /** The name in the comment above the code. */
  readonly marker: string;
  /**
   * The text of the marked code that is replaced, at its first place; any white space matches any other.
   * Without `part`, all is replaced.
   */
  readonly part?: string;
  readonly becomes: string;
}

export interface SourceText {
  /** Path from the root, with `/`. */
  readonly file: string;
  readonly text: string;
}

/** Sources have several mutants each. */
const PARSED = new WeakMap<SourceText, Source>();

const BLANK_OR_COMMENT = /(?:\s|\/\/.*|\/\*[^]*?\*\/)*/y;

/** Reads every source of the packages that can have a marker. */
export function markableSources(root: string): SourceText[] {
  return readdirSync(join(root, "packages"))
    .filter((name) => existsSync(join(root, "packages", name, "src")))
    .flatMap((name) =>
      readdirSync(join(root, "packages", name, "src"), { recursive: true, encoding: "utf8" }).map(
        (path) => `packages/${name}/src/${path.replaceAll("\\", "/")}`,
      ),
    )
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .map((file) => ({ file, text: readFileSync(join(root, file), "utf8") }));
}

/** The names in the markers of a source, in their order. */
export function markersIn(text: string): string[] {
  return [...text.matchAll(MUTANT_MARKER)].map(([, name]) => name!);
}

/** @throws Error that says why the change cannot be made. */
export function editOf({ marker, part, becomes }: MarkedChange, sources: readonly SourceText[]): Edit {
  const comment = `// mutant: ${marker}\n`;
  const source = sources.find(({ text }) => text.includes(comment));
  if (source === undefined) throw new Error(`no source has the comment ${comment}`);
  const { file, text } = source;
  const parsed = PARSED.get(source) ?? parseSource(file, text);
  PARSED.set(source, parsed);
  const marked = syntaxAfter(parsed, text.indexOf(comment));
  if (marked === undefined) throw new Error(`${file}: no syntax begins below ${comment}`);
  if (part === undefined) return { file, ...marked, becomes };
  const found = looseText(part).exec(text.slice(marked.start, marked.end));
  if (found === null) throw new Error(`${file}: the code below ${comment}has no part ${part}`);
  const start = marked.start + found.index;
  return { file, start, end: start + found[0].length, becomes };
}

/** Where the longest piece of syntax begins and ends that begins with the first token after an offset. */
function syntaxAfter({ text, walk }: Source, offset: number) {
  BLANK_OR_COMMENT.lastIndex = offset;
  const start = offset + (BLANK_OR_COMMENT.exec(text)?.[0].length ?? 0);
  let end = 0;
  walk((node) => {
    if (node.type !== "Program" && node.start === start) end = Math.max(end, node.end);
  });
  return end > 0 ? { start, end } : undefined;
}

function looseText(part: string): RegExp {
  const words = part.split(/\s+/).map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return new RegExp(words.join(String.raw`\s+`));
}
