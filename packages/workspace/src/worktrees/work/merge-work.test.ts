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
    message: expect.stringContaining("has changed since it was read"),
  });
  expect(git(project, "rev-parse", "HEAD")).toBe(before);
  expect(git(project, "status", "--porcelain")).toBe("");
  const again = await worktrees.work(project, "s", "");
  expect(await merge(again!.revision!)).toMatchObject({ isNew: true });
});

/** The worktrees with a git that is slower than an agent: before one of its commands, a script runs. */
function raced(command: string, script: string): Worktrees {
  const bin = join(place, "bin");
  mkdirSync(bin);
  const late = `case "$*" in *"${command}"*) PATH="$REAL"; ${script};; esac`;
  const text = `#!/bin/sh\nREAL='${process.env["PATH"]}'\n${late}\nPATH="$REAL" exec git "$@"\n`;
  writeFileSync(join(bin, "git"), text, { mode: 0o755 });
  const environment = { ...process.env, HOME: place, PATH: `${bin}:${process.env["PATH"]}` };
  return new Worktrees({ folder: join(place, "data"), environment });
}

test("a file that an agent writes while its work is merged stays in its worktree, and is not merged", async () => {
  const { path, revision } = await seen();
  const slow = raced("commit-tree", "echo late > a.txt; echo late > b.txt; git add --all");
  expect(await slow.merge(project, "s", { merge: "work", commit: "work", revision })).toMatchObject({
    isNew: true,
  });
  expect(git(project, "ls-tree", "--name-only", "HEAD")).toBe("a.txt\n");
  expect(git(project, "show", "HEAD:a.txt")).toBe("two\n");
  expect(git(path, "status", "--porcelain")).toBe("M  a.txt\nA  b.txt\n");
});

test("a commit that an agent makes while its work is merged stays on its branch, and nothing is merged", async () => {
  const { path, revision } = await seen();
  const slow = raced("update-ref", "git commit --quiet --all -m late");
  await expect(slow.merge(project, "s", { merge: "work", commit: "work", revision })).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("has changed since it was read"),
  });
  expect(git(project, "log", "--format=%s")).toBe("first\n");
  expect(git(path, "log", "-1", "--format=%s")).toBe("late\n");
});

test("a ref that replaces an object shows nothing else than what is merged", async () => {
  const { path } = await worktrees.open({ project, session: "s" });
  write(path, "a.txt", "bad\n");
  const idOf = (text: string) =>
    execFileSync("git", ["hash-object", "-w", "--stdin"], {
      cwd: path,
      input: text,
      encoding: "utf8",
    }).trim();
  git(path, "replace", idOf("bad\n"), idOf("good\n"));
  const work = await worktrees.work(project, "s", "");
  expect(work?.diff).toContain("+bad");
  await merge(work!.revision!);
  expect(
    execFileSync("git", ["--no-replace-objects", "show", "HEAD:a.txt"], { cwd: project }).toString(),
  ).toBe("bad\n");
});

test("a file with other parents of a commit hides none of the work", async () => {
  const { path } = await worktrees.open({ project, session: "s" });
  write(path, "a.txt", "bad\n");
  git(path, "commit", "--quiet", "--all", "-m", "hidden");
  const grafts = join(project, ".git/info/grafts");
  write(project, ".git/info/grafts", `${git(path, "rev-parse", "HEAD").trim()}\n`);
  const work = await worktrees.work(project, "s", "");
  expect(work?.commits).toEqual([expect.objectContaining({ subject: "hidden" })]);
  expect(await merge(work!.revision!)).toMatchObject({ isNew: true });
  rmSync(grafts);
  expect(git(project, "show", "HEAD^2:a.txt")).toBe("bad\n");
  expect(git(project, "rev-parse", "HEAD^2^")).toBe(git(project, "rev-parse", "HEAD^1"));
});

test("a merge that would take back what the project has got since is refused, as it was not shown", async () => {
  const { path } = await seen();
  write(project, "b.txt", "needed\n");
  git(project, "add", "--all");
  git(project, "commit", "--quiet", "-m", "second");
  git(path, "commit", "--quiet", "--all", "-m", "work");
  git(path, "merge", "--quiet", "--strategy=ours", "-m", "sly", "main");
  const { diff, revision } = (await worktrees.work(project, "s", ""))!;
  expect(diff).not.toContain("b.txt");
  await expect(merge(revision!)).rejects.toMatchObject({
    code: "conflict",
    message: expect.stringContaining("would change more in main than the work of session s shows"),
    got: "b.txt",
  });
  expect(existsSync(join(project, "b.txt"))).toBe(true);
});

test("a merge that an agent has not finished is committed with both of its parents", async () => {
  const { path } = await seen();
  git(path, "commit", "--quiet", "--all", "-m", "work");
  write(project, "a.txt", "three\n");
  git(project, "commit", "--quiet", "--all", "-m", "second");
  expect(() => git(path, "merge", "--quiet", "main")).toThrow();
  write(path, "a.txt", "two and three\n");
  const { revision } = (await worktrees.work(project, "s", ""))!;
  expect(await merge(revision!)).toMatchObject({ isNew: true });
  expect(git(project, "show", "HEAD:a.txt")).toBe("two and three\n");
  expect(git(path, "rev-list", "--parents", "-1", "HEAD").trim().split(" ")).toHaveLength(3);
  expect(git(path, "status", "--porcelain=v2", "--branch")).not.toMatch(/^[12u] /m);
  expect(() => git(path, "rev-parse", "--verify", "--quiet", "MERGE_HEAD")).toThrow();
});

test("a merge in the project that its user has not finished stays as it is", async () => {
  const { revision } = await seen();
  git(project, "switch", "--quiet", "--create", "other");
  git(project, "commit", "--quiet", "--allow-empty", "-m", "other");
  git(project, "switch", "--quiet", "main");
  git(project, "commit", "--quiet", "--allow-empty", "-m", "second");
  git(project, "merge", "--quiet", "--no-commit", "other");
  await expect(merge(revision)).rejects.toMatchObject({
    code: "conflict",
    fix: expect.stringContaining("git merge --abort"),
  });
  expect(git(project, "rev-parse", "MERGE_HEAD")).toBe(git(project, "rev-parse", "other"));
  git(project, "merge", "--abort");
  expect(await merge(revision)).toMatchObject({ isNew: true });
});

test("a commit is made for changes alone, and not for files that are never committed", async () => {
  const { path } = await worktrees.open({ project, session: "s" });
  write(path, ".holdfast/x", "x\n");
  const { revision } = (await worktrees.work(project, "s", ""))!;
  expect(await merge(revision!)).toMatchObject({ isNew: false });
  expect(await worktrees.commit(project, "s", "none")).toBeUndefined();
  expect(git(path, "log", "--format=%s")).toBe("first\n");
});

test("an index that is a pipe is an error, and nothing waits for it", async () => {
  const { path } = await seen();
  const index = git(path, "rev-parse", "--path-format=absolute", "--git-path", "index").trim();
  rmSync(index);
  execFileSync("mkfifo", [index]);
  await expect(worktrees.diff(project, "s")).rejects.toMatchObject({
    code: "invalid_input",
    message: "the index of git is not a file",
  });
});

test.each([".claude/settings.json", "sub/.mcp.json", ".holdfast/agents/x.md"])(
  "a caller from elsewhere merges no file that gives rights: %s",
  async (file) => {
    const { path } = await seen();
    write(path, file, "{}\n");
    if (file.startsWith(".holdfast")) git(path, "add", "--force", file);
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
