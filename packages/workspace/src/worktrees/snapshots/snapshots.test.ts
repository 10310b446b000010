// File snapshots over real repositories: what is in them, what is not, and what a fork gets of them.

import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import type { FileSnapshot } from "../../workspace/capabilities.ts";
import { EmptyFolders } from "../empty-folder.ts";
import { Worktrees } from "../worktrees.ts";

const LIFE = fileURLToPath(new URL("../../testing/fork-life.ts", import.meta.url));

let base: string;
let project: string;
let worktrees: Worktrees;
let folders: EmptyFolders;

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "snapshots-")));
  project = join(base, "project");
  mkdirSync(project);
  git(project, "init", "--quiet", "--initial-branch=main");
  const environment = { PATH: process.env["PATH"], HOME: base };
  worktrees = new Worktrees({ folder: join(base, "worktrees"), environment });
  folders = new EmptyFolders({ folder: join(base, "workspaces"), environment });
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

function git(folder: string, ...args: readonly string[]): string {
  const identity = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"];
  return execFileSync("git", [...identity, ...args], {
    cwd: folder,
    encoding: "utf8",
    env: { PATH: process.env["PATH"], HOME: base },
    stdio: ["ignore", "pipe", "ignore"],
  }).replace(/\n$/, "");
}

function write(root: string, files: Readonly<Record<string, string | Uint8Array>>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}

function commit(files: Readonly<Record<string, string | Uint8Array>>): void {
  write(project, files);
  git(project, "add", "--all", "--force");
  git(project, "commit", "--quiet", "-m", "base");
}

/** Every file and link with its content and mode, apart from `.git`. */
function filesOf(root: string, below = ""): Record<string, string> {
  const files: Record<string, string> = {};
  for (const entry of readdirSync(join(root, below), { withFileTypes: true })) {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (path === ".git") continue;
    if (entry.isDirectory()) Object.assign(files, filesOf(root, path));
    else if (entry.isSymbolicLink()) files[path] = `-> ${readlinkSync(join(root, path))}`;
    else {
      const mode = (lstatSync(join(root, path)).mode & 0o111) === 0 ? "" : "x ";
      files[path] = `${mode}${readFileSync(join(root, path), "latin1")}`;
    }
  }
  return files;
}

const open = async (session = "s"): Promise<string> => (await worktrees.open({ project, session })).path;
const fork = async (begin: FileSnapshot, session = "f"): Promise<string> =>
  (await worktrees.open({ project, session, begin })).path;

test("a fork has each kind of file byte for byte, and its index is that of HEAD", ofCampaign, async () => {
  commit({
    "a.txt": "one\r\ntwo\n",
    "b.txt": "b\n",
    "kept/deep/c.txt": "c\n",
    "was-file": "f\n",
    "was-folder/x": "x\n",
    ".gitattributes": "*.txt text eol=lf\n",
    ".gitignore": "*.log\nforced/\n",
  });
  const path = await open();
  for (const name of ["was-file", "kept", "was-folder"]) rmSync(join(path, name), { recursive: true });
  write(path, {
    "a.txt": "changed\r\n\r\n",
    "bytes.bin": Uint8Array.from({ length: 512 }, (_, at) => at % 256),
    "was-file/now/folder.txt": "d\n",
    "new name ü\n.txt": "odd name\r\n",
    "run.sh": "#!/bin/sh\n",
    "debug.log": "ignored\n",
    "forced/in.txt": "committed although ignored\n",
    "empty.txt": "",
    "was-folder": "now a file\n",
  });
  chmodSync(join(path, "run.sh"), 0o755);
  chmodSync(join(path, "b.txt"), 0o755);
  symlinkSync("no/such/place", join(path, "link"));
  git(path, "add", "--force", "forced/in.txt", "run.sh");
  git(path, "commit", "--quiet", "-m", "forced");
  git(path, "add", "a.txt");
  const expected = filesOf(path);
  delete expected["debug.log"];
  const status = git(path, "status", "--porcelain=v1", "--untracked-files=all").split("\n").toSorted();
  const indexBefore = git(path, "ls-files", "--stage");
  const snapshot = await worktrees.keepFiles(project, "s");
  expect(git(path, "ls-files", "--stage")).toBe(indexBefore);
  const made = await fork(snapshot);
  expect(filesOf(made)).toEqual(expected);
  // A staged change is one that is not staged.
  expect(git(made, "status", "--porcelain=v1", "--untracked-files=all").split("\n").toSorted()).toEqual(
    status.map((line) => line.replace(/^M /, " M")).toSorted(),
  );
  expect(git(made, "rev-parse", "HEAD")).toBe(git(path, "rev-parse", "HEAD"));
  expect(await worktrees.keepFiles(project, "f")).toEqual(snapshot);
});

test(
  "the same files and HEAD make no second commit, and the snapshots are one chain",
  ofCampaign,
  async () => {
    commit({ "a.txt": "one\n" });
    const path = await open();
    write(path, { "b.txt": "b\n" });
    const first = await worktrees.keepFiles(project, "s");
    expect(await worktrees.keepFiles(project, "s")).toEqual(first);
    git(path, "add", "b.txt");
    git(path, "commit", "--quiet", "-m", "b");
    const second = await worktrees.keepFiles(project, "s");
    expect(second.head).toBe(git(path, "rev-parse", "HEAD"));
    rmSync(join(git(path, "rev-parse", "--absolute-git-dir"), "holdfast-snapshot-index"));
    expect(await worktrees.keepFiles(project, "s")).toEqual(second);
    const chain = git(project, "rev-list", "--first-parent", "--max-count=2", "refs/holdfast/snapshots/s");
    expect(chain.split("\n")).toEqual([second.commit, first.commit]);
    await worktrees.dropSnapshots(project, "s");
    await worktrees.dropSnapshots(project, "s");
    await worktrees.dropSnapshots(base, "s");
    expect(git(project, "for-each-ref", "refs/holdfast")).toBe("");
  },
);

test(
  "a change of the same size and time is kept, also of a file that git is told to skip",
  ofCampaign,
  async () => {
    commit({ "a.txt": "one\n", "b.txt": "one\n" });
    const path = await open();
    git(path, "update-index", "--assume-unchanged", "a.txt");
    git(path, "update-index", "--skip-worktree", "b.txt");
    for (const name of ["a.txt", "b.txt"]) {
      const { atime, mtime } = lstatSync(join(path, name));
      writeFileSync(join(path, name), "two\n");
      utimesSync(join(path, name), atime, mtime);
    }
    expect(filesOf(await fork(await worktrees.keepFiles(project, "s")))).toEqual({
      "a.txt": "two\n",
      "b.txt": "two\n",
    });
  },
);

test(
  "nothing of .git, of .holdfast, of a repository inside or behind a link is in a snapshot",
  ofCampaign,
  async () => {
    commit({ "a/x.txt": "x\n", ".holdfast/agents/own.md": "own\n", "app/.holdfast/b.md": "b\n" });
    write(base, { "outside/x.txt": "secret\n" });
    const path = await open();
    write(path, { ".holdfast/agents/own.md": "changed\n", ".holdfast/new.md": "new\n" });
    rmSync(join(path, "a"), { recursive: true });
    symlinkSync(join(base, "outside"), join(path, "a"));
    git(path, "init", "--quiet", "inside");
    write(path, { "inside/in.txt": "in\n" });
    const snapshot = await worktrees.keepFiles(project, "s");
    expect(git(project, "ls-tree", "-r", "--name-only", snapshot.commit!)).toBe("a");
    const made = await fork(snapshot);
    expect(filesOf(made)).toEqual({
      a: `-> ${join(base, "outside")}`,
      // These files are those of the commit.
      ".holdfast/agents/own.md": "own\n",
      "app/.holdfast/b.md": "b\n",
    });
    expect(readFileSync(join(base, "outside/x.txt"), "utf8")).toBe("secret\n");
  },
);

test("no filter, hook or file monitor of the repository runs", ofCampaign, async () => {
  commit({ "a.txt": "one\n", "b.txt": "b\n" });
  const path = await open();
  const ran = join(base, "ran");
  const program = join(base, "program");
  writeFileSync(program, `#!/bin/sh\necho "$0 $@" >> '${ran}'\ncat\n`);
  chmodSync(program, 0o755);
  for (const key of ["filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "core.fsmonitor"])
    git(project, "config", key, program);
  git(project, "config", "filter.evil.required", "true");
  git(project, "config", "core.hooksPath", join(base, "hooks"));
  mkdirSync(join(base, "hooks"));
  for (const hook of ["post-checkout", "post-index-change", "reference-transaction", "post-commit"])
    symlinkSync(program, join(base, "hooks", hook));
  write(path, { ".gitattributes": "* filter=evil text eol=crlf\n", "a.txt": "two\n", "c.txt": "c\n" });
  const made = await fork(await worktrees.keepFiles(project, "s"));
  expect(filesOf(made)).toEqual(filesOf(path));
  expect(existsSync(ran)).toBe(false);
});

test(
  "a snapshot that lacks a file is an error that names it, and the fork gets no folder to work in",
  ofCampaign,
  async () => {
    commit({ "a.txt": "one\n" });
    const path = await open();
    write(path, { "b.txt": "b\n" });
    const snapshot = await worktrees.keepFiles(project, "s");
    const id = git(project, "rev-parse", `${snapshot.commit}:b.txt`);
    rmSync(join(project, ".git/objects", id.slice(0, 2), id.slice(2)));
    const asked = { code: "file_not_found", message: expect.stringContaining("b.txt is missing") };
    await expect(fork(snapshot)).rejects.toMatchObject(asked);
    await expect(fork(snapshot)).rejects.toMatchObject(asked);
    expect(await worktrees.lookUp(project, "f")).toBeUndefined();
    const elsewhere = { commit: "1".repeat(40), head: snapshot.head };
    await expect(fork(elsewhere, "g")).rejects.toMatchObject({ code: "file_not_found" });
    await expect(folders.open(project, "g", elsewhere)).rejects.toMatchObject({ code: "file_not_found" });
    expect(existsSync(folders.pathOf(project, "g"))).toBe(false);
  },
);

/** Opens a fork in a process that is killed at the n-th start of git, with that git. @returns whether it was killed. */
async function killAt(number: number, args: readonly string[]): Promise<boolean> {
  const bin = join(base, "bin");
  const count = join(base, "count");
  rmSync(count, { force: true });
  mkdirSync(bin, { recursive: true });
  const real = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
  writeFileSync(
    join(bin, "git"),
    `#!/bin/sh\necho >> '${count}'\n[ "$(wc -l < '${count}')" -ge ${number} ] && kill -9 $PPID $$\nexec '${real}' "$@"\n`,
  );
  chmodSync(join(bin, "git"), 0o755);
  const PATH = `${bin}${delimiter}${process.env["PATH"]}`;
  const child = spawn(process.execPath, [LIFE, ...args], { env: { PATH, HOME: base }, stdio: "ignore" });
  return new Promise((resolve) => child.on("close", (_, signal) => resolve(signal === "SIGKILL")));
}

test(
  "a kill at any call of git while a fork gets its files changes nothing of the result",
  { ...ofCampaign, timeout: 900_000 },
  async () => {
    commit({ "a.txt": "one\n", "b.txt": "b\n", "link-or-folder": "x\n" });
    const path = await open();
    write(path, { "a.txt": "two\n", "new/c.txt": "c\n" });
    rmSync(join(path, "b.txt"));
    rmSync(join(path, "link-or-folder"));
    write(path, { "link-or-folder/d.txt": "d\n" });
    const { commit: id, head } = await worktrees.keepFiles(project, "s");
    const empty = await folders.open(project, "s");
    write(empty, { "a.txt": "two\n", "new/c.txt": "c\n" });
    const ofEmpty = await folders.keepFiles(project, "s");
    let kills = 0;
    for (const isWorktree of [true, false]) {
      for (let number = 1; ; number++) {
        const session = `${isWorktree ? "w" : "e"}${number}`;
        const args = isWorktree
          ? ["worktree", project, join(base, "worktrees"), session, id!, head!]
          : ["empty", project, join(base, "workspaces"), session, ofEmpty.commit!];
        const isKilled = await killAt(number, args);
        const made = isWorktree
          ? await fork({ commit: id, head }, session)
          : await folders.open(project, session, ofEmpty);
        expect(filesOf(made), `killed at ${number}`).toEqual(filesOf(isWorktree ? path : empty));
        if (isWorktree)
          expect(git(made, "status", "--porcelain"), `killed at ${number}`).toBe(
            git(path, "status", "--porcelain"),
          );
        if (!isKilled) break;
        kills++;
      }
    }
    expect(kills).toBeGreaterThan(15);
  },
);
