// Worktrees over real repositories. A worktree that lost a file would lose an agent's work of hours.

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { Worktrees } from "./worktrees.ts";

let place: string;
let project: string;
let worktrees: Worktrees;
let child: ChildProcess | undefined;

beforeEach(() => {
  place = realpathSync(mkdtempSync(join(tmpdir(), "worktrees-")));
  project = join(place, "project");
  mkdirSync(project);
  git(project, "init", "--quiet", "--initial-branch=main");
  worktrees = new Worktrees({ folder: join(place, "data"), environment: { ...process.env, HOME: place } });
});

afterEach(() => {
  child?.kill("SIGKILL");
  rmSync(place, { recursive: true, force: true });
});

function git(folder: string, ...args: readonly string[]): string {
  const identity = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"];
  return execFileSync("git", [...identity, ...args], {
    cwd: folder,
    encoding: "utf8",
    env: { PATH: process.env["PATH"], HOME: place },
    stdio: ["ignore", "pipe", "ignore"],
  }).trim();
}

function commit(folder: string, file: string, text: string): void {
  writeFileSync(join(folder, file), text);
  git(folder, "add", "--all");
  git(folder, "commit", "--quiet", "-m", file);
}

const open = (
  session = "s",
  more: { readonly owner?: string; readonly base?: string; readonly parent?: string } = {},
) => worktrees.open({ project, session, ...more });

test(
  "a session gets a locked worktree of the project's HEAD on its own branch, and finds it again",
  ofCampaign,
  async () => {
    commit(project, "a.txt", "one\n");
    const made = await open();
    expect(made.branch).toBe("holdfast/s");
    expect(readFileSync(join(made.path, "a.txt"), "utf8")).toBe("one\n");
    expect(git(project, "worktree", "list", "--porcelain")).toContain("locked Holdfast session s");
    expect(git(project, "status", "--porcelain")).toBe("");
    writeFileSync(join(made.path, "new.txt"), "new");
    expect(await open()).toEqual(made);
    expect(await worktrees.list(project)).toMatchObject([
      { session: "s", state: "ready", changed: [], untracked: ["new.txt"], unpushed: 0, rescue: null },
    ]);
  },
);

test(
  "a base can be named, a detached HEAD works, and a child begins with the branch of its parent",
  ofCampaign,
  async () => {
    commit(project, "a.txt", "one\n");
    commit(project, "b.txt", "two\n");
    expect(existsSync(join((await open("old", { base: "HEAD~1" })).path, "b.txt"))).toBe(false);
    git(project, "checkout", "--quiet", "--detach");
    const lead = await open("lead");
    commit(lead.path, "c.txt", "three\n");
    expect(existsSync(join((await open("lead-3", { parent: "lead" })).path, "c.txt"))).toBe(true);
    await expect(open("none", { base: "nowhere" })).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringContaining('there is no commit "nowhere"'),
    });
  },
);

test(
  "a session in a folder of a larger repository works in the same folder of its worktree",
  ofCampaign,
  async () => {
    mkdirSync(join(project, "app"));
    commit(project, "app/a.txt", "one\n");
    const { path } = await worktrees.open({ project: join(project, "app"), session: "s" });
    expect(path.endsWith("/s/app")).toBe(true);
    expect(existsSync(join(path, "a.txt"))).toBe(true);
  },
);

test("a project that can have no worktree is refused with the reason, and nothing is made", async () => {
  await expect(open()).rejects.toThrow("without a commit");
  await expect(worktrees.open({ project: place, session: "s" })).rejects.toThrow("in no git repository");
  git(place, "init", "--quiet", "--bare", "bare.git");
  await expect(worktrees.open({ project: join(place, "bare.git"), session: "s" })).rejects.toThrow(
    "bare repository",
  );
  expect(existsSync(join(place, "data"))).toBe(false);
  const withoutGit = new Worktrees({
    folder: join(place, "data"),
    environment: { PATH: "/nowhere", HOME: place },
  });
  await expect(withoutGit.open({ project, session: "s" })).rejects.toThrow("git is not installed");
});

test("a name is never used for a second worktree", ofCampaign, async () => {
  commit(project, "a.txt", "one\n");
  git(project, "branch", "holdfast/taken");
  await expect(open("taken")).rejects.toMatchObject({ code: "conflict" });
  await open("s", { owner: "1" });
  await expect(open("s", { owner: "2" })).rejects.toThrow("an earlier session of this id had one");
  // Git allows neither ".." nor ".lock" at the end of a branch.
  for (const id of ["a..lock", `s${"-1".repeat(90)}`]) expect((await open(id)).path).not.toContain("..");
});

test(
  "a worktree that is gone, or whose repository is gone, is an error and is not made again",
  ofCampaign,
  async () => {
    commit(project, "a.txt", "one\n");
    const { path } = await open();
    rmSync(path, { recursive: true });
    await expect(open()).rejects.toThrow("the folder is gone");
    const other = await open("other");
    writeFileSync(join(other.path, "work.txt"), "work");
    rmSync(join(project, ".git"), { recursive: true });
    await expect(open("other")).rejects.toMatchObject({ code: "invalid_input" });
    expect(readFileSync(join(other.path, "work.txt"), "utf8")).toBe("work");
  },
);

test("work that is nowhere else is not removed, and with a rescue every byte of it is in a commit", async () => {
  commit(project, ".gitignore", "*.log\n");
  writeFileSync(join(project, ".gitattributes"), "*.txt text eol=lf\n");
  commit(project, "a.txt", "one\n");
  const { path } = await open();
  commit(path, "done.txt", "done\n");
  writeFileSync(join(path, "a.txt"), "staged\r\n");
  git(path, "add", "a.txt");
  const raw = Buffer.from([0, 255, 13, 10]);
  writeFileSync(join(path, "a.txt"), raw);
  writeFileSync(join(path, "build.log"), "ignored");
  mkdirSync(join(path, "deep"));
  writeFileSync(join(path, "deep/new\nline"), "new");
  writeFileSync(join(path, "deep/run.sh"), "run");
  chmodSync(join(path, "deep/run.sh"), 0o755);
  symlinkSync("nowhere", join(path, "link"));
  await expect(worktrees.remove(project, "s")).rejects.toMatchObject({
    code: "conflict",
    got: expect.stringMatching(/1 changed \(a.txt\), 3 untracked .*, 1 commits of holdfast\/s/s),
  });
  const head = git(project, "rev-parse", "HEAD");
  const { rescue, commit: id } = await worktrees.remove(project, "s", { rescues: true });
  expect(existsSync(path)).toBe(false);
  expect(rescue).toBe("refs/holdfast/rescue/s");
  expect(git(project, "rev-parse", rescue)).toBe(id);
  const stored = (name: string) =>
    execFileSync("git", ["cat-file", "blob", `${rescue}:${name}`], { cwd: project });
  expect(stored("a.txt")).toEqual(raw);
  expect(stored("build.log").toString()).toBe("ignored");
  expect(stored("deep/new\nline").toString()).toBe("new");
  expect(git(project, "ls-tree", rescue, "link", "deep/run.sh")).toMatch(/100755 blob .*120000 blob/s);
  // The index is a parent, and so is the branch with its commit.
  const parents = git(project, "rev-list", "--parents", "-n1", rescue).split(" ").slice(1);
  expect(parents).toContain(git(project, "rev-parse", "holdfast/s"));
  expect(parents.some((parent) => git(project, "show", `${parent}:a.txt`) === "staged")).toBe(true);
  expect(git(project, "worktree", "list").split("\n")).toHaveLength(1);
  expect([git(project, "rev-parse", "HEAD"), git(project, "status", "--porcelain")]).toEqual([head, ""]);
  expect(await worktrees.remove(project, "s")).toEqual({ rescue, commit: undefined });
  await expect(open()).rejects.toThrow("was removed");
  expect(await worktrees.diff(project, "s")).toContain("build.log");
});

test("commits that only the reflog has are parents of the rescue", ofCampaign, async () => {
  commit(project, "a.txt", "one\n");
  const { path } = await open();
  commit(path, "lost.txt", "lost\n");
  const lost = git(path, "rev-parse", "HEAD");
  git(path, "reset", "--hard", "--quiet", "HEAD~1");
  const { rescue } = await worktrees.remove(project, "s");
  expect(git(project, "rev-list", rescue).split("\n")).toContain(lost);
});

test("a removal keeps what only git's own folder of the worktree has, and needs --rescue while git waits", async () => {
  commit(project, "a.txt", "one\n");
  const { path } = await open();
  const made = (text: string, parent: string) =>
    git(path, "commit-tree", "HEAD^{tree}", "-p", parent, "-m", text);
  const head = git(path, "rev-parse", "HEAD");
  // Each place is one that git deletes with the worktree.
  const folder = git(path, "rev-parse", "--absolute-git-dir");
  const base = made("kept 0", head);
  const lost = [base];
  for (const ref of ["refs/worktree/keep", "refs/bisect/good-1", "refs/rewritten/onto", "ORIG_HEAD"]) {
    lost.push(made(`kept ${ref}`, base));
    git(path, "update-ref", ref, lost.at(-1) ?? "");
  }
  for (const file of ["MERGE_AUTOSTASH", "rebase-apply/orig-head", "state-of-a-later-git"]) {
    mkdirSync(join(folder, "rebase-apply"), { recursive: true });
    lost.push(made(`kept ${file}`, base));
    writeFileSync(join(folder, file), `${lost.at(-1)}\n`);
  }
  lost.push(made("kept reflog", base));
  git(path, "update-ref", "--create-reflog", "refs/worktree/log", lost.at(-1) ?? "");
  git(path, "update-ref", "refs/worktree/log", head);
  writeFileSync(join(folder, "rebase-apply/0001"), "a patch that is nowhere else");
  writeFileSync(join(path, "tree.txt"), "a file of AUTO_MERGE");
  git(path, "add", "tree.txt");
  writeFileSync(join(folder, "AUTO_MERGE"), git(path, "write-tree"));
  git(path, "rm", "-fq", "tree.txt");
  expect(git(path, "status", "--porcelain")).toBe("");
  await expect(worktrees.remove(project, "s")).rejects.toMatchObject({
    code: "conflict",
    got: "a git rebase that is not finished",
  });
  const { rescue } = await worktrees.remove(project, "s", { rescues: true });
  const reached = git(project, "rev-list", rescue).split("\n");
  expect(lost.filter((id) => !reached.includes(id))).toEqual([]);
  const parents = git(project, "rev-list", "--parents", "-n1", rescue).split(" ").slice(1);
  const texts = parents.map((parent) => git(project, "grep", "-h", "", parent)).join("\n");
  expect(texts).toContain("a patch that is nowhere else");
  expect(texts).toContain("a file of AUTO_MERGE");
});

test("a stopped rebase with an autostash is removed with --rescue alone, which keeps the stash", async () => {
  commit(project, "a.txt", "one\n");
  const { path } = await open();
  writeFileSync(join(path, "a.txt"), "precious\n");
  execFileSync(
    "git",
    ["-c", "user.name=T", "-c", "user.email=t@x.invalid", "rebase", "-i", "--autostash", "HEAD"],
    {
      cwd: path,
      env: { PATH: process.env["PATH"], HOME: place, GIT_SEQUENCE_EDITOR: 'printf "break\\n" >' },
      stdio: "ignore",
    },
  );
  const stash = readFileSync(
    join(git(path, "rev-parse", "--absolute-git-dir"), "rebase-merge/autostash"),
    "utf8",
  );
  await expect(worktrees.remove(project, "s")).rejects.toMatchObject({
    got: "a git rebase that is not finished",
  });
  const { rescue } = await worktrees.remove(project, "s", { rescues: true });
  expect(git(project, "rev-list", rescue).split("\n")).toContain(stash.trim());
});

test(
  "a worktree is not removed while a process works in it, or when git cannot hold what is in it",
  ofCampaign,
  async () => {
    commit(project, "a.txt", "one\n");
    const { path } = await open();
    child = spawn("sleep", ["60"], { cwd: path, stdio: "ignore" });
    await expect(worktrees.remove(project, "s", { rescues: true })).rejects.toMatchObject({ code: "in_use" });
    child.kill("SIGKILL");
    await new Promise((resolve) => child?.on("close", resolve));
    git(path, "init", "--quiet", "inside");
    await expect(worktrees.remove(project, "s", { rescues: true })).rejects.toThrow(
      "a git repository inside, inside",
    );
    expect(existsSync(join(path, "a.txt"))).toBe(true);
  },
);

test(
  "a branch is merged into the branch of the project, and a conflict leaves the project as it was",
  ofCampaign,
  async () => {
    commit(project, "a.txt", "one\n");
    const { path } = await open();
    commit(path, "a.txt", "by the agent\n");
    writeFileSync(join(path, "open.txt"), "open\n");
    await expect(worktrees.merge(project, "s")).rejects.toThrow("not committed");
    expect(await worktrees.commit(project, "s", "the rest")).toMatch(/^[0-9a-f]{40}$/);
    expect(await worktrees.commit(project, "s", "the rest")).toBeUndefined();
    commit(project, "a.txt", "by the user\n");
    const head = git(project, "rev-parse", "HEAD");
    await expect(worktrees.merge(project, "s")).rejects.toMatchObject({
      got: "a.txt",
      message: expect.stringContaining("nothing was merged"),
    });
    expect([git(project, "rev-parse", "HEAD"), git(project, "status", "--porcelain")]).toEqual([head, ""]);
    git(path, "checkout", "--quiet", "main", "--detach");
    git(path, "checkout", "--quiet", "-B", "holdfast/s");
    commit(path, "b.txt", "two\n");
    expect(await worktrees.merge(project, "s")).toMatchObject({ into: "main", isNew: true });
    expect(existsSync(join(project, "b.txt"))).toBe(true);
    expect(await worktrees.merge(project, "s")).toMatchObject({ isNew: false });
    await worktrees.remove(project, "s"); // Everything is merged, so nothing holds it.
  },
);

test("open work of both sides is kept by a merge, and a refusal has committed nothing", async () => {
  for (const file of ["a.txt", "own.txt"]) commit(project, file, "one\n");
  const { path } = await open();
  writeFileSync(join(path, "a.txt"), "by the agent\n");
  writeFileSync(join(path, "dir"), "new\n");
  const state = () => [project, path].map((folder) => git(folder, "status", "--porcelain=v2", "--branch"));
  const refused = async (got: string, code = "uncommitted_changes"): Promise<void> => {
    const before = state();
    await expect(worktrees.merge(project, "s", { commit: "work" })).rejects.toMatchObject({ code, got });
    expect(state()).toEqual(before);
  };
  writeFileSync(join(project, "a.txt"), "by the user\n");
  await refused("a.txt");
  git(project, "checkout", "--quiet", ".");
  writeFileSync(join(project, "dir"), "of the user\n"); // Git does not know it.
  await refused("dir");
  writeFileSync(join(project, ".gitignore"), "dir\n");
  await refused("dir"); // Git would write over it.
  rmSync(join(project, "dir"));
  writeFileSync(join(project, "own.txt"), "open\n");
  git(project, "add", "own.txt");
  await refused("own.txt");
  git(project, "reset", "--quiet");
  mkdirSync(join(path, "inside"));
  git(join(path, "inside"), "init", "--quiet");
  await refused("inside/");
  rmSync(join(path, "inside"), { recursive: true });
  expect(await worktrees.merge(project, "s", { commit: "work" })).toMatchObject({
    into: "main",
    isNew: true,
  });
  const texts = ["a.txt", "own.txt"].map((name) => readFileSync(join(project, name), "utf8"));
  expect(texts).toEqual(["by the agent\n", "open\n"]);
  expect(git(path, "log", "-1", "--format=%s")).toBe("work");
  writeFileSync(join(path, "own.txt"), "by the agent\n");
  commit(project, "own.txt", "open\n");
  await refused("own.txt", "conflict");
});

test.each([
  ["a branch of its own", ["switch", "--quiet", "-c", "fix"], "fix"],
  ["no branch", ["switch", "--quiet", "--detach"], /^[0-9a-f]{40}$/],
] as const)(
  "the work of an agent on %s is listed, held, given to children and merged",
  async (_what, args, name) => {
    commit(project, "a.txt", "one\n");
    const { path } = await open();
    git(path, ...args);
    commit(path, "b.txt", "two\n");
    const branch = typeof name === "string" ? name : expect.stringMatching(name);
    expect(await worktrees.diff(project, "s")).toContain("+two");
    expect(await worktrees.list(project)).toMatchObject([{ branch, unpushed: 1 }]);
    await expect(worktrees.remove(project, "s")).rejects.toMatchObject({ code: "conflict" });
    expect(await worktrees.finish(project, "s", "the rest")).toMatchObject({ branch, commits: 1 });
    const below = await open("child", { parent: "s" });
    expect(existsSync(join(below.path, "b.txt"))).toBe(true);
    expect(await worktrees.merge(project, "s")).toMatchObject({ branch, into: "main", isNew: true });
    expect(existsSync(join(project, "b.txt"))).toBe(true);
    expect(await worktrees.merge(project, "s")).toMatchObject({ isNew: false });
    await worktrees.remove(project, "s");
  },
);

test(
  "the diff and the summary show what is committed, changed and new, and leave the index alone",
  ofCampaign,
  async () => {
    commit(project, "a.txt", "one\n");
    const { path } = await open();
    commit(path, "b.txt", "two\n");
    writeFileSync(join(path, "a.txt"), "changed\n");
    writeFileSync(join(path, "new.txt"), "new\n");
    const status = git(path, "status", "--porcelain");
    const diff = await worktrees.diff(project, "s");
    for (const line of ["+changed", "+two", "+new"]) expect(diff).toContain(line);
    expect(git(path, "status", "--porcelain")).toBe(status);
    expect(await worktrees.finish(project, "s", "the rest")).toMatchObject({
      branch: "holdfast/s",
      commits: 2,
      stat: expect.stringContaining("3 files changed"),
    });
  },
);

// An agent can make a repository in its worktree and name programs there. The user's own calls must not run
// them.
test("a repository inside of a worktree is left out, and no program of it runs", ofCampaign, async () => {
  commit(project, "a.txt", "one\n");
  const made = await open();
  const inside = join(made.path, "inside");
  const ran = join(place, "ran");
  mkdirSync(inside);
  git(inside, "init", "--quiet");
  commit(inside, "b.txt", "one\n");
  git(inside, "config", "filter.x.clean", `touch ${ran}; cat`);
  writeFileSync(join(inside, ".gitattributes"), "* filter=x\n");
  const change = (): void => {
    writeFileSync(join(inside, "b.txt"), "two\n");
    utimesSync(join(inside, "b.txt"), 0, 0);
  };
  change();
  writeFileSync(join(made.path, "new.txt"), "new\n");
  const diff = await worktrees.diff(project, "s");
  expect(diff).toContain("+new\n");
  expect(diff).toContain("(git repositories inside are left out: inside/)");
  await worktrees.commit(project, "s", "work");
  expect(git(made.path, "ls-files").split("\n")).toEqual(["a.txt", "new.txt"]);
  await expect(worktrees.merge(project, "s")).rejects.toMatchObject({
    got: "inside/",
    fix: expect.stringContaining("move the git repository"),
  });
  git(made.path, "-c", "filter.x.clean=", "add", "inside"); // As an agent without a sandbox can do it.
  git(made.path, "commit", "--quiet", "-m", "inside");
  change();
  await worktrees.diff(project, "s");
  await worktrees.finish(project, "s", "work");
  await worktrees.list(project);
  // The project would get the name of a commit that it does not have.
  await expect(worktrees.merge(project, "s")).rejects.toThrow(
    "does not have the commit of the submodule inside",
  );
  expect(existsSync(ran)).toBe(false);
});

test(
  "the empty .git that a sandbox leaves in the folder of a session does not stop a removal",
  ofCampaign,
  async () => {
    mkdirSync(join(project, "part"));
    commit(project, "part/a.txt", "one\n");
    const made = await worktrees.open({ project: join(project, "part"), session: "s" });
    mkdirSync(join(made.path, ".git"));
    expect((await worktrees.list(project))[0]).toMatchObject({ changed: [], untracked: [] });
    await worktrees.remove(project, "s");
    expect(existsSync(made.root)).toBe(false);
  },
);

test("a session without a worktree has no work, and a read that is cut off is an error and not that", async () => {
  expect(await worktrees.work(place, "s", "")).toBeUndefined(); // No repository is here.
  commit(project, "a.txt", "one\n");
  const made = await open("s1");
  await open("s2");
  expect(await worktrees.work(project, "s", "")).toBeUndefined(); // Two others begin with this id.
  commit(made.path, "b.txt", "two\n");
  expect((await worktrees.work(project, "s1", ""))?.diff).toContain("+two");

  const bin = join(place, "bin");
  mkdirSync(bin);
  const cut = (action: string) => {
    const script = `#!/bin/sh\ncase "$*" in *" diff "*) ${action};; esac\nPATH="$REAL" exec git "$@"\n`;
    writeFileSync(join(bin, "git"), script.replace("$REAL", process.env["PATH"]!), { mode: 0o755 });
    const environment = { ...process.env, HOME: place, PATH: `${bin}:${process.env["PATH"]}` };
    return new Worktrees({ folder: join(place, "data"), environment }).work(project, "s1", "");
  };
  await expect(cut("kill -TERM $$")).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringMatching(/^git diff in .* was ended by SIGTERM before it had an answer$/),
  });
  await expect(cut("echo fatal: bad object >&2; exit 128")).rejects.toThrow("fatal: bad object");
});
