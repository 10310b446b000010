// The input of the rules of tidy: the files of a checkout, and its sources parsed once.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync, visitorKeys, type Comment } from "oxc-parser";

/** A rule reads the tree and names what breaks it. It never writes. */
export type Rule = (tree: Tree) => readonly Violation[];

export interface Violation {
  readonly file: string;
  readonly line?: number;
  /** The mistake and, unless it is plain, its correction. */
  readonly what: string;
}

export interface Tree {
  readonly root: string;
  /** Whether the root is a checkout of git. */
  readonly hasHistory: boolean;
  /** Paths from the root, with `/`, sorted. */
  readonly files: readonly string[];
  /** Text of a file, or undefined when there is no such file. */
  readonly read: (file: string) => string | undefined;
  readonly sources: readonly Source[];
}

export interface Source {
  readonly file: string;
  readonly text: string;
  /** Folder under `packages/`, for files in its `src`. */
  readonly packageFolder: string | undefined;
  /** `*.test.ts`, and what only tests share, in a folder `testing`. */
  readonly isTest: boolean;
  readonly imports: readonly Import[];
  readonly comments: readonly Comment[];
  /** Messages of the parser. */
  readonly errors: readonly string[];
  readonly lineAt: (offset: number) => number;
  readonly lines: readonly string[];
  /** Visits every node, parents before children, with the node directly above it. */
  readonly walk: (visit: (node: Node, parent: Node | undefined) => void) => void;
}

export interface Import {
  readonly specifier: string;
  readonly line: number;
}

/** A node of the syntax tree, seen loosely: the rules look at few of its 165 kinds. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

const LEFT_OUT = new Set([
  "node_modules",
  "dist",
  "coverage",
  ".vitest",
  ".git",
  ".tools",
  ".holdfast",
  "built-page",
]);
const TEXT = /(\.(ts|tsx|mts|js|mjs|json|jsonl|md|yml|yaml|sh|sql|html|css|txt)|(^|\/)\.[a-z]+|\/run)$/;
const SOURCE = /\.(ts|tsx|mts|mjs|js)$/;
/** Written by a generator, to its own taste. */
const GENERATED = /\/src\/gen\//;

/** A line that marks the code below it for a planted mutant (`scripts/mutant-source.ts`). It is no text of the source. */
export const MUTANT_MARKER = /^[ \t]*\/\/ mutant: (.*)\n/gm;

export function readTree(root: string): Tree {
  const files = list(root, "");
  const texts = new Map<string, string>();
  const known = new Set(files);
  const read = (file: string): string | undefined => {
    if (!known.has(file)) return undefined;
    const text = texts.get(file) ?? readFileSync(join(root, file), "utf8");
    texts.set(file, text);
    return text;
  };
  const sources = files
    .filter((file) => SOURCE.test(file) && !GENERATED.test(file))
    .map((file) => parseSource(file, read(file) ?? ""));
  return { root, hasHistory: existsSync(join(root, ".git")), files, read, sources };
}

/** The property of a node that is itself a node, if it is. */
export function child(node: Node, key: string): Node | undefined {
  const value = node[key];
  return isNode(value) ? value : undefined;
}

/** The name of an identifier, or undefined for any other node. */
export function nameOf(node: Node | undefined): string | undefined {
  return node !== undefined && node.type.endsWith("Identifier") ? (node["name"] as string) : undefined;
}

function list(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (LEFT_OUT.has(entry.name)) return [];
      if (entry.isDirectory()) return list(root, path);
      return entry.isFile() && TEXT.test(path) ? [path] : [];
    })
    .toSorted();
}

export function parseSource(file: string, text: string): Source {
  const result = parseSync(file, text);
  const lineAt = lineFinder(text);
  const { nodes, parents } = nodesOf(result.program as unknown as Node);
  const walk: Source["walk"] = (visit) => {
    for (let index = 0; index < nodes.length; index++) visit(nodes[index]!, parents[index]);
  };
  const inPackage = /^packages\/([^/]+)\/src\//.exec(file);
  return {
    file,
    text,
    packageFolder: inPackage?.[1],
    isTest: /\.test\.ts$|\/testing\//.test(file),
    imports: importsOf(walk, lineAt),
    comments: result.comments,
    errors: result.errors.map(({ message }) => message),
    lineAt,
    lines: text.split("\n"),
    walk,
  };
}

/** Static, re-exporting, dynamic and type imports alike; a type that is imported is known all the same. */
function importsOf(walk: Source["walk"], lineAt: Source["lineAt"]): Import[] {
  const imports: Import[] = [];
  walk((node) => {
    if (!/^(Import(Declaration|Expression)|Export(All|Named)Declaration|TSImportType)$/.test(node.type))
      return;
    const specifier = child(node, "source")?.["value"];
    if (typeof specifier === "string") imports.push({ specifier, line: lineAt(node.start) });
  });
  return imports;
}

/** All nodes in the order of the text: the syntax tree is taken apart once, and each rule reads the list. */
function nodesOf(program: Node) {
  const nodes: Node[] = [];
  const parents: (Node | undefined)[] = [];
  const add = (node: Node, parent: Node | undefined): void => {
    nodes.push(node);
    parents.push(parent);
    const keys = visitorKeys[node.type];
    if (keys === undefined) return;
    for (const key of keys) {
      const value = node[key];
      if (Array.isArray(value)) {
        for (const item of value) if (isNode(item)) add(item, node);
      } else if (isNode(value)) add(value, node);
    }
  };
  add(program, undefined);
  return { nodes, parents };
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

function lineFinder(text: string): (offset: number) => number {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return (offset) => {
    let [low, high] = [0, starts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (starts[middle]! > offset) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}
