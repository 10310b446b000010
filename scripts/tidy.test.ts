// A rule that finds nothing proves nothing. Each one is shown a violation it must find, and its neighbour that is right.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { listOffences, lowerBaselines, RULES, tidy } from "./tidy.ts";

type Files = Readonly<Record<string, string>>;

interface Planted {
  readonly rule: string;
  readonly promise: string;
  /** Files that break the rule, the broken one first. */
  readonly wrong: Files;
  /** The path that the violation names, unless it is the first file. */
  readonly at?: string;
  /** Files close to these that are right. */
  readonly right?: Files;
}

const CORE = { "packages/core/package.json": '{"name":"@holdfast/core"}' };
const PACKAGES: Files = {
  ...CORE,
  "packages/runtime/package.json": '{"name":"@holdfast/runtime"}',
  "packages/storage/package.json": '{"name":"@holdfast/storage"}',
  "packages/testkit/package.json": '{"name":"@holdfast/testkit"}',
};

function sourcesIn(folder: string, count: number): Files {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`${folder}/s${index}.ts`, ""]));
}

const planted: readonly Planted[] = [
  {
    rule: "import-direction",
    promise: "core imports nothing, not even from Node",
    wrong: { "packages/core/src/a.ts": 'import { join } from "node:path";', ...CORE },
    right: { "packages/core/src/a.test.ts": 'import { test } from "vitest";', ...CORE },
  },
  {
    rule: "import-direction",
    promise: "a type counts as much as a value",
    wrong: { "packages/storage/src/a.ts": 'import type { Runtime } from "@holdfast/runtime";', ...PACKAGES },
    right: {
      "packages/storage/src/a.ts": 'import type { AgentStorage } from "@holdfast/core";',
      ...PACKAGES,
    },
  },
  {
    rule: "import-direction",
    promise: "an import inside a type, and a dynamic one, count too",
    wrong: { "packages/storage/src/a.ts": 'type T = import("@holdfast/runtime").T;', ...PACKAGES },
  },
  {
    rule: "import-direction",
    promise: "tests may import testkit, sources may not",
    wrong: { "packages/runtime/src/a.ts": 'export * from "@holdfast/testkit";', ...PACKAGES },
    right: { "packages/runtime/src/a.test.ts": 'export * from "@holdfast/testkit";', ...PACKAGES },
  },
  {
    rule: "import-direction",
    promise: "testkit sees no agents, not even in its tests",
    wrong: {
      "packages/testkit/src/a.test.ts": 'import "@holdfast/agents";',
      "packages/agents/package.json": '{"name":"@holdfast/agents"}',
      ...PACKAGES,
    },
  },
  {
    rule: "import-direction",
    promise: "a relative path does not leave its package",
    wrong: { "packages/runtime/src/a.ts": 'import "../../core/src/b.ts";', ...PACKAGES },
    right: { "packages/runtime/src/deep/a.ts": 'import "../b.ts";', ...PACKAGES },
  },
  {
    rule: "thrown-text",
    promise: "what was thrown is read by the one function that never throws",
    wrong: { "packages/runtime/src/a.ts": "try { f(); } catch (error) { say(String(error)); }" },
    right: {
      "packages/runtime/src/a.ts": "try { f(); } catch (error) { say(toError(error).message, String(n)); }",
    },
  },
  {
    rule: "private-file",
    promise: "files of secrets are made in one place",
    wrong: { "packages/runner/src/a.ts": "writeFileSync(path, token, { mode: 0o600 });" },
    right: {
      "packages/runner/src/a.ts": "createPrivate(path, token); writeFileSync(path, text, { mode: 0o644 });",
    },
  },
  {
    rule: "sqlite-lock",
    promise: "beside SQLite only one file opens files",
    wrong: { "packages/storage/src/sqlite/a.ts": 'import { statSync, openSync } from "node:fs";' },
    right: {
      "packages/storage/src/sqlite/a.ts": 'import { statSync } from "node:fs";',
      "packages/storage/src/sqlite/a.test.ts": 'import { openSync } from "node:fs";',
      "packages/storage/src/sqlite/file/plain-files.ts": 'import { openSync } from "node:fs";',
      "packages/runtime/src/a.ts": 'import { openSync } from "node:fs";',
    },
  },
  {
    rule: "import-cycle",
    promise: "a cycle over three files is found, one of its imports a type",
    wrong: {
      "packages/core/src/a.ts": 'import "./b.ts";',
      "packages/core/src/b.ts": 'export type * from "./deep/c.ts";',
      "packages/core/src/deep/c.ts": 'import type { A } from "../a.ts";',
    },
    right: {
      "packages/core/src/a.ts": 'import "./b.ts"; import "./c.ts";',
      "packages/core/src/b.ts": 'import "./c.ts";',
      "packages/core/src/c.ts": "",
    },
  },
  {
    rule: "room-direction",
    promise: "a room imports from a room above it, also a type",
    wrong: {
      "packages/agents/src/tasks/a.ts": 'import type { B } from "../coding-agent/b.ts";',
      "packages/agents/src/coding-agent/b.ts": "",
    },
    right: {
      "packages/agents/src/coding-agent/a.ts": 'import "./c.ts"; import type { B } from "../tasks/b.ts";',
      "packages/agents/src/tasks/a.test.ts": 'import "../coding-agent/a.ts";',
      "packages/agents/src/tasks/testing/a.ts": 'import "../../coding-agent/a.ts";',
      "packages/agents/src/index.ts": 'export * from "./coding-agent/a.ts";',
    },
  },
  {
    rule: "room-direction",
    promise: "a room imports from another room of its layer",
    wrong: { "packages/coordinator/src/call/a.ts": 'import "../store/b.ts";' },
  },
  {
    rule: "room-direction",
    promise: "a room imports what composes the package",
    wrong: { "packages/coordinator/src/call/a.ts": 'import "../coordinator.ts";' },
    right: { "packages/core/src/json/a.ts": 'import "../ids.ts"; import "../errors/errors.ts";' },
  },
  {
    rule: "room-direction",
    promise: "the layers of folders inside folders are their own",
    wrong: { "packages/storage/src/sqlite/tables/a.ts": 'import "../open.ts";' },
    right: { "packages/storage/src/sqlite/open.ts": 'import "./tables/a.ts";' },
  },
  {
    rule: "room-direction",
    promise: "a folder without a place in the table",
    wrong: { "packages/agents/src/more/a.ts": "" },
  },
  {
    rule: "room-direction",
    promise: "a folder of more than twelve sources",
    wrong: sourcesIn("packages/agents/src/tasks", 13),
    at: "packages/agents/src/tasks",
    right: {
      ...sourcesIn("packages/agents/src/tasks", 12),
      "packages/agents/src/tasks/index.ts": "",
      "packages/agents/src/tasks/a.test.ts": "",
    },
  },
  {
    rule: "room-direction",
    promise: "an entry whose folder is gone",
    wrong: { "scripts/tidy/rooms.ts": "" },
  },
  {
    rule: "test-library",
    promise: "what is published does not need vitest",
    wrong: { "packages/testkit/src/fake.ts": 'import { expect } from "vitest";' },
    right: { "packages/testkit/src/storage-conformance.ts": 'import { expect } from "vitest";' },
  },
  ...[
    "Date.now()",
    "new Date(0)",
    "Math.random()",
    "setTimeout(f, 1)",
    "process.pid",
    "fetch(url)",
    "console.log(1)",
  ].map((call): Planted => ({
    rule: "banned-global",
    promise: `core does not use ${call}`,
    wrong: { "packages/core/src/a.ts": `export const a = () => ${call};` },
    right: { "packages/core/src/a.test.ts": `export const a = () => ${call};` },
  })),
  {
    rule: "banned-global",
    promise: "a property, a type and a comment of that name are no use of it",
    wrong: { "packages/core/src/a.ts": "const { fetch = 1, now = Date.now } = {};" },
    right: {
      "packages/core/src/a.ts":
        "// Date.now() is for others\nexport type T = { process: Date };\nexport const f = (t: T, d: unknown) => [t.process, d instanceof Date];",
    },
  },
  {
    rule: "banned-global",
    promise: "only the command reads the environment",
    wrong: { "packages/runtime/src/a.ts": "export const home = process.env.HOME;" },
    right: { "packages/holdfast/src/a.ts": "export const home = process.env.HOME;" },
  },
  {
    rule: "old-node",
    promise: "no syntax that Node 22 cannot parse",
    wrong: { "examples/01/a.ts": "export const f = async () => { await using server = await start(); };" },
    right: { "examples/01/a.ts": "export const using = 1; const kind = 'using';" },
  },
  {
    rule: "glossary",
    promise: "a banned word inside a name of ours",
    wrong: { "packages/core/src/a.ts": "export class SessionManager {}" },
    right: { "packages/core/src/a.ts": "export const utilization = 1; export const simple = x.helper;" },
  },
  {
    rule: "glossary",
    promise: "a banned word as a file's name",
    wrong: { "packages/core/src/string-utils.ts": "" },
  },
  {
    rule: "size",
    promise: "600 lines are the limit",
    wrong: { "packages/core/src/a.ts": "\n".repeat(601) },
    right: { "packages/core/src/a.ts": "\n".repeat(600) },
  },
  {
    rule: "skip",
    promise: "a skip says why, on its line or above it",
    wrong: { "packages/core/src/a.test.ts": 'test.skipIf(isOld)("x", () => {});' },
    right: {
      "packages/core/src/a.test.ts":
        '// needs strace\ntest.skipIf(isOld)("x", () => {});\n\nit.skip("z", f); // slow\ntest("y", (t) => t.skip("no strace"));',
    },
  },
  {
    rule: "todo",
    promise: "what is left for later links a decision",
    wrong: { "packages/core/src/a.ts": "// TODO: later" },
    right: { "packages/core/src/a.ts": '// TODO: later, docs/decisions/0007-later.md\nconst a = "TODO";' },
  },
  {
    rule: "todo",
    promise: "what is known to be broken does not go in, linked or not",
    wrong: { "packages/core/src/a.ts": "// FIXME: docs/decisions/0007-later.md" },
  },
  ...[
    ["a comment whose sentence has no subject", "// What is stored survives."],
    ["a sentence without a subject behind a colon", "// The rule: Whoever asks first is answered first."],
    [
      "a sentence without a subject in the middle of a paragraph",
      "// It is stored. Of two rows\n// the newer one counts.",
    ],
    ["a pronoun in place of a subject", "/** One that is claimed stays claimed. */"],
    ["who for a process", "// The process who holds the lock writes."],
    ["more than 25 words in a comment", `// Rows ${"and rows ".repeat(13)}are kept.`],
    ["a second colon or semicolon", "// Two kinds: rows, which are kept; pages, which are not."],
    ["an idiom", "// The row is read anew after that."],
    ["a bare beginning of a test's name", 'test("what is stored survives a crash", f);'],
    ["a test's name without a subject", 'test.each([1, 2])("is stored once", f);'],
    ["a test's name without a verb", 'it("the same row with the same name", f);'],
    ["a bare beginning of a group's name", "describe(`of ${kind} rows`, f);"],
  ].map(([promise, text]): Planted => ({
    rule: "plain-words",
    promise: promise!,
    wrong: { "packages/core/src/a.test.ts": text! },
  })),
  {
    rule: "plain-words",
    promise: "more than 30 words in a document, also in a table",
    wrong: { "docs/a.md": `| row | Rows ${"and rows ".repeat(15)}are kept. |` },
    right: { "docs/a.md": `Rows ${"and rows ".repeat(13)}are kept.` },
  },
  {
    rule: "plain-words",
    promise: "a sentence that is right, code, quotations and questions",
    wrong: { "docs/a.md": "What a change log says counts." },
    right: {
      "docs/a.md":
        '# What is kept\n\n```\nWhat is shown.\n```\n\nWhat is kept? `who` and users who ask "who is it".\n',
      "CHANGELOG.md": "## Unreleased\n\n## 1.0.0\n\nWhat was released is history.\n",
      "packages/core/src/a.test.ts":
        '/** One process owns the file, and a user who asks is told. */\n// const what = 1;\ntest("a row of a file is kept", f); test("%s", f);',
      "packages/proto/src/gen/a.ts": "// What is generated.",
      "examples/01/fixture/a.md": "What a test reads.",
    },
  },
  {
    rule: "plain-words",
    promise: "a file with more offences than its baseline, and one with fewer",
    wrong: {
      "docs/more.md": "What is first.\n\nWhat is second.",
      "docs/fewer.md": "What is first.",
      "scripts/tidy/plain-words-baseline.json": '{ "docs/fewer.md": 1, "docs/more.md": 1 }',
    },
    right: {
      "docs/more.md": "What is first.",
      "scripts/tidy/plain-words-baseline.json": '{ "docs/more.md": 1 }',
    },
  },
  {
    rule: "clause",
    promise: "a clause without a test",
    wrong: {
      "packages/core/src/ports/storage.ts": "/**\n *   ST1. One.\n *   ST2. Two.\n */\nexport interface S {}",
      "packages/testkit/src/storage-conformance.ts": 'test("ST1: one", () => {});',
    },
    right: {
      "packages/core/src/ports/storage.ts": "/**\n *   ST1. One.\n *   ST2. Two.\n */\nexport interface S {}",
      "packages/testkit/src/conformance/a-conformance.ts":
        'test("ST1: one", f); test("ST1: again", f); test.each([1])("ST2: %i", f);',
    },
  },
  {
    rule: "clause",
    promise: "a conformance test without a clause",
    wrong: { "packages/testkit/src/storage-conformance.ts": 'test("works", () => {});' },
  },
  {
    rule: "clause",
    promise: "a conformance test of a clause that no port has",
    wrong: { "packages/testkit/src/storage-conformance.ts": 'test("ST9: works", () => {});' },
  },
  {
    rule: "invariant",
    promise: "a proof that is not there",
    wrong: { "ARCHITECTURE.md": "| H1 | never twice | `packages/core/src/gone.ts` |\n" },
    right: {
      "ARCHITECTURE.md":
        "| id | what | where |\n|---|---|---|\n| H1 | never twice | `packages/core/src/a.ts` |\n",
      "packages/core/src/a.ts": "",
    },
  },
  {
    rule: "invariant",
    promise: "a row that names no file",
    wrong: { "ARCHITECTURE.md": "| **H1** | never twice | yes |" },
  },
  {
    rule: "label-unique",
    promise: "a promise is defined twice",
    wrong: { "ARCHITECTURE.md": "| H1 | one |\n| H2 | two |\n| H1 | three |\n" },
  },
  {
    rule: "label-unique",
    promise: "a rule of one source has the label of a promise",
    wrong: {
      "packages/core/src/a.ts": "// Header.\n//\n//   H1. A rule of this source.",
      "ARCHITECTURE.md": "| H1 | one | `packages/core/src/b.ts` |\n",
    },
    right: {
      "packages/core/src/a.ts":
        "// Header.\n//\n//   a-1. A rule of this source.\n//   H1. A promise.\n\nf(); // a-1, H1.",
      "packages/core/src/a.test.ts": 'test("a-1, H1, ST1: a rule holds", f);',
      "packages/core/src/ports/storage.ts": "/**\n *   ST1. One.\n */\nexport interface S {}",
      "ARCHITECTURE.md": "| H1 | one | `packages/core/src/a.ts` |\n",
    },
  },
  {
    rule: "label-unique",
    promise: "a comment cites a label that is defined nowhere",
    wrong: { "packages/core/src/a.ts": "f(); // H7." },
    right: { "packages/core/src/a.ts": "// V8 and `H7` are no labels.\nconst a = 'H7';" },
  },
  {
    rule: "label-unique",
    promise: "a test cites a label that is defined nowhere",
    wrong: { "packages/core/src/a.test.ts": 'test.each([1])("ST7: row %i survives", f);' },
  },
  {
    rule: "label-unique",
    promise: "a comment cites a rule that its source does not have",
    wrong: { "packages/core/src/b.ts": "f(); // a-2.", "packages/core/src/a.ts": "//   a-1. A rule." },
    right: {
      "packages/core/src/b.ts": "f(); // a-1, and run-2.",
      "packages/core/src/a.ts": "//   a-1. A rule.",
    },
  },
  {
    rule: "label-unique",
    promise: "two sources of one name define the same rule",
    wrong: {
      "packages/storage/src/sqlite/tables/rows.ts": "/*\n *   rows-1. A rule.\n */",
      "packages/storage/src/postgres/tables/rows.ts": "//   rows-1. A rule.",
    },
    right: {
      "packages/storage/src/sqlite/tables/rows.ts": "//   sqlite-rows-1. A rule.",
      "packages/storage/src/postgres/tables/rows.ts": "//   postgres-rows-1. A rule.",
    },
  },
  {
    rule: "label-unique",
    promise: "a rule with the prefix of another source",
    wrong: { "packages/core/src/a.ts": "//   b-1. A rule." },
  },
  {
    rule: "changelog",
    promise: "what is not released stands on top",
    wrong: { "CHANGELOG.md": "# Changelog\n\n## 0.1.0\n\n## Unreleased\n" },
    right: { "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 0.1.0\n" },
  },
  {
    rule: "command-help",
    promise: "a command without an example",
    wrong: { "packages/holdfast/src/commands/run.ts": 'export const run = { name: "run", summary: "Run" };' },
    right: {
      "packages/holdfast/src/commands/run.ts": 'export const run = { summary: "Run", examples: ["run a"] };',
    },
  },
  // Put together here, so that this file itself holds no such path.
  {
    rule: "machine-path",
    promise: "a path of somebody's machine",
    wrong: { "README.md": ["see ", "root", "notes"].join("/") },
  },
  {
    rule: "machine-path",
    promise: "a registry's host",
    wrong: { ".npmrc": `registry=https://${["registry", "npmjs", "org"].join(".")}/` },
  },
  {
    rule: "machine-path",
    promise: "a path outside the checkout, but for tests",
    wrong: { "docs/a.md": "see ../shared" },
    right: { "packages/core/src/a.test.ts": 'const data = "../shared/a.json";' },
  },
  {
    rule: "lockfile",
    promise: "a recorded download address",
    wrong: { "package-lock.json": '{\n  "resolved": "https://example.org/a.tgz" }' },
    right: { "package-lock.json": '{\n  "resolved": "packages/core" }' },
  },
];

describe("tidy finds", () => {
  test.each(planted)("$rule: $promise", ({ rule, wrong, at, right }) => {
    const found = tidy(plant(wrong)).filter((violation) => violation.rule === rule);
    expect(found.map(({ file }) => file)).toContain(at ?? Object.keys(wrong)[0]);
    if (right !== undefined)
      expect(tidy(plant(right)).filter((violation) => violation.rule === rule)).toEqual([]);
  });

  test("every rule has a planted violation", () => {
    expect(new Set(planted.map(({ rule }) => rule))).toEqual(new Set(Object.keys(RULES)));
  });

  test("nothing in a tree where almost everything is missing", () => {
    expect(tidy(plant({ "README.md": "# Holdfast\n" }))).toEqual([]);
  });
});

describe("a falling baseline", () => {
  const files = {
    "docs/a.md": "What is first.",
    "docs/b.md": "What is first. What is second.",
    "scripts/tidy/plain-words-baseline.json": '{ "docs/a.md": 2, "docs/b.md": 1, "docs/gone.md": 1 }',
  };

  test("a number that is too high is a violation", () => {
    expect(
      tidy(plant(files))
        .filter(({ what }) => what.includes("--lower"))
        .map(({ file }) => file),
    ).toEqual(["docs/a.md", "docs/gone.md"]);
  });

  test("lowering it raises no number and adds no file", () => {
    const root = plant({ ...files, "docs/new.md": "What is first." });
    lowerBaselines(root);
    const baseline: unknown = JSON.parse(
      readFileSync(join(root, "scripts/tidy/plain-words-baseline.json"), "utf8"),
    );
    expect(baseline).toEqual({ "docs/a.md": 1, "docs/b.md": 1 });
  });

  test("the offences of a folder are listed with their lines", () => {
    const root = plant({ "docs/a.md": "Right.\n\nWhat is wrong.", "more/docs/a.md": "What is elsewhere." });
    expect(listOffences(root, "plain-words", ["docs/"])).toEqual([
      { file: "docs/a.md", line: 3, reason: 'begins with a bare "What"', text: "What is wrong." },
    ]);
  });
});

const roots: string[] = [];
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});

function plant(files: Files): string {
  const root = mkdtempSync(join(tmpdir(), "tidy-"));
  roots.push(root);
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  return root;
}
