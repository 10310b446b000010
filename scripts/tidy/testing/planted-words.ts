// Violations of the rules about words, names and labels.

import { type Planted } from "./planted.ts";

export const inWords: readonly Planted[] = [
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
    promise: "a decision that is younger than the rule",
    wrong: { "docs/decisions/0018-a.md": "What is decided stays." },
    right: { "docs/decisions/0017-a.md": "What is decided stays." },
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
  ...[
    ["a subject without an area", "Keep each row", "storage: keep each row"],
    ["a subject that is too long", `core: keep ${"a".repeat(62)}`, `core: keep ${"a".repeat(61)}`],
    ["a bare word in place of a verb", "core: what is stored survives", "core: say what is stored"],
    ["an article in place of a verb", "core: the row is kept", "core, api: keep the row"],
    ["a participle in place of a verb", "core: keeping rows", "core: bring rows back"],
    ["a verb without an object", "core: improve", "core: improve rows"],
  ].map(([promise, wrong, right]): Planted => ({
    rule: "commit-subject",
    promise: promise!,
    wrong: { "a.md": "" },
    right: { "a.md": "" },
    commits: { wrong: wrong!, right: right! },
    at: "commit",
  })),
  {
    rule: "header-name",
    promise: "a header begins with the old name of a function",
    wrong: {
      "packages/core/src/a.ts":
        "// `readRow`, `writeRow`: rows.\n\nexport function readRow() {}\n// writeRow",
    },
    right: {
      "packages/core/src/a.ts":
        "// `readRow` and `writeRow`: rows, for `other`.\n\nexport function readRow() {}\nexport const writeRow = 1;",
      "packages/core/src/b.ts": "// Rows, read by `readRow`.\n\nf();",
    },
  },
  {
    rule: "label-unique",
    promise: "a promise is defined twice",
    wrong: { "docs/internals/promises.md": "- **H1.** One.\n- **H2.** Two.\n- **H1.** Three.\n" },
  },
  {
    rule: "label-unique",
    promise: "a rule of one source has the label of a promise",
    wrong: {
      "packages/core/src/a.ts": "// Header.\n//\n//   H1. A rule of this source.",
      "docs/internals/promises.md": "- **H1.** One.\n  - sources: `packages/core/src/b.ts`\n",
    },
    right: {
      "packages/core/src/a.ts":
        "// Header.\n//\n//   a-1. A rule of this source.\n//   H1. A promise.\n\nf(); // a-1, H1.",
      "packages/core/src/a.test.ts": 'test("a-1, H1, ST1: a rule holds", f);',
      "packages/core/src/ports/storage.ts": "/**\n *   ST1. One.\n */\nexport interface S {}",
      "docs/internals/promises.md": "- **H1.** One.\n  - sources: `packages/core/src/a.ts`\n",
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
    promise: "a mutant cites a label that is defined nowhere",
    wrong: { "scripts/mutants.ts": 'export const M = { name: "ST7: a row survives" };' },
    right: { "scripts/mutants.ts": 'export const M = { name: "Note: a row survives" };' },
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
  ...["f(); // gone-2.", "// The rule stands elsewhere (gone-2, gone-3)."].map((text): Planted => ({
    rule: "label-unique",
    promise: `the citation of a rule whose source is gone: ${text}`,
    wrong: { "packages/core/src/a.ts": text },
    right: { "packages/core/src/a.ts": "// Hashes are of sha-256, or (as in md-5 before) shorter." },
  })),
  {
    rule: "label-unique",
    promise: "a test of a rule whose source is gone",
    wrong: { "packages/core/src/a.test.ts": 'test("gone-2: a row survives", f);' },
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
      "packages/storage/src/rows.test.ts": 'test("sqlite-rows-1, postgres-rows-1: a rule holds", f);',
    },
  },
  {
    rule: "label-unique",
    promise: "a rule has a label that no other file cites",
    wrong: { "packages/core/src/a.ts": "// Header.\n//\n//   a-1. A rule.\n\nf(); // a-1." },
    right: {
      "packages/core/src/a.ts": "// Header.\n//\n//   a-1. A rule.\n//   - Another rule.\n\nf(); // a-1.",
      "packages/core/src/b.test.ts": 'test("a rule holds for %j (a-1)", f);',
    },
  },
  {
    rule: "label-unique",
    promise: "a rule with the prefix of another source",
    wrong: { "packages/core/src/a.ts": "//   b-1. A rule." },
  },
];
