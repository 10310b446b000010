import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { checkedOutBranch } from "./checked-out-branch.ts";

let folder: string;

beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "holdfast-branch-"))));
afterEach(() => rm(folder, { recursive: true, force: true }));

function git(at: string, ...args: string[]): void {
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], {
    cwd: at,
    stdio: "ignore",
  });
}

describe("the branch that is checked out", () => {
  test("a branch is found in a repository, in a folder of it, and in a worktree", async () => {
    git(folder, "init", "-b", "topic/one");
    git(folder, "commit", "--allow-empty", "-m", "first");
    git(folder, "worktree", "add", "-b", "two", join(folder, "other"));
    mkdirSync(join(folder, "deep", "er"), { recursive: true });
    expect(await checkedOutBranch(folder)).toBe("topic/one");
    expect(await checkedOutBranch(join(folder, "deep", "er"))).toBe("topic/one");
    expect(await checkedOutBranch(join(folder, "other"))).toBe("two");
    mkdirSync(join(folder, "deep", ".git")); // A sandbox leaves it, and git ignores it.
    expect(await checkedOutBranch(join(folder, "deep", "er"))).toBe("topic/one");
  });

  test("a single commit has no branch, and neither has a folder outside of a repository", async () => {
    git(folder, "init", "-b", "main");
    git(folder, "commit", "--allow-empty", "-m", "first");
    git(folder, "checkout", "--detach");
    expect(await checkedOutBranch(folder)).toBeNull();
    expect(await checkedOutBranch(tmpdir())).toBeNull();
  });

  test("a repository that keeps its branch in a table has none that is known", async () => {
    git(folder, "init", "-b", "main");
    writeFileSync(join(folder, ".git", "HEAD"), "ref: refs/heads/.invalid\n"); // Git of today writes this with tables.
    expect(await checkedOutBranch(folder)).toBeNull();
  });

  test("hostile files are not read", async () => {
    mkdirSync(join(folder, ".git"));
    execFileSync("mkfifo", [join(folder, ".git", "HEAD")]);
    expect(await checkedOutBranch(folder)).toBeNull();
    mkdirSync(join(folder, "in"));
    writeFileSync(join(folder, "in", ".git"), `gitdir: ${"x".repeat(100_000)}`);
    expect(await checkedOutBranch(join(folder, "in"))).toBeNull();
    mkdirSync(join(folder, "odd", ".git"), { recursive: true });
    writeFileSync(join(folder, "odd", ".git", "HEAD"), "ref: refs/heads/\u001b[31m\n");
    expect(await checkedOutBranch(join(folder, "odd"))).toBeNull();
  });
});
