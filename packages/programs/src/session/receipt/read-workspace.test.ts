// The workspace of a restore receipt, read with one git over real repositories.

import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clearInterval, setInterval } from "node:timers";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { Workspaces } from "./read-workspace.ts";

let base: string;
let root: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-workspace-")));
  root = join(base, "root");
  mkdirSync(join(root, "sub"), { recursive: true });
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const readWorkspace = (folder: string) => new Workspaces().read(folder);
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

describe("a folder that was read before", () => {
  const known = new Workspaces();
  const settled = () => delay(80); // workspace-stamp-2.
  /** A repository with a file of each kind, in a worktree or not. */
  async function prepare(isWorktree = false): Promise<void> {
    git("init", "--quiet");
    for (const [name, content] of Object.entries({
      tracked: "one",
      edited: "one",
      ".gitignore": "out/\n*.log\n",
    }))
      writeFileSync(join(root, name), content);
    git("add", "--all");
    git("commit", "--quiet", "-m", "begin");
    if (isWorktree) git("worktree", "add", "--quiet", "../tree");
    if (isWorktree) root = join(base, "tree");
    for (const folder of ["out", "sub"]) mkdirSync(join(root, folder), { recursive: true });
    for (const name of ["edited", "new", "out/made", "a.log"]) writeFileSync(join(root, name), "two");
    writeFileSync(join(base, "outside"), "two");
    symlinkSync(join(base, "outside"), join(root, "link"));
    await settled();
    await known.read(root);
    await known.read(root);
  }

  test("workspace-stamp-1: no git is started while nothing is changed but ignored files", async () => {
    await prepare();
    const first = await known.read(root);
    expect(Object.keys(first!.uncommitted).toSorted()).toEqual(["edited", "link", "new"]);
    writeFileSync(join(root, "out/made"), "three");
    appendFileSync(join(root, "a.log"), "three");
    expect(await known.read(root)).toBe(first);
  });

  test("workspace-stamp-2: after a reading that waits, no git is started, and a change at once is seen", async () => {
    await prepare();
    const [waiting, path] = [new Workspaces(), join(root, "edited")];
    for (const content of ["six", "ten"]) {
      writeFileSync(path, content);
      const first = await waiting.read(root, true);
      // The paths that are ignored are known from here on.
      const second = await waiting.read(root, true);
      if (content === "ten") expect(second).toBe(first);
      expect(await waiting.read(root)).toBe(second);
      for (const same of ["one", "two"]) {
        writeFileSync(path, same); // The size stays, and often the step of the clock.
        expect(await waiting.read(root)).toEqual(await readWorkspace(root));
      }
    }
  });

  test("workspace-stamp-2: a reading that waits ends while files are changed all the time", async () => {
    await prepare();
    const writer = setInterval(() => appendFileSync(join(root, "edited"), "x"), 1);
    try {
      expect(Object.keys((await known.read(root, true))!.uncommitted)).toContain("edited");
    } finally {
      clearInterval(writer);
    }
    expect(await known.read(root)).toEqual(await readWorkspace(root));
  });

  test("workspace-stamp-1: each change is seen, also in a worktree", async () => {
    for (const isWorktree of [false, true]) {
      root = join(base, `root-${isWorktree}`);
      mkdirSync(root);
      await prepare(isWorktree);
      const changes: Readonly<Record<string, () => void>> = {
        "an edit of the same size": () => {
          writeFileSync(join(root, "tracked"), "two");
          utimesSync(join(root, "tracked"), 1, 1);
        },
        "a new file": () => writeFileSync(join(root, "sub/more"), "x"),
        "an edit behind a link": () => writeFileSync(join(base, "outside"), "six"),
        "a right": () => chmodSync(join(root, "new"), 0o755),
        "a rule for ignored files": () => writeFileSync(join(root, ".gitignore"), "*.log\n"),
        "a rule in a subfolder": () => writeFileSync(join(root, "sub/.gitignore"), "more\n"),
        "the index": () => git("add", "new"),
        "a commit": () => git("commit", "--quiet", "-m", "next"),
        "another branch": () => git("checkout", "--quiet", "-b", `b-${isWorktree}`, "HEAD~1"),
        "a detached HEAD": () => git("checkout", "--quiet", "--detach"),
        "a removed file": () => rmSync(join(root, "edited")),
        "its branch again": () => git("checkout", "--quiet", `b-${isWorktree}`),
        "another commit of the branch": () => {
          git("update-ref", `refs/heads/b-${isWorktree}`, git("commit-tree", "HEAD^{tree}", "-m", "other"));
        },
        "packed references": () => git("pack-refs", "--all"),
        "a repository inside": () => {
          mkdirSync(join(root, "inside"));
          execFileSync("git", ["init", "--quiet"], { cwd: join(root, "inside") });
          writeFileSync(join(root, "inside/file"), "x");
        },
      };
      for (const [change, make] of Object.entries(changes)) {
        await settled();
        await known.read(root);
        make();
        expect(await known.read(root), `${change}, ${root}`).toEqual(await readWorkspace(root));
      }
    }
  });
});
