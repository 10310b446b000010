// Merges that a person agreed to after a look at the work. An agent may change it in the meantime.

import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Worktrees } from "../worktrees.ts";

let place: string;
let project: string;
let worktrees: Worktrees;

beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), "worktrees-")));
  project = join(place, "project");
  mkdirSync(project);
  git(project, "init", "--quiet", "--initial-branch=main");
  git(project, "config", "user.name", "T");
  git(project, "config", "user.email", "t@example.invalid");
  write(project, "a.txt", "one\n");
  git(project, "add", "--all");
  git(project, "commit", "--quiet", "-m", "first");
  worktrees = new Worktrees({ folder: join(place, "data"), environment: { ...process.env, HOME: place } });
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

function git(folder: string, ...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

function write(folder: string, name: string, text: string): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), text);
}

/** The folder of a session with a change, and the revision that a person has seen. */
async function seen(): Promise<{ readonly path: string; readonly revision: string }> {
  const { path } = await worktrees.open({ project, session: "s" });
  write(path, "a.txt", "two\n");
  const work = await worktrees.work(project, "s", "");
  expect(work).toMatchObject({ changed: ["a.txt"], isDiffCut: false });
  return { path, revision: work!.revision! };
}

const merge = (revision: string, more: object = {}) =>
  worktrees.merge(project, "s", { merge: "work", commit: "work", revision, ...more });

test("work is merged as it was seen, also when it was read again in between", async () => {
  const { path, revision } = await seen();
  git(path, "status");
  expect((await worktrees.work(project, "s", ""))?.revision).toBe(revision);
  expect(await merge(revision)).toMatchObject({ isNew: true, into: "main" });
  expect(git(project, "show", "HEAD:a.txt")).toBe("two\n");
});

test.each([
  ["a file that is not committed", (path: string) => write(path, "a.txt", "three\n")],
  ["a new file", (path: string) => write(path, "new/b.txt", "b\n")],
  ["a file's mode", (path: string) => execFileSync("chmod", ["+x", join(path, "a.txt")])],
  [
    "a text of the same length with the old time",
    (path: string) => {
      const { atime, mtime } = statSync(join(path, "a.txt"));
      write(path, "a.txt", "TWO\n");
      utimesSync(join(path, "a.txt"), atime, mtime);
    },
  ],
  [
    "the index alone",
    (path: string) => {
      const id = execFileSync("git", ["hash-object", "-w", "--stdin"], { cwd: path, input: "bad\n" });
      git(path, "update-index", "--add", "--cacheinfo", `100644,${id.toString().trim()},staged.txt`);
      git(path, "update-index", "--skip-worktree", "staged.txt");
    },
  ],
  [
    "a commit",
    (path: string) => {
      git(path, "commit", "--quiet", "--allow-empty", "-m", "more");
    },
  ],
  [
    "another branch",
    (path: string) => {
      git(path, "switch", "--quiet", "--create", "other");
    },
  ],
] as const)("work that has changed since then is not merged: %s", async (_what, change) => {
  const { path, revision } = await seen();
  const before = git(project, "rev-parse", "HEAD");
  change(path);
  await expect(merge(revision)).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("has changed since it was shown"),
  });
  expect(git(project, "rev-parse", "HEAD")).toBe(before);
  expect(git(project, "status", "--porcelain")).toBe("");
  const again = await worktrees.work(project, "s", "");
  expect(await merge(again!.revision!)).toMatchObject({ isNew: true });
});

test("work that an agent changes while it is committed is not merged", async () => {
  const { path } = await seen();
  // A program of the commit, as an agent that is faster than git.
  const bin = join(place, "bin");
  mkdirSync(bin);
  const late = `case "$*" in *"commit --quiet"*) echo late > a.txt; PATH="$REAL" git add a.txt;; esac`;
  const script = `#!/bin/sh\nREAL='${process.env["PATH"]}'\n${late}\nPATH="$REAL" exec git "$@"\n`;
  writeFileSync(join(bin, "git"), script, { mode: 0o755 });
  const environment = { ...process.env, HOME: place, PATH: `${bin}:${process.env["PATH"]}` };
  const raced = new Worktrees({ folder: join(place, "data"), environment });
  const { revision } = (await raced.work(project, "s", ""))!;
  const asked = { merge: "work", commit: "work", revision: revision! };
  await expect(raced.merge(project, "s", asked)).rejects.toMatchObject({ code: "conflict" });
  expect(git(project, "log", "--format=%s")).toBe("first\n");
  expect(git(path, "show", "HEAD:a.txt")).toBe("late\n");
});

test.each([".claude/settings.json", "sub/.mcp.json", ".github/agents/x.md"])(
  "a caller from elsewhere merges no file that gives rights: %s",
  async (file) => {
    const { path } = await seen();
    write(path, file, "{}\n");
    const { revision } = (await worktrees.work(project, "s", ""))!;
    await expect(merge(revision!, { isRemote: true })).rejects.toMatchObject({
      code: "policy_denied",
      got: file,
      fix: "run `holdfast merge s` in the project on that machine",
    });
    expect(git(path, "log", "--format=%s")).toBe("first\n");
    expect(await merge(revision!)).toMatchObject({ isNew: true });
    expect(existsSync(join(project, file))).toBe(true);
  },
);

test("a long difference says that it is cut", { timeout: 60_000 }, async () => {
  const { path } = await seen();
  for (let i = 0; i < 12; i++) appendFileSync(join(path, "b.txt"), `${"x".repeat(1_023)}\n`.repeat(1_024));
  expect(await worktrees.work(project, "s", "")).toMatchObject({ isDiffCut: true });
});
