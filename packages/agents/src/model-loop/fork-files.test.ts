// A fork of a session of the model loop begins with the files of its checkpoint. A fork that worked in the
// folder of its origin would destroy the work of both.

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { decodeJson } from "@holdfast/core";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { crashEverywhere } from "@holdfast/testkit";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { afterEach, beforeEach, expect, test } from "vitest";

import type { AgentRecord } from "../record/agent-record.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { RECORD } from "../testing/agent-record.ts";
import { fakeModel, type Play, type Say } from "../testing/fake-model.ts";
import { ownWorkspaces } from "../testing/own-workspaces.ts";
import { ModelLoop } from "./model-loop.ts";

let base: string;
let project: string;
let storage: MemoryStorage;
let runtime: Runtime | undefined;

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "fork-files-")));
  project = join(base, "project");
  mkdirSync(project);
  storage = new MemoryStorage();
  git(project, "init", "--quiet", "--initial-branch=main");
  writeFileSync(join(project, ".gitignore"), "*.log\n");
  writeFileSync(join(project, "known.txt"), "base\n");
  writeFileSync(join(project, "old.txt"), "old\n");
  git(project, "add", "--all");
  git(project, "commit", "--quiet", "-m", "base");
});
afterEach(async () => {
  await runtime?.close();
  rmSync(base, { recursive: true, force: true });
});

const environment = () => ({ PATH: process.env["PATH"], HOME: base });

function git(folder: string, ...args: readonly string[]): string {
  const identity = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"];
  return execFileSync("git", [...identity, ...args], {
    cwd: folder,
    encoding: "utf8",
    env: environment(),
    stdio: ["ignore", "pipe", "ignore"],
  }).trim();
}

type Workspace = AgentRecord["workspace"];

function agentOf(workspace: Workspace, play: Play | readonly Say[], env: NodeJS.ProcessEnv = environment()) {
  const { place, keepFiles, ...own } = ownWorkspaces(project, join(base, "data"), env);
  const loop = new ModelLoop({
    model: fakeModel(play),
    workspace: workspacesByRoot(),
    root: project,
    place,
    keepFiles,
  });
  const permissions = ["write_file", "edit_file", "shell"].map((tool) => ({
    decision: "allow" as const,
    tool,
    pattern: null,
  }));
  return { agent: loop.agent({ ...RECORD, workspace, permissions }), ...own };
}

const write = (path: string, content: string): Say => ({ calls: [["write_file", { path, content }]] });
const shell = (command: string): Say => ({ calls: [["shell", { command }]] });
/** An edit, a new file and a removal, each in a turn of its own. */
const THREE_TURNS: readonly Say[] = [
  write("known.txt", "changed\n"),
  write("new/made.txt", "made\n"),
  shell("rm known.txt; echo last > last.txt"),
];
const DONE: Say = { text: "Done." };

/** Three turns, and a fork ends at once. */
const playThree: Play = ({ messages }, number) =>
  JSON.stringify(messages).includes("This session is a fork") ? DONE : (THREE_TURNS[number] ?? DONE);

async function run(workspace: Workspace, play: Play | readonly Say[] = playThree, env?: NodeJS.ProcessEnv) {
  const made = agentOf(workspace, play, env);
  runtime = createRuntime({ storage, agents: [made.agent] });
  const handle = await runtime.start(made.agent, "Work.", { sessionId: "s" });
  await handle.result();
  return made;
}

/** The positions of the checkpoints of a session: the end of each turn but the last. */
async function checkpoints(session = "s"): Promise<readonly number[]> {
  const records = await storage.reader.journal(session, 0, 10_000);
  return records.filter(({ type }) => type === "checkpoint").map(({ seq }) => seq);
}

async function forkAt(turn: number, sessionId = `fork-${turn}`): Promise<string> {
  const at = (await checkpoints())[turn - 1]!;
  const fork = await runtime!.fork("s", { at, sessionId });
  await fork.result();
  return sessionId;
}

function filesOf(folder: string, below = ""): Record<string, string> {
  const files: Record<string, string> = {};
  for (const entry of readdirSync(join(folder, below), { withFileTypes: true })) {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (entry.name === ".git") continue;
    if (entry.isDirectory()) Object.assign(files, filesOf(folder, path));
    else files[path] = readFileSync(join(folder, path), "utf8");
  }
  return files;
}

const worktreeOf = async (session: string): Promise<string> =>
  (await ownWorkspaces(project, join(base, "data"), environment()).worktrees.lookUp(project, session))!.path;
const emptyOf = (session: string): string =>
  ownWorkspaces(project, join(base, "data"), environment()).folders.pathOf(project, session);

async function texts(session: string): Promise<string> {
  const read = await storage.reader.entries(session, 0, 1_000);
  return JSON.stringify(read.map(({ content }) => decodeJson(content)));
}

const COMMITTED = { ".gitignore": "*.log\n", "old.txt": "old\n" };
const LAST = { ...COMMITTED, "new/made.txt": "made\n", "last.txt": "last\n" };
const AT = [
  { ...COMMITTED, "known.txt": "changed\n" },
  { ...COMMITTED, "known.txt": "changed\n", "new/made.txt": "made\n" },
  LAST,
];

test("a fork at the second turn has the files of that turn as open changes, and its origin keeps those of the third", async () => {
  await run("worktree");
  git(project, "gc", "--quiet", "--prune=now");
  const fork = await worktreeOf(await forkAt(2));
  expect(filesOf(fork)).toEqual(AT[1]);
  expect(git(fork, "status", "--porcelain", "--untracked-files=all").split("\n")).toEqual([
    "M known.txt", // The output is trimmed: the change is not staged.
    "?? new/made.txt",
  ]);
  expect(git(fork, "rev-parse", "HEAD")).toBe(git(project, "rev-parse", "HEAD"));
  expect(git(fork, "branch", "--show-current")).toBe("holdfast/fork-2");
  expect(filesOf(await worktreeOf("s"))).toEqual(LAST);
  expect(filesOf(project)).toEqual({ ...COMMITTED, "known.txt": "base\n" });
  expect(await texts("fork-2")).toContain(`works in a folder of its own from here on: ${fork}`);
  expect(await texts("fork-2")).toContain("changes inside of submodules, are not in it");
});

test("each turn has its files, also in a fork of a fork", ofCampaign, async () => {
  await run("worktree");
  for (const turn of [1, 2, 3]) expect(filesOf(await worktreeOf(await forkAt(turn)))).toEqual(AT[turn - 1]);
  const again = await runtime!.fork("fork-2", { sessionId: "again" });
  await again.result();
  expect(filesOf(await worktreeOf("again"))).toEqual(AT[1]);
});

test("an empty workspace forks with its files", ofCampaign, async () => {
  await run("empty");
  const fork = emptyOf(await forkAt(2));
  expect(filesOf(fork)).toEqual({ "known.txt": "changed\n", "new/made.txt": "made\n" });
  expect(filesOf(emptyOf("s"))).toEqual({ "new/made.txt": "made\n", "last.txt": "last\n" });
});

test("a fork of a session in a shared folder works in that folder", ofCampaign, async () => {
  await run("shared");
  await forkAt(2);
  expect(existsSync(join(project, "last.txt"))).toBe(true);
  expect(existsSync(join(base, "data"))).toBe(false);
  expect(await texts("fork-2")).not.toContain("This session is a fork");
});

test(
  "a fork begins on the commit that the agent had made, and a commit of later turns is not in it",
  ofCampaign,
  async () => {
    const commit = (file: string): Say =>
      shell(`git add --all && git -c user.name=A -c user.email=a@example.invalid commit -qm ${file}`);
    const turns = [write("one.txt", "1\n"), commit("one"), write("two.txt", "2\n"), commit("two")];
    await run("worktree", ({ messages }, number) =>
      JSON.stringify(messages).includes("is a fork") ? DONE : (turns[number] ?? DONE),
    );
    const fork = await worktreeOf(await forkAt(3));
    expect(git(fork, "log", "--format=%s").split("\n")).toEqual(["one", "base"]);
    expect(git(fork, "status", "--porcelain")).toBe("?? two.txt");
    const clean = await worktreeOf(await forkAt(2));
    expect(git(clean, "status", "--porcelain")).toBe("");
    expect(filesOf(clean)).toHaveProperty("one\u002etxt", "1\n");
  },
);

test("a turn that only reads takes no snapshot, and starts no git for one", ofCampaign, async () => {
  const bin = join(base, "bin");
  mkdirSync(bin);
  const real = execFileSync("sh", ["-c", "command -v git"], { encoding: "utf8" }).trim();
  const log = join(base, "git.log");
  writeFileSync(join(bin, "git"), `#!/bin/sh\necho "$@" >> '${log}'\nexec '${real}' "$@"\n`);
  chmodSync(join(bin, "git"), 0o755);
  const read: Say = { calls: [["read_file", { path: "old.txt" }]] };
  const env = { HOME: base, PATH: `${bin}${delimiter}${process.env["PATH"]}` };
  let lines: number[] = [];
  const count = (): number => readFileSync(log, "utf8").split("\n").length;
  await run(
    "worktree",
    (_, number) => {
      lines = [...lines, count()];
      return [read, read, write("a.txt", "a\n")][number] ?? DONE;
    },
    env,
  );
  const [start, afterOne, afterTwo, afterWrite] = lines;
  expect([afterOne, afterTwo]).toEqual([start, start]);
  expect(afterWrite! - start!).toBeGreaterThan(5);
  expect(afterWrite! - start!).toBeLessThan(18);
  expect(git(project, "rev-list", "--count", "refs/holdfast/snapshots/s", "^main")).toBe("1");
});

test(
  "files that cannot be kept are a note, and a fork says that its files are older",
  ofCampaign,
  async () => {
    const turns = [write("known.txt", "changed\n"), shell("truncate -s 200M big.bin; echo two > two.txt")];
    await run("worktree", ({ messages }, number) =>
      JSON.stringify(messages).includes("is a fork") ? DONE : (turns[number] ?? DONE),
    );
    expect(await texts("s")).toContain("The files of this turn were not kept for a fork: ");
    expect(await texts("s")).toContain("big.bin has 209715200 bytes");
    expect(filesOf(await worktreeOf(await forkAt(2)))).toEqual(AT[0]);
    expect(await texts("fork-2")).toContain("Its files are those of an earlier turn");
  },
);

test("a fork whose snapshot is gone fails with the reason, and makes nothing", ofCampaign, async () => {
  await run("worktree");
  const { worktrees } = ownWorkspaces(project, join(base, "data"), environment());
  await worktrees.remove(project, "s", { rescues: true });
  expect(git(project, "for-each-ref", "refs/holdfast/snapshots")).toBe("");
  git(project, "update-ref", "-d", "refs/holdfast/rescue/s");
  git(project, "reflog", "expire", "--expire=now", "--all");
  git(project, "gc", "--quiet", "--prune=now");
  await expect(forkAt(2)).rejects.toThrow("the files of session fork-2 cannot be restored");
  expect(await worktrees.list(project)).toEqual([]);
  expect(git(project, "branch", "--list", "holdfast/fork-2")).toBe("");
});

test("a fork in the middle of a turn makes its next calls in a folder of its own", ofCampaign, async () => {
  const both = ["echo a > a.txt", "echo b >> b.txt"].map((command) => ["shell", { command }] as const);
  await run("worktree", [write("known.txt", "changed\n"), { calls: both }, DONE, DONE]);
  const records = await storage.reader.journal("s", 0, 1_000);
  const [first, second] = await checkpoints();
  const [, , ends] = records.filter(
    ({ type, seq }) => type === "task_completed" && seq > first! && seq < second!,
  );
  // The model call has ended, and the first of both calls: its task is done again as it was recorded.
  const at = records.find(
    ({ type, seq }) => type === "task_completed" && seq < ends!.seq && seq > first! + 4,
  );
  const fork = await runtime!.fork("s", { at: at!.seq, sessionId: "middle" });
  await fork.result();
  expect(readFileSync(join(await worktreeOf("s"), "b.txt"), "utf8")).toBe("b\n");
  expect(filesOf(await worktreeOf("middle"))).toEqual({ ...AT[0], "b.txt": "b\n" });
});

test(
  "a crash at any point of a turn with a snapshot changes neither the session nor its snapshots",
  { ...ofCampaign, timeout: 900_000 },
  async () => {
    const { agent } = agentOf("empty", [...THREE_TURNS.slice(0, 2), DONE]);
    const report = await crashEverywhere(
      {
        agent,
        name: "snapshots",
        input: "Work.",
        reset: () => rmSync(join(base, "data"), { recursive: true, force: true }),
        effects: () => {
          const [bare = ""] = readdirSync(join(base, "data/workspaces")).filter((name) =>
            name.endsWith(".git"),
          );
          const log = git(
            join(base, "data/workspaces", bare),
            "--git-dir=.",
            "log",
            "--all",
            "--format=%T %s",
          );
          return log;
        },
      },
      undefined,
      { every: isCampaign ? 1 : 61 },
    );
    expect(report.outcome).toMatchObject({ status: "completed" });
    expect(report.failures).toEqual([]);
  },
);
