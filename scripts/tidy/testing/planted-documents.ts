// Violations of the rules about documents, commands and traces of machines.

import { withRoomTables } from "../room-tables.ts";
import { type Planted } from "./planted.ts";

const CONTRIBUTING = withRoomTables("# Contributing\n");

export const inDocuments: readonly Planted[] = [
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
  ...[
    [
      "a proof that is not there",
      "  - sources: `packages/core/src/a.ts`\n  - tests: `packages/core/src/gone.test.ts`\n",
    ],
    [
      "a source that is not there",
      "  - sources: `packages/core/src/gone.ts`\n  - tests: `packages/core/src/a.test.ts`\n",
    ],
    ["a promise that names no test", "  - sources: `packages/core/src/a.ts`\n\nNone.\n"],
  ].map(([promise, places]): Planted => {
    const files = { "packages/core/src/a.ts": "", "packages/core/src/a.test.ts": "" };
    const right =
      "  - sources: `packages/core/src/a.ts`\n  - tests: all in\n    `packages/core/src/a.test.ts`\n";
    return {
      rule: "promise",
      promise: promise!,
      wrong: { "docs/internals/promises.md": `- **H1.** Rows stay.\n${places}`, ...files },
      right: {
        "docs/internals/promises.md": `- **H1.** Rows stay.\n${right}- **H2.** More.\n${right}`,
        ...files,
      },
    };
  }),
  ...["[text](gone.md)", "[text](b.md#gone)", "[text](#gone)", "`packages/core/src/gone.ts`"].map(
    (text): Planted => ({
      rule: "document-link",
      promise: `a document names something that is not there: ${text}`,
      wrong: { "docs/a.md": `# Here\n\nSee ${text}.`, "docs/b.md": "# B" },
      right: {
        "docs/a.md":
          "# Here, and `now`\n\n[b](b.md), [b](b.md#b), [here](#here-and-now), [docs](../docs), [web](https://a.b/c)\n\n" +
          "`docs/b.md` `[text](gone.md)`\n\n```\n[text](gone.md)\n```\n",
        "docs/b.md": "# B",
        "docs/decisions/0007-a.md": "`packages/core/src/gone.ts`",
        "examples/01/fixture/a.md": "[text](gone.md)",
      },
    }),
  ),
  {
    rule: "document-link",
    promise: "a decision links to a document that is not there",
    wrong: { "docs/decisions/0007-a.md": "[decision 8](0008-gone.md)" },
  },
  ...[
    ["a decision that the index does not have", "- [8. Pages are kept](0008-pages.md)"],
    ["a decision that the index names wrongly", "- [7. Rows go](0007-rows.md)"],
    ["a decision that the index has twice", "- [7. Rows stay](0007-rows.md)\n- [7. Rows stay](0007-rows.md)"],
  ].map(([promise, index]): Planted => ({
    rule: "decision-index",
    promise: promise!,
    wrong: { "docs/decisions/README.md": index!, "docs/decisions/0007-rows.md": "# 7. Rows stay\n" },
    right: {
      "docs/decisions/README.md": "- [7. Rows stay](0007-rows.md) (replaced by 8)",
      "docs/decisions/0007-rows.md": "# 7. Rows stay\n",
    },
  })),
  {
    rule: "decision-index",
    promise: "a decision whose heading has another number than its file",
    wrong: {
      "docs/decisions/0007-rows.md": "# 0007 Rows stay\n",
      "docs/decisions/README.md": "- [0007 Rows stay](0007-rows.md)",
    },
  },
  {
    rule: "changelog",
    promise: "what is not released stands on top",
    wrong: { "CHANGELOG.md": "# Changelog\n\n## 0.1.0\n\n## Unreleased\n" },
    right: { "CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n## 0.1.0\n" },
  },
  {
    rule: "room-table",
    promise: "a document without the tables of rooms",
    wrong: { "CONTRIBUTING.md": "# Contributing\n" },
    right: { "CONTRIBUTING.md": `${CONTRIBUTING}\n## More\n` },
  },
  {
    rule: "room-table",
    promise: "a row that differs from the table",
    wrong: { "CONTRIBUTING.md": CONTRIBUTING.replace("a whole session as a file", "sessions") },
  },
  {
    rule: "command-help",
    promise: "a command without an example",
    wrong: { "packages/holdfast/src/commands/run.ts": 'export const run = { name: "run", usage: "run" };' },
    right: {
      "packages/holdfast/src/commands/run.ts": 'export const run = { usage: "run", examples: ["run a"] };',
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
