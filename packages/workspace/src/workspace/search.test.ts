import { execFileSync } from "node:child_process";
import { mkdtemp, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { openWorkspace, type Workspace } from "./workspace.ts";

let root: string;
let workspace: Workspace;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "search-"));
  await mkdir(join(root, "src"));
  await mkdir(join(root, "node_modules"));
  await writeFile(join(root, "src/a.js"), "const price = 1;\nreturn Price.of(price);\n");
  await writeFile(join(root, "src/b.js"), "// nothing (here)\n");
  await writeFile(join(root, "node_modules/c.js"), "price\n");
  await writeFile(join(root, "data.bin"), Buffer.from("price\0price"));
  workspace = await openWorkspace({ root, limits: { searchMs: 2_000, matches: 5 } });
});

afterEach(async () => {
  await workspace.dispose();
  await rm(root, { recursive: true, force: true });
});

const places = async (query: Parameters<Workspace["search"]>[0]): Promise<string[]> =>
  (await workspace.search(query)).matches.map(({ path, line }) => `${path}:${line}`);

test("text is found where it stands, without installed packages and binary files", async () => {
  expect(await workspace.search({ pattern: "Price" })).toEqual({
    matches: [{ path: "src/a.js", line: 2, text: "return Price.of(price);" }],
    filesSearched: 2,
  });
  expect(await places({ pattern: "PRICE", ignoreCase: true })).toEqual(["src/a.js:1", "src/a.js:2"]);
  expect(await places({ pattern: "(here)" })).toEqual(["src/b.js:1"]);
});

test("expressions are found, and one that is none is explained", ofCampaign, async () => {
  expect(await places({ pattern: "^return .*\\);$", isRegex: true })).toEqual(["src/a.js:2"]);
  expect(await places({ pattern: "^RETURN", isRegex: true, ignoreCase: true })).toEqual(["src/a.js:2"]);
  await expect(workspace.search({ pattern: "(", isRegex: true })).rejects.toMatchObject({
    code: "invalid_input",
  });
  await expect(workspace.search({ pattern: "" })).rejects.toMatchObject({ code: "invalid_input" });
});

test("an expression that would never finish is ended", async () => {
  // In a folder of its own: the search of other files may use up the time, and then ends without an error.
  await mkdir(join(root, "trap"));
  await writeFile(join(root, "trap/trap.txt"), `${"a".repeat(60)}!\n`);
  const slow = await openWorkspace({ root, limits: { searchMs: 300 } });
  await expect(slow.search({ pattern: "^(a+)+$", isRegex: true, path: "trap" })).rejects.toThrow(
    "takes too long",
  );
});

test("a search includes new files and skips ignored ones, unless it asks for an ignored directory", async () => {
  execFileSync("git", ["init", "-q"], { cwd: root });
  await writeFile(join(root, ".gitignore"), "secret/\n*.log\n");
  await mkdir(join(root, "secret"));
  await writeFile(join(root, "secret/x.txt"), "price\n");
  await writeFile(join(root, "debug.log"), "price\n");
  await writeFile(join(root, "node_modules/c.js"), "price\n");
  expect((await workspace.listFiles()).files).toEqual([
    ".gitignore",
    "data.bin",
    "node_modules/c.js",
    "src/a.js",
    "src/b.js",
  ]);
  expect(await places({ pattern: "price" })).toEqual(["node_modules/c.js:1", "src/a.js:1", "src/a.js:2"]);
  expect(await places({ pattern: "price", path: "secret" })).toEqual(["secret/x.txt:1"]);
});

test("a directory whose name is a pattern of git is only itself", async () => {
  execFileSync("git", ["init", "-q"], { cwd: root });
  await mkdir(join(root, "[a-z]rc"));
  await writeFile(join(root, "[a-z]rc/page.js"), "price\n");
  expect((await workspace.listFiles("[a-z]rc")).files).toEqual(["[a-z]rc/page.js"]);
});

test(
  "Holdfast's own files are neither listed nor searched, whether git knows them or not",
  ofCampaign,
  async () => {
    await mkdir(join(root, "deep/.holdfast"), { recursive: true });
    await writeFile(join(root, "deep/.holdfast/holdfast.db"), "needle");
    for (const isRepository of [false, true]) {
      if (isRepository) execFileSync("git", ["init", "-q"], { cwd: root });
      expect((await workspace.listFiles()).files.filter((name) => name.includes("holdfast"))).toEqual([]);
      expect(await places({ pattern: "needle" })).toEqual([]);
      await expect(places({ pattern: "needle", path: "deep/.holdfast" })).rejects.toMatchObject({
        code: "policy_denied",
      });
    }
  },
);

test("a link to a file outside is not searched", async () => {
  const outside = await mkdtemp(join(tmpdir(), "outside-"));
  await writeFile(join(outside, "key"), "price of secrets\n");
  await symlink(join(outside, "key"), join(root, "src/link"));
  execFileSync("git", ["init", "-q"], { cwd: root });
  expect((await workspace.listFiles("src")).files).toContain("src/link");
  expect(await places({ pattern: "secrets" })).toEqual([]);
  await rm(outside, { recursive: true });
});

test("more than the limit says so", async () => {
  await writeFile(join(root, "src/many.txt"), "needle\n".repeat(10));
  const { matches, incomplete } = await workspace.search({ pattern: "needle" });
  expect(matches).toHaveLength(5);
  expect(incomplete).toContain("more than 5");
});
