// The comparison of a restore receipt with what is there at a resume.

import { describe, expect, test } from "vitest";

import { afterCutOff, compareReceipt, type FoundState, type RestoreReceipt } from "./restore-receipt.ts";

const PARTS = {
  sandbox: "none",
  permissionMode: "default",
  model: "sonnet",
  program: { version: "2.1.0", stamp: "1 1" },
  mcpFiles: { "/p/.mcp.json": "m" },
  environment: { ANTHROPIC_BASE_URL: "u", ANTHROPIC_API_KEY: "set" },
  workspace: { commit: "c1", uncommitted: { "a.txt": "1" } },
} as const;
const RECEIPT: RestoreReceipt = {
  version: 1,
  ...PARTS,
  sessionFile: { path: "/h/s.jsonl", bytes: 10, sha256: "s", isMirrored: true },
};
const FOUND: FoundState = {
  ...PARTS,
  isFolderThere: true,
  hasCommit: true,
  sessionFile: { bytes: 10, sha256: "s" },
};

test("a state that is the same has no difference", () => {
  expect(compareReceipt(RECEIPT, FOUND)).toEqual([]);
});

describe("a loss stops the resume", () => {
  test.each<[string, Partial<FoundState>, string, RegExp]>([
    ["a folder that is gone", { isFolderThere: false, workspace: null, hasCommit: false }, "folder", /gone/],
    ["a session file that is gone", { sessionFile: null }, "session_file", /gone: \/h\/s\.jsonl/],
    [
      "a shorter session file",
      { sessionFile: { bytes: 4, sha256: "x" } },
      "session_file",
      /4 of its 10 bytes/,
    ],
    ["another session file", { sessionFile: { bytes: 10, sha256: "x" } }, "session_file", /another content/],
    ["a folder that left git", { workspace: null }, "workspace", /no git repository/],
    ["a commit that is gone", { hasCommit: false }, "workspace", /commit c1/],
    [
      "uncommitted work that is gone",
      { workspace: { commit: "c1", uncommitted: {} } },
      "workspace",
      /not committed are gone: a\.txt/,
    ],
    ["another permission mode", { permissionMode: "plan" }, "permission_mode", /default and is plan/],
    ["another model", { model: null }, "model", /sonnet and is unnamed/],
    ["a program that is gone", { program: null }, "program", /gone/],
    ["a file with MCP servers that is gone", { mcpFiles: {} }, "mcp_servers", /\.mcp\.json is gone/],
    [
      "a variable that is not set",
      { environment: { ANTHROPIC_API_KEY: "set" } },
      "environment",
      /ANTHROPIC_BASE_URL is gone/,
    ],
  ])("%s", (_, found, part, text) => {
    const [only, ...more] = compareReceipt(RECEIPT, { ...FOUND, ...found });
    expect(more).toEqual([]);
    expect(only).toMatchObject({ part, isLoss: true });
    expect(only?.text).toMatch(text);
  });
});

describe("a change is told and stops nothing", () => {
  test.each<[string, Partial<FoundState>, string]>([
    ["an edited file", { workspace: { commit: "c1", uncommitted: { "a.txt": "2" } } }, "a.txt"],
    ["a commit of the work", { workspace: { commit: "c2", uncommitted: {} } }, "HEAD was c1 and is c2"],
    ["a new version of the program", { program: { version: "2.2.0", stamp: "2 2" } }, "2.2.0"],
    ["another file with MCP servers", { mcpFiles: { "/p/.mcp.json": "n" } }, ".mcp.json was changed"],
  ])("%s", (_, found, text) => {
    const differences = compareReceipt(RECEIPT, { ...FOUND, ...found });
    expect(differences.map(({ isLoss }) => isLoss)).not.toContain(true);
    expect(differences.map((one) => one.text).join("; ")).toContain(text);
  });
});

test("after a turn that was cut off, the files of the workspace are not compared", () => {
  const receipt = afterCutOff(RECEIPT);
  const found = { ...FOUND, workspace: { commit: "c9", uncommitted: {} }, hasCommit: false };
  expect(compareReceipt(receipt!, found)).toEqual([]);
  expect(compareReceipt(receipt!, { ...found, sessionFile: null })).toHaveLength(1);
});
