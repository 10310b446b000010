// The workspace of a restore receipt, read with one git over real repositories.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

import { readWorkspace } from "./read-workspace.ts";

let base: string;
let root: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-workspace-")));
  root = join(base, "root");
  mkdirSync(join(root, "sub"), { recursive: true });
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const git = (...args: readonly string[]): string =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.invalid", ...args], {
    cwd: root,
    encoding: "utf8",
  }).trim();

test("the commit and each kind of change are read, from any folder of the repository and in a worktree", async () => {
  expect(await readWorkspace(root)).toBeNull();
  git("init", "--quiet");
  expect(await readWorkspace(root)).toEqual({ commit: null, uncommitted: {} });
  for (const name of ["kept", "edited", "gone", "old name"])
    writeFileSync(join(root, name), `${name}\n`.repeat(9));
  git("add", "--all");
  git("commit", "--quiet", "-m", "begin");
  const commit = git("rev-parse", "HEAD");
  expect(await readWorkspace(root)).toEqual({ commit, uncommitted: {} });
  writeFileSync(join(root, "edited"), "x");
  rmSync(join(root, "gone"));
  git("mv", "old name", "new name");
  writeFileSync(join(root, "sub/a b\nc ö"), "new");
  const found = await readWorkspace(join(root, "sub"));
  expect(found?.commit).toBe(commit);
  expect(Object.keys(found!.uncommitted).toSorted()).toEqual(["edited", "gone", "new name", "sub/a b\nc ö"]);
  expect(found?.uncommitted["gone"]).toBe("absent");
  git("worktree", "add", "--quiet", "../tree");
  writeFileSync(join(base, "tree/kept"), "other");
  expect(await readWorkspace(join(base, "tree"))).toMatchObject({
    commit,
    uncommitted: { kept: expect.any(String) as string },
  });
});

test.each([
  ["the configuration", (): string => git("config", "filter.f.clean", "touch ran; cat")],
  [
    "the configuration of a worktree",
    (): void => {
      git("config", "extensions.worktreeConfig", "true");
      git("config", "--worktree", "filter.f.clean", "touch ran; cat");
    },
  ],
  [
    "a file that the configuration includes",
    (): void => {
      git("config", "include.path", "more");
      writeFileSync(join(root, ".git/more"), '[filter "f"]\n\tclean = touch ran; cat\n');
    },
  ],
])("no program runs that %s names", async (_where, name) => {
  git("init", "--quiet");
  writeFileSync(join(root, "a"), "one");
  git("add", "--all");
  git("commit", "--quiet", "-m", "begin");
  writeFileSync(join(root, ".gitattributes"), "a filter=f\n");
  name();
  writeFileSync(join(root, "a"), "two");
  expect(Object.keys((await readWorkspace(root))!.uncommitted)).toContain("a");
  expect(existsSync(join(root, "ran"))).toBe(false);
});

test("a repository that git refuses is none, and no other one further up is read", async () => {
  git("init", "--quiet");
  mkdirSync(join(root, "sub/.git"));
  writeFileSync(join(root, "sub/.git/HEAD"), "nothing");
  expect(await readWorkspace(join(root, "sub"))).toBeNull();
});
