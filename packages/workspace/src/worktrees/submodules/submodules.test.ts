// Worktrees of a repository whose submodule has a submodule. The work inside of one must be as safe as all
// other work, and nothing that a project names may run or be fetched.

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { Worktrees } from "../worktrees.ts";

let place: string;
let project: string;
let worktrees: Worktrees;

beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), "submodules-")));
  project = join(place, "project");
  for (const name of ["inner", "lib", "project"]) {
    git(place, "init", "--quiet", "--initial-branch=main", name);
    commit(join(place, name), `${name}.txt`, `${name}\n`);
  }
  addSubmodule(join(place, "lib"), "inner");
  addSubmodule(project, "lib");
  git(project, "-c", "protocol.file.allow=always", "submodule", "update", "--quiet", "--init", "--recursive");
  // From here on, nothing can be fetched.
  for (const name of ["inner", "lib"]) rmSync(join(place, name), { recursive: true });
  worktrees = new Worktrees({ folder: join(place, "data"), environment: { ...process.env, HOME: place } });
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

function git(folder: string, ...args: readonly string[]): string {
  const identity = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"];
  return execFileSync("git", [...identity, ...args], {
    cwd: folder,
    encoding: "utf8",
    env: { PATH: process.env["PATH"], HOME: place },
    stdio: ["ignore", "pipe", "pipe"],
  }).trim();
}

function commit(folder: string, file: string, text: string): void {
  writeFileSync(join(folder, file), text);
  git(folder, "add", "--all");
  git(folder, "commit", "--quiet", "-m", file);
}

function addSubmodule(folder: string, name: string): void {
  git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", join(place, name), name);
  git(folder, "commit", "--quiet", "-m", name);
}

const open = (session = "s") => worktrees.open({ project, session });
/** A file of a commit in the user's own repository of a submodule. */
const kept = (submodule: string, commitish: string, file: string) =>
  git(join(project, submodule), "show", `${commitish}:${file}`);

test("a worktree has its submodules at the recorded commits, on the branch of its session, and stays clean", async () => {
  const recorded = git(project, "rev-parse", "HEAD:lib");
  commit(join(project, "lib"), "later.txt", "a commit that the project does not record\n");
  const { path } = await open();
  expect(readFileSync(join(path, "lib/lib.txt"), "utf8")).toBe("lib\n");
  expect(readFileSync(join(path, "lib/inner/inner.txt"), "utf8")).toBe("inner\n");
  expect(git(join(path, "lib"), "rev-parse", "HEAD")).toBe(recorded);
  expect(git(join(path, "lib/inner"), "symbolic-ref", "--short", "HEAD")).toBe("holdfast/s");
  expect(git(path, "status", "--porcelain")).toBe("");
  expect(git(path, "submodule", "status", "--recursive")).toMatch(
    /^[0-9a-f]+ lib .*\n [0-9a-f]+ lib\/inner /,
  );
  expect(await open()).toMatchObject({ path });
  expect(await worktrees.list(project)).toMatchObject([{ changed: [], untracked: [], unpushed: 0 }]);
  expect(existsSync(join(project, "lib/later.txt"))).toBe(true);
  await worktrees.remove(project, "s");
  const inside = await worktrees.open({ project: join(project, "lib"), session: "inside" });
  expect(readFileSync(join(inside.path, "inner/inner.txt"), "utf8")).toBe("inner\n");
  await worktrees.remove(join(project, "lib"), "inside");
  for (const folder of ["", "lib", "lib/inner"])
    expect(git(join(project, folder), "worktree", "list").split("\n")).toHaveLength(1);
});

test("a change in the user's own checkout of a submodule is among the changes that a worktree begins without", async () => {
  expect(await worktrees.uncommitted(project)).toEqual([]);
  writeFileSync(join(project, "lib/lib.txt"), "open\n");
  writeFileSync(join(project, "lib/inner/new.txt"), "new\n");
  expect(await worktrees.uncommitted(project)).toEqual(["lib/lib.txt", "lib/inner/new.txt"]);
});

test("work in a submodule is shown, refuses the removal, and is committed and merged with its commit", async () => {
  const { path } = await open();
  writeFileSync(join(path, "lib/lib.txt"), "changed\n");
  writeFileSync(join(path, "lib/inner/new.txt"), "new\n");
  const diff = await worktrees.diff(project, "s");
  expect(diff).toContain("--- a/lib/lib.txt\n+++ b/lib/lib.txt");
  expect(diff).toContain("+++ b/lib/inner/new.txt");
  expect(await worktrees.diff(project, "s", { stat: true })).toContain("In the submodule lib:\n lib.txt");
  // The difference is one that git applies.
  git(project, "apply", "--check", "--directory=", write(join(place, "patch"), diff));
  await expect(worktrees.remove(project, "s")).rejects.toMatchObject({
    code: "conflict",
    got: "1 changed (lib/lib.txt), 1 untracked (lib/inner/new.txt)",
  });
  await expect(worktrees.merge(project, "s")).rejects.toThrow("changes that are not committed");
  const { revision } = (await worktrees.work(project, "s", ""))!;
  const how = { commit: "work", revision: revision! };
  await expect(worktrees.merge(project, "s", { ...how, isRemote: true })).rejects.toMatchObject({
    code: "policy_denied",
    message: "holdfast/s changes a submodule",
  });
  writeFileSync(join(path, "lib/lib.txt"), "changed later\n");
  await expect(worktrees.merge(project, "s", how)).rejects.toThrow("has changed since it was read");
  writeFileSync(join(path, "lib/lib.txt"), "changed\n");
  const merged = await worktrees.merge(project, "s", how);
  expect(merged).toMatchObject({ isNew: true, into: "main", submodules: ["lib"] });
  expect(git(path, "status", "--porcelain")).toBe("");
  // The commits of the submodules are nowhere but on the branch of the session.
  await expect(worktrees.remove(project, "s")).rejects.toMatchObject({
    got: "2 commits of holdfast/s that are nowhere else",
  });
  // The checkout of the user is as it was, and git brings it up to date without a network.
  expect(readFileSync(join(project, "lib/lib.txt"), "utf8")).toBe("lib\n");
  const { path: later } = await open("later");
  commit(later, "later.txt", "later\n");
  writeFileSync(join(later, "lib/lib.txt"), "later\n");
  await worktrees.commit(project, "later", "later");
  await expect(worktrees.merge(project, "later")).rejects.toMatchObject({
    got: "lib",
    fix: expect.stringContaining("git submodule update"),
  });
  git(project, "submodule", "update", "--recursive");
  expect(readFileSync(join(project, "lib/lib.txt"), "utf8")).toBe("changed\n");
  expect(readFileSync(join(project, "lib/inner/new.txt"), "utf8")).toBe("new\n");
  expect(await worktrees.merge(project, "later")).toMatchObject({ isNew: true, submodules: ["lib"] });
});

test("a removal with --rescue keeps every byte inside of a submodule in the submodule's own repository", async () => {
  const { path } = await open();
  const [lib, inner] = [join(path, "lib"), join(path, "lib/inner")];
  writeFileSync(join(lib, ".gitignore"), "*.log\n");
  writeFileSync(join(lib, "build.log"), "ignored");
  commit(inner, "done.txt", "done\n");
  commit(inner, "lost.txt", "in a reflog alone\n");
  const lost = git(inner, "rev-parse", "HEAD");
  git(inner, "reset", "--hard", "--quiet", "HEAD~1");
  git(inner, "checkout", "--quiet", "-b", "own");
  writeFileSync(join(inner, "inner.txt"), "open\n");
  const { rescue } = await worktrees.remove(project, "s", { rescues: true });
  expect(existsSync(path)).toBe(false);
  expect(kept("lib", rescue, "build.log")).toBe("ignored");
  expect(kept("lib/inner", rescue, "inner.txt")).toBe("open");
  expect(kept("lib/inner", rescue, "done.txt")).toBe("done");
  expect(git(join(project, "lib/inner"), "rev-list", rescue).split("\n")).toContain(lost);
  const said = git(project, "show", "--no-patch", "--format=%B", rescue);
  expect(said).toContain(`Holdfast-Submodule: ${git(join(project, "lib"), "rev-parse", rescue)} lib`);
  expect(await worktrees.diff(project, "s")).toContain("+++ b/lib/build.log");
  expect(git(project, "status", "--porcelain")).toBe("");
});

test("a fork and a child begin with the commits of the submodules that the session has committed", async () => {
  const { path } = await open();
  writeFileSync(join(path, "lib/lib.txt"), "changed\n");
  await worktrees.commit(project, "s", "work");
  writeFileSync(join(path, "lib/open.txt"), "open\n");
  const snapshot = await worktrees.keepFiles(project, "s");
  const fork = await worktrees.open({ project, session: "fork", begin: snapshot });
  const ofChild = await worktrees.open({ project, session: "child", parent: "s" });
  for (const made of [fork, ofChild]) {
    expect(readFileSync(join(made.path, "lib/lib.txt"), "utf8")).toBe("changed\n");
    expect(git(made.path, "status", "--porcelain")).toBe("");
  }
});

test("a submodule that is a partial clone is never completed from its address", async () => {
  // The user's own checkout has the files of the newest commit alone, and the project records the one before.
  const upstream = join(place, "partial");
  git(place, "init", "--quiet", "--initial-branch=main", "partial");
  git(upstream, "config", "uploadpack.allowFilter", "true");
  git(upstream, "config", "uploadpack.allowAnySHA1InWant", "true");
  commit(upstream, "old.txt", "only in the first commit\n");
  const first = git(upstream, "rev-parse", "HEAD");
  git(upstream, "rm", "--quiet", "old.txt");
  commit(upstream, "new.txt", "new\n");
  const protocol = ["-c", "protocol.file.allow=always"];
  git(project, ...protocol, "submodule", "--quiet", "add", `file://${upstream}`, "partial");
  rmSync(join(project, ".git/modules/partial"), { recursive: true });
  const cloning = [
    "clone",
    "--quiet",
    "--filter=blob:none",
    "--separate-git-dir",
    join(project, ".git/modules/partial"),
  ];
  rmSync(join(project, "partial"), { recursive: true });
  git(project, ...protocol, ...cloning, `file://${upstream}`, "partial");
  git(project, "add", ".gitmodules");
  git(project, "update-index", "--add", "--cacheinfo", `160000,${first},partial`);
  git(project, "commit", "--quiet", "-m", "partial");
  git(project, "config", "--global", "protocol.file.allow", "always");
  await expect(open()).rejects.toMatchObject({
    code: "invalid_input",
    message: "the submodule partial lacks files of its recorded commit",
  });
  git(project, "submodule", "update", "--init", "--recursive"); // As the error says.
  expect(existsSync(join((await open()).path, "partial/old.txt"))).toBe(true);
});

test("a recorded commit that is on no branch of the submodule is no work of a session", async () => {
  git(join(project, "lib"), "checkout", "--quiet", "--detach");
  commit(join(project, "lib"), "later.txt", "later\n");
  git(project, "add", "lib");
  git(project, "commit", "--quiet", "-m", "lib");
  const { path } = await open();
  expect(readFileSync(join(path, "lib/later.txt"), "utf8")).toBe("later\n");
  expect(await worktrees.list(project)).toMatchObject([{ unpushed: 0 }]);
  await worktrees.remove(project, "s");
});

test("a commit that is in no repository of the user is not merged, and a repository of the agent's own is not removed", async () => {
  const { path } = await open();
  const lib = join(path, "lib");
  rmSync(lib, { recursive: true });
  git(path, "init", "--quiet", "lib");
  commit(lib, "own.txt", "in a repository of the agent's own\n");
  git(path, "add", "lib");
  git(path, "commit", "--quiet", "-m", "another commit of lib");
  await expect(worktrees.merge(project, "s")).rejects.toMatchObject({
    code: "conflict",
    message: "your repository does not have the commit of the submodule lib",
  });
  await expect(worktrees.remove(project, "s", { rescues: true })).rejects.toThrow(
    "a git repository inside, lib",
  );
  expect(readFileSync(join(lib, "own.txt"), "utf8")).toContain("own");
});

test("a submodule that was never initialised is an empty folder, and what a worktree would miss is refused", async () => {
  git(project, "submodule", "deinit", "--force", "--quiet", "lib");
  const modules = join(project, ".git/modules");
  renameSync(modules, join(place, "kept"));
  expect(readdirSync(join((await open()).path, "lib"))).toEqual([]);
  // An agent may clone it for itself. The clone goes with git's own folder of the worktree, also once its
  // checkout is gone.
  const upstream = join(place, "kept/lib");
  const cloned = await open("cloned");
  git(cloned.path, "config", "submodule.lib.url", upstream);
  git(cloned.path, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init");
  await expect(worktrees.remove(project, "cloned")).rejects.toThrow("a git repository inside, lib");
  rmSync(join(cloned.path, "lib"), { recursive: true });
  mkdirSync(join(cloned.path, "lib"));
  await expect(worktrees.remove(project, "cloned")).rejects.toThrow(
    "cloned the submodule lib for this worktree",
  );
  rmSync(git(cloned.path, "rev-parse", "--git-path", "modules"), { recursive: true });
  await worktrees.remove(project, "cloned");
  await worktrees.remove(project, "s");
  // The repository in the checkout, as old versions of git left it.
  renameSync(join(place, "kept/lib"), join(project, "lib/.git"));
  await expect(open("old")).rejects.toMatchObject({
    code: "invalid_input",
    fix: expect.stringContaining("git submodule absorbgitdirs"),
  });
  mkdirSync(modules);
  renameSync(join(project, "lib/.git"), join(modules, "lib"));
  const other = git(project, "commit-tree", "HEAD^{tree}", "-m", "of no submodule");
  git(project, "update-index", "--cacheinfo", `160000,${other},lib`);
  git(project, "commit", "--quiet", "-m", "ahead");
  await expect(open("ahead")).rejects.toMatchObject({
    code: "invalid_input",
    fix: expect.stringContaining("git submodule update --init --recursive"),
  });
  expect(
    readdirSync(join(place, "data"), { recursive: true }).some((name) => /ahead|old/.test(String(name))),
  ).toBe(false);
});

test("nothing that a project or an agent names for a submodule runs, and no name leads out of the repositories", async () => {
  const ran = join(place, "ran");
  const program = write(join(place, "program"), `#!/bin/sh\ntouch ${ran}\ncat\n`);
  chmodSync(program, 0o755);
  git(project, "config", "submodule.lib.update", `!${program}`);
  git(project, "config", "submodule.lib.url", `ext::${program}`);
  mkdirSync(join(project, ".git/modules/lib/hooks"), { recursive: true });
  for (const hook of ["post-checkout", "pre-commit", "reference-transaction"])
    renameSync(copy(program, join(place, hook)), join(project, ".git/modules/lib/hooks", hook));
  const { path } = await open();
  // The agent puts another repository, with a filter, in the place of the file `.git`.
  const own = join(place, "own");
  git(place, "init", "--quiet", "own");
  for (const key of ["filter.x.clean", "filter.x.smudge", "core.fsmonitor", "diff.external"])
    git(own, "config", key, program);
  writeFileSync(join(path, "lib/.gitattributes"), "* filter=x\n");
  writeFileSync(join(path, "lib/.git"), `gitdir: ${join(own, ".git")}\n`);
  writeFileSync(join(path, "lib/lib.txt"), "two\n");
  await worktrees.list(project);
  await worktrees.diff(project, "s");
  await worktrees.commit(project, "s", "work");
  await expect(worktrees.remove(project, "s", { rescues: true })).rejects.toThrow("repository inside, lib");
  // Below its own `.git`, the work is committed.
  writeFileSync(join(path, "lib/.git"), `gitdir: ${join(project, ".git/modules/lib/worktrees/lib")}\n`);
  await worktrees.commit(project, "s", "work");
  expect(kept("lib", "holdfast/s", "lib.txt")).toBe("two");
  expect(existsSync(ran)).toBe(false);

  for (const name of ["../../../own", "..", "a/../../lib"]) {
    writeFileSync(join(project, ".gitmodules"), `[submodule "${name}"]\n\tpath = lib\n\turl = x\n`);
    rmSync(join(project, "lib"), { recursive: true, force: true });
    mkdirSync(join(project, "lib"));
    git(project, "add", ".gitmodules");
    git(project, "commit", "--quiet", "-m", name);
    const made = await open(`n${name.length}`);
    expect(readdirSync(join(made.path, "lib"))).toEqual([]);
  }
});

test(
  "a submodule is found by relative paths too, which newer versions of git can write",
  ofCampaign,
  async () => {
    const { path } = await open();
    const entry = git(join(path, "lib"), "rev-parse", "--absolute-git-dir");
    writeFileSync(join(path, "lib/.git"), `gitdir: ${relative(join(path, "lib"), entry)}\n`);
    writeFileSync(join(entry, "gitdir"), `${relative(entry, join(path, "lib/.git"))}\n`);
    writeFileSync(join(path, "lib/lib.txt"), "changed\n");
    expect(await worktrees.diff(project, "s")).toContain("+++ b/lib/lib.txt");
  },
);

test("the files of a submodule stay when the user has removed its repository", ofCampaign, async () => {
  const { path } = await open();
  writeFileSync(join(path, "lib/new.txt"), "new\n");
  rmSync(join(project, ".git/modules/lib"), { recursive: true });
  await worktrees.list(project);
  await expect(worktrees.remove(project, "s", { rescues: true })).rejects.toThrow("a git repository inside");
  // Without their files `.git` they are files of the worktree.
  for (const folder of ["lib/inner", "lib"]) rmSync(join(path, folder, ".git"));
  const { rescue } = await worktrees.remove(project, "s", { rescues: true });
  expect(git(project, "show", `${rescue}:lib/new.txt`)).toBe("new");
});

test("a link in the place of a submodule is removed as a link", ofCampaign, async () => {
  const outside = join(place, "outside");
  mkdirSync(outside);
  const { path } = await open();
  writeFileSync(join(outside, "of-the-user.txt"), "");
  renameSync(join(path, "lib/.git"), join(outside, ".git"));
  rmSync(join(path, "lib"), { recursive: true });
  symlinkSync(outside, join(path, "lib"));
  const { rescue } = await worktrees.remove(project, "s", { rescues: true });
  expect(readdirSync(outside)).toEqual([".git", "of-the-user.txt"]);
  expect(git(project, "ls-tree", rescue, "lib")).toContain("120000 blob");
});

function write(path: string, text: string): string {
  writeFileSync(path, text);
  return path;
}

function copy(from: string, to: string): string {
  execFileSync("cp", ["-p", from, to]);
  return to;
}
