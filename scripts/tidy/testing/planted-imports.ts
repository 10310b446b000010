// Violations of the rules about imports and folders.

import { readFileSync } from "node:fs";
import { CORE, PACKAGES, sourcesIn, type Planted } from "./planted.ts";

const MAP = readFileSync(new URL("../../../ARCHITECTURE.md", import.meta.url), "utf8");
const CORE_ROW = /^\| `core` \|.*\n/m;

export const inImports: readonly Planted[] = [
  ...(
    [
      ["a package that the map does not have", ""],
      ["a package of the map that is not there", "$&| `gone` | a package | core |\n"],
      ["a package that may import less than the map says", "| `core` | a package | proto |\n"],
    ] as const
  ).map(([promise, row]): Planted => ({
    rule: "package-map",
    promise,
    wrong: { "ARCHITECTURE.md": MAP.replace(CORE_ROW, row) },
    right: { "ARCHITECTURE.md": MAP },
  })),
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
      "packages/agents/src/tasks/a.ts": 'import type { B } from "../model-loop/b.ts";',
      "packages/agents/src/model-loop/b.ts": "",
    },
    right: {
      "packages/agents/src/model-loop/a.ts": 'import "./c.ts"; import type { B } from "../tasks/b.ts";',
      "packages/agents/src/tasks/a.test.ts": 'import "../model-loop/a.ts";',
      "packages/agents/src/tasks/testing/a.ts": 'import "../../model-loop/a.ts";',
      "packages/agents/src/index.ts": 'export * from "./model-loop/a.ts";',
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
      "packages/agents/src/tasks/more/a.ts": "",
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
  {
    rule: "late-import",
    promise: "an import inside of a function of the command that has no reason",
    wrong: {
      "packages/holdfast/src/commands/a.ts": 'export const a = async () => (await import("../view/b.ts")).b;',
    },
    right: {
      "packages/holdfast/src/commands/a.ts":
        'import { b } from "../view/b.ts";\nexport const a = async () => [b, await import("@holdfast/client")];',
    },
  },
  {
    rule: "late-import",
    promise: "an import inside of a function below the command that has no reason",
    wrong: { "packages/place/src/a.ts": 'export const a = async () => (await import("./settings/b.ts")).b;' },
    right: { "packages/place/src/a.ts": 'export const a = async () => import("@holdfast/storage/sqlite");' },
  },
  {
    rule: "late-import",
    promise: "a reason for an import that no function makes",
    wrong: { "packages/holdfast/src/commands/index.ts": "export const COMMANDS = {};" },
    at: "scripts/tidy/late-imports.ts",
  },
];
