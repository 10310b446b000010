// Reads the text of an agent file: its bytes, the front matter in YAML, and the body (`readFrontMatter`).
//
//   - A file is read up to a limit, as UTF-8, without its byte-order mark and with line breaks of one kind.
//   - Aliases of YAML are refused: a few lines of them can stand for gigabytes.
//   - A text at the top level may contain ": " without quotes, or begin as `[a] [b]` does, as in many files of
//     coding agents. Such a field is read as a text only if YAML can read neither it nor the whole.
//   - YAML has a limit of its own, far above real files. The reading of many fields takes the square of their
//     number.

import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { basename } from "node:path";
import { jsonSyntaxProblem, MIB } from "@holdfast/core";
import { LineCounter, isAlias, parseDocument, visit, type Document } from "yaml";

/** The largest agent file. */
const AGENT_FILE_BYTES_MAX = MIB;
const CHUNK_BYTES = 16 * 1024;

/** The largest front matter, and the largest file that is YAML as a whole. */
const YAML_BYTES_MAX = 64 * 1024;

/** A problem with a file as a whole. */
export class FileProblem extends Error {
  override name = "FileProblem";
  readonly fix: string;
  /** From 1. */
  readonly line: number | null;
  readonly column: number | null;

  constructor(message: string, fix: string, line: number | null = null, column: number | null = null) {
    super(message);
    this.fix = fix;
    this.line = line;
    this.column = column;
  }
}

export interface ParsedFile {
  readonly values: Readonly<Record<string, unknown>>;
  readonly body: string;
  /** The line of a field in the file, from 1. */
  readonly lineOf: (path: readonly string[]) => number | null;
  /** Fields that were read as a text although they are not valid YAML. */
  readonly repaired: readonly string[];
}

/** @throws FileProblem */
export function readText(path: string): string {
  const bytes = readBytes(path);
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes); // It drops the mark.
    return text.replaceAll("\r\n", "\n");
  } catch {
    throw new FileProblem("the file is not UTF-8", "save it as UTF-8");
  }
}

/** @throws FileProblem */
export function readJson(path: string): Record<string, unknown> {
  return jsonObject(readText(path), basename(path));
}

/** @param file the name of the file, for errors. @throws FileProblem */
function jsonObject(text: string, file: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new FileProblem(`${file} is not JSON: ${jsonSyntaxProblem(text)}`, "correct that line");
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw new FileProblem(`${file} is not a JSON object`, "write an object with its fields");
}

/** An object in JSON with comments. @param file the name of the file, for errors. @throws FileProblem */
export function jsoncObject(text: string, file: string): Record<string, unknown> {
  return jsonObject(withoutComments(text), file);
}

/** Comments of JSONC and commas before a closing bracket become spaces. Texts stay as they are. */
function withoutComments(text: string): string {
  const blank = (found: string): string => found.replaceAll(/[^\n]/g, " ");
  // A text or a comment without an end reaches to the end, so that no second look for it begins.
  const tokens = /("(?:\\.|[^"\\])*"?)|\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)/g;
  const plain = text.replaceAll(tokens, (found, quoted?: string) => quoted ?? blank(found));
  return plain.replaceAll(/("(?:\\.|[^"\\])*"?)|,(?=\s*[}\]])/g, (_found, quoted?: string) => quoted ?? " ");
}

function readBytes(path: string): Buffer {
  let file: number;
  try {
    // A pipe without a writer must not block.
    file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new FileProblem(
      code === "ENOENT" ? "there is no such file" : `the file cannot be read: ${message}`,
      "check the path and its permissions",
    );
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile())
      throw new FileProblem(
        stats.isDirectory() ? "it is a folder" : "it is not a file",
        "name the file of an agent",
      );
    const chunks: Buffer[] = [];
    let size = 0;
    for (let read = -1; read !== 0 && size <= AGENT_FILE_BYTES_MAX; size += read) {
      // Most files fit. A buffer of the limit for each of a thousand files would take seconds.
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, AGENT_FILE_BYTES_MAX + 1 - size));
      read = readSync(file, chunk, 0, chunk.length, null);
      chunks.push(chunk.subarray(0, read));
    }
    if (size > AGENT_FILE_BYTES_MAX)
      throw new FileProblem(
        `the file has ${Math.max(stats.size, size)} bytes, and ${AGENT_FILE_BYTES_MAX} is the limit`,
        "move what is long into files that the agent reads",
      );
    return Buffer.concat(chunks);
  } finally {
    closeSync(file);
  }
}

/** @throws FileProblem */
export function readFrontMatter(text: string): ParsedFile {
  const [opening = "", ...rest] = text.split("\n");
  if (opening.trimEnd() !== "---")
    throw new FileProblem(
      "the file has no front matter",
      "begin it with a line `---`, the fields and another line `---`",
      1,
      1,
    );
  const end = rest.findIndex((line) => line.trimEnd() === "---");
  if (end < 0)
    throw new FileProblem("the front matter has no end", "put a line `---` below its fields", 1, 1);
  const body = rest
    .slice(end + 1)
    .join("\n")
    .trim();
  // The front matter begins at the second line of its file.
  return { ...parseYaml(rest.slice(0, end).join("\n"), 1, "the front matter"), body };
}

/**
 * The fields of a text in YAML.
 *
 * @param above the lines of the file above the text. @param what the text, for errors. @throws FileProblem
 */
export function parseYaml(yaml: string, above: number, what: string): Omit<ParsedFile, "body"> {
  const size = Buffer.byteLength(yaml);
  if (size > YAML_BYTES_MAX)
    throw new FileProblem(
      `${what} has ${size} bytes, and ${YAML_BYTES_MAX} is the limit`,
      "move what is long into the text below the fields, or into files that the agent reads",
      above + 1,
      1,
    );
  const first = parse(yaml);
  const repaired = new Set<string>();
  let { document, counter } = first;
  if (document.errors.length > 0) {
    const again = parse(quoteTexts(yaml, repaired));
    if (again.document.errors.length > 0) throw yamlProblem(first, above, what);
    ({ document, counter } = again);
  }
  refuseAliases(document, counter, above, what);
  const values: unknown = document.toJS({ maxAliasCount: 0 }) ?? {};
  if (typeof values !== "object" || values === null || Array.isArray(values))
    throw new FileProblem(
      `${what} is not a list of fields`,
      "write each field as `name: value`",
      above + 1,
      1,
    );
  return {
    values: values as Record<string, unknown>,
    repaired: [...repaired],
    lineOf: (path) => lineOf(document, counter, path, above),
  };
}

function parse(yaml: string): { document: Document.Parsed; counter: LineCounter } {
  const counter = new LineCounter();
  // Without merge keys and types of YAML 1.1: `no` is a text.
  const document = parseDocument(yaml, {
    lineCounter: counter,
    prettyErrors: false,
    version: "1.2",
    logLevel: "silent",
  });
  return { document, counter };
}

function yamlProblem(
  { document, counter }: ReturnType<typeof parse>,
  above: number,
  what: string,
): FileProblem {
  const [error] = document.errors;
  const { line, col } = counter.linePos(error?.pos[0] ?? 0);
  const isDouble = error?.code === "DUPLICATE_KEY";
  return new FileProblem(
    isDouble ? `a field stands twice in ${what}` : `${what} is not YAML: ${error?.message ?? ""}`,
    isDouble ? "remove one of them" : "correct that line; put a text with `: ` or `#` in quotes",
    line + above,
    col,
  );
}

function refuseAliases(document: Document.Parsed, counter: LineCounter, above: number, what: string): void {
  visit(document, {
    Alias: (_key, node) => {
      if (!isAlias(node)) return;
      const { line, col } = counter.linePos(node.range?.[0] ?? 0);
      throw new FileProblem(
        `${what} uses the alias *${node.source}`,
        "write the value out",
        line + above,
        col,
      );
    },
  });
}

/**
 * Puts the values of top-level fields in quotes that YAML cannot read, such as `[a] [b]`. A field ends before the
 * next line that is not indented.
 */
function quoteTexts(yaml: string, repaired: Set<string>): string {
  return yaml
    .split(/\n(?=[^\s#])/)
    .map((field) => {
      const [, name, value] =
        /^([A-Za-z][\w-]*):[ \t]+(?![|>][\d+-]*[ \t]*(?:#|\n))(\S[^]*)$/.exec(field) ?? [];
      if (name === undefined || value === undefined || isField(field)) return field;
      repaired.add(name);
      // As many lines as before, so that each field keeps its line.
      const lines = value.split("\n");
      const text = lines.map((line) => line.trim()).join(" ");
      return `${name}: ${JSON.stringify(text.trim())}${"\n".repeat(lines.length - 1)}`;
    })
    .join("\n");
}

/** Whether a field stays as it is: YAML reads it whole, or a bracket or a quote of it has no end. */
function isField(field: string): boolean {
  const { errors } = parse(field).document;
  if (errors.length === 0) return !/^[\w-]+:[ \t]+[^\s"'[{].* #/.test(field); // It cuts no text off as a comment.
  return errors.some(({ message }) => /^Missing closing|and end with a [\]}]/.test(message));
}

function lineOf(
  document: Document.Parsed,
  counter: LineCounter,
  path: readonly string[],
  above: number,
): number | null {
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  const items = (parent as { items?: unknown } | null)?.items;
  if (!Array.isArray(items)) return null;
  for (const { key } of items as { key?: { value?: unknown; range?: readonly number[] } }[]) {
    if (String(key?.value) === path.at(-1)) return counter.linePos(key?.range?.[0] ?? 0).line + above;
  }
  return null;
}
