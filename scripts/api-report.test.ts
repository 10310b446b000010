// The public API changes only on purpose, and each of its names is explained and met by users.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { apiReference, REFERENCE } from "./api-reference.ts";
import { neverNamed, publicNames, READ_BY_USERS, reports, withoutComment } from "./public-api.ts";
import { parseSource, readTree, type Tree } from "./tidy/tree.ts";

/** The public API is at most so large. More names are a decision, and not an accident. */
const NAMES_MAX = 400;

const root = fileURLToPath(new URL("..", import.meta.url));
const tree = readTree(root);
const names = publicNames(tree);

/** A tree of these files, for the package `holdfast` and one more. */
function planted(files: Readonly<Record<string, string>>): Tree {
  const all: Readonly<Record<string, string>> = {
    "packages/holdfast/package.json":
      '{ "name": "holdfast", "exports": { ".": "./src/index.ts", "./more": "./src/more.ts" } }',
    "packages/core/package.json": '{ "name": "@holdfast/core", "exports": { ".": "./src/index.ts" } }',
    "packages/holdfast/src/index.ts": "export {};",
    "packages/holdfast/src/more.ts": "export {};",
    ...files,
  };
  const sources = Object.entries(all)
    .filter(([file]) => file.endsWith(".ts"))
    .map(([file, text]) => parseSource(file, text));
  return { root: "/", hasHistory: false, files: Object.keys(all), read: (file) => all[file], sources };
}

const declarationsOf = (declared: string, exported = "it"): readonly string[] =>
  publicNames(
    planted({
      "packages/holdfast/src/index.ts": `export { ${exported} } from "@holdfast/core";`,
      "packages/core/src/index.ts": 'export { it } from "./part.ts";',
      "packages/core/src/part.ts": declared,
    }),
  ).map(({ declaration }) => declaration);

test.each([
  ["export function it(a: string): void { b(); }", "function it(a: string): void"],
  ["export interface it {\n  /** A. */\n  readonly a: string;\n}", "interface it { readonly a: string; }"],
  ["export type it = // Why.\n  | 1\n  | 2;", "type it = | 1 | 2;"],
  ["export const it = (a: string): string => a;", "const it = (a: string): string =>"],
  ["export const it: A = { a: 1 };", "const it: A"],
  ["export const it = { a: 1 };", "const it = {…"],
  [
    "export class it { #a = 1; private b = 2; c: string = d(); e(f: number): void { g(); } }",
    "class it { c: string; e(f: number): void }",
  ],
])("the declaration of %j is %j", (declared, expected) => {
  expect(declarationsOf(declared)).toEqual([expected]);
});

test("a class that is exported as a type says so", () => {
  expect(declarationsOf("export class it { a: string }", "type it")).toEqual([
    "type of class it { a: string }",
  ]);
});

test("a name without a doc comment is found, and one that users never meet", () => {
  const small = planted({
    "packages/holdfast/src/index.ts": 'export { met, type Used, type Strange } from "./part.ts";',
    "packages/holdfast/src/part.ts":
      "/** Meets. */\nexport function met(used: Used): void {}\n\nexport type Used = 1;\n\n/** Strange. */\nexport type Strange = 2;\n",
    "docs/guide.md": "Call `met`.",
    "docs/internals/parts.md": "`Strange` is internal.",
  });
  expect(withoutComment(publicNames(small))).toEqual(["Used"]);
  expect(neverNamed(publicNames(small), small)).toEqual(["Strange"]);
});

test("the reports are those of the sources; `npm run api-report` writes them", () => {
  const written = readdirSync(join(root, "docs/api-report")).map((name) => `docs/api-report/${name}`);
  const expected = reports(names);
  expect(written.toSorted()).toEqual([...expected.keys()].toSorted());
  for (const [file, text] of expected) expect(readFileSync(join(root, file), "utf8"), file).toBe(text);
});

test("the reference is that of the sources; `npm run api-report` writes it", () => {
  expect(readFileSync(join(root, REFERENCE), "utf8"), "run `npm run api-report`").toBe(
    apiReference(names, tree),
  );
});

const referenceOf = (declared: string): string => {
  const small = planted({
    "packages/holdfast/src/index.ts":
      '// The entry.\n\nexport { it } from "./it.ts";\nexport { type Other } from "./other.ts";',
    "packages/holdfast/src/it.ts": declared,
    "packages/holdfast/src/other.ts": "/** Other. */\nexport type Other = 1;",
  });
  const page = apiReference(publicNames(small), small);
  return page.slice(page.indexOf("### it")).split("### Other")[0]!.trim();
};

const fenced = (code: string): string => `\`\`\`ts\n${code}\n\`\`\``;

test.each([
  [
    "a function with its tags, its types and without its body",
    "/**\n * Does it (K2).\n *\n * @param a the first.\n * @throws UsageError `usage` for others.\n */\nexport function it(a: Other): void { b(); }",
    [
      `${fenced("function it(a: Other): void")}\n\nDoes it.\n`,
      "- `a`: the first.\n- Throws `UsageError` (`usage`) for others.\n",
      "See [Other](#other).",
    ],
  ],
  [
    "an interface with a row for each member, and for each member of a member",
    "/** It. */\nexport interface it {\n  /** A or B. */\n  readonly a?: 1 | 2;\n  readonly b: {\n    /** C. */\n    readonly c: 1;\n  };\n}",
    [
      `${fenced("interface it")}\n\nIt.\n`,
      "| member | meaning |\n|---|---|\n| `a?: 1 \\| 2` | A or B. |\n| `b` |  |\n| `b.c: 1` | C. |",
    ],
  ],
  [
    "a class without what is private, internal or an implementation",
    "/** It. */\nexport class it {\n  #a = 1;\n  /** @internal B. */\n  b(): void {}\n  /** C. */\n  c(d: 1): void;\n  c(d: 2): void;\n  c(d: 1 | 2): void {}\n}",
    [
      `${fenced("class it")}\n\nIt.\n`,
      "| member | meaning |\n|---|---|\n| `c(d: 1): void` | C. |\n| `c(d: 2): void` |  |",
    ],
  ],
  [
    "a list whose items are clauses",
    "/**\n * It keeps these:\n *\n *   ST1. One thing, on\n *        two lines.\n *   ST2. Another.\n */\nexport type it = 1;",
    [`${fenced("type it = 1;")}\n\nIt keeps these:\n`, "- One thing, on two lines.\n- Another."],
  ],
])("the reference shows %s", (_, declared, expected) => {
  expect(referenceOf(declared)).toBe(["### it\n", ...expected].join("\n"));
});

test("the public API has few names, and each of them once", () => {
  expect(names.length).toBeLessThanOrEqual(NAMES_MAX);
  expect(new Set(names.map(({ name }) => name)).size).toBe(names.length);
});

test("every public name has a doc comment", () => {
  expect(withoutComment(names)).toEqual([]);
});

test("every public name is in a document or an example, or in the declaration of one that is", () => {
  expect(neverNamed(names, tree)).toEqual([]);
});

// Tests of examples read the switch of campaigns. The first example also reads journals and files of the
// engine.
test("documents and examples name no package but `holdfast`", () => {
  const others = tree.files
    .filter((file) => READ_BY_USERS.test(file) && !file.startsWith("examples/01-coding-agent/"))
    .flatMap((file) =>
      [...(tree.read(file) ?? "").matchAll(/[`"](@holdfast\/[\w/-]+)/g)].map(
        ([, name]) => `${file}: ${name}`,
      ),
    )
    .filter((found) => !found.endsWith(".test.ts: @holdfast/testkit/campaign"));
  expect(others).toEqual([]);
});
