// Holdfast calls git on this machine, over folders that an agent wrote. A program that the agent named there
// must not run outside of its sandbox.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TaskContext } from "@holdfast/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";

import { hostCommands, openWorkspace, type WorkspaceCapabilities } from "@holdfast/workspace";
import { defineWorkspaceTasks, type WorkspaceTasks } from "./workspace-tasks.ts";

let base: string;
let root: string;
let ran: string;

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "git-programs-"));
  root = join(base, "root");
  ran = join(base, "ran");
  git(base, "init", "--quiet", "root");
  writeFileSync(join(root, "a.txt"), "one\n");
  git(root, "add", "--all");
  git(root, "commit", "--quiet", "-m", "begin");
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

function git(folder: string, ...args: readonly string[]): string {
  const identity = ["-c", "user.name=T", "-c", "user.email=t@example.invalid"];
  const env = { PATH: process.env["PATH"], HOME: base };
  return execFileSync("git", [...identity, ...args], { cwd: folder, encoding: "utf8", env }).trim();
}

/** Names a program in the configuration of a repository, and files that git must pass through it to compare them. */
function plant(repository: string, name: string): void {
  git(repository, "config", `filter.${name}.clean`, `touch ${ran}; cat`);
  git(repository, "config", `filter.${name}.required`, "true");
  git(repository, "config", "core.fsmonitor", `touch ${ran}`);
  git(repository, "config", "diff.external", `touch ${ran}`);
  git(repository, "config", "diff.submodule", "diff");
  writeFileSync(join(repository, ".gitattributes"), `*.txt filter=${name}\n`);
  change(repository);
}

/** Another text of the same length, so that git must read it. */
function change(repository: string): void {
  writeFileSync(join(repository, "a.txt"), "two\n");
  utimesSync(join(repository, "a.txt"), 0, 0);
}

async function open(
  files: "workspace" | "user",
  held: Partial<WorkspaceCapabilities> = {},
): Promise<WorkspaceTasks> {
  const host = hostCommands();
  const commands = { ...host, capabilities: { ...host.capabilities, files, ...held } };
  return defineWorkspaceTasks(
    await openWorkspace({ root, inherit: { ...process.env, HOME: base }, commands }),
  );
}

const task = {
  attempt: 1,
  overlaps: false,
  idempotencyKey: "ses_1-1",
  signal: new AbortController().signal,
} as unknown as TaskContext;

describe("in a sandbox", () => {
  test.each(sampled(["x", "a=b", "a.b c"]))(
    "a filter %j of the repository does not run, and a commit is refused",
    async (name) => {
      plant(root, name);
      const { gitStatus, gitDiff, gitCommit } = await open("workspace");
      expect((await gitStatus.run({}, task)).changes).toContainEqual({ status: " M", path: "a.txt" });
      expect((await gitDiff.run({}, task)).diff).toContain("-one\n+two");
      await expect(gitCommit.run({ message: "m" }, task)).rejects.toMatchObject({
        code: "policy_denied",
        message: expect.stringContaining(`git config --unset filter.${name}.clean`),
      });
      expect(existsSync(ran)).toBe(false);
    },
  );

  test("hooks are refused", ofCampaign, async () => {
    writeFileSync(join(root, ".git/hooks/pre-commit"), `#!/bin/sh\ntouch ${ran}\n`, { mode: 0o755 });
    change(root);
    const { gitCommit } = await open("workspace");
    await expect(gitCommit.run({ message: "m", runHooks: true }, task)).rejects.toMatchObject({
      code: "policy_denied",
    });
    expect(existsSync(ran)).toBe(false);
    expect(await gitCommit.run({ message: "m" }, task)).toMatchObject({ files: ["a.txt"] });
  });

  // Its commands write hooks, and a call of git outside of it would have the network that they have not.
  test.each<Partial<WorkspaceCapabilities>>([{ network: "none" }, { credentials: "hidden" }])(
    "hooks and filters are refused where commands can change every file, and %j",
    async (held) => {
      writeFileSync(join(root, ".git/hooks/pre-commit"), `#!/bin/sh\ntouch ${ran}\n`, { mode: 0o755 });
      plant(root, "x");
      const { gitCommit } = await open("user", held);
      for (const runHooks of [true, false])
        await expect(gitCommit.run({ message: "m", runHooks }, task)).rejects.toMatchObject({
          code: "policy_denied",
        });
      expect(existsSync(ran)).toBe(false);
    },
  );

  test("a filter of the user's own configuration runs", ofCampaign, async () => {
    git(root, "config", "--global", "filter.up.clean", "tr a-z A-Z");
    writeFileSync(join(root, ".gitattributes"), "*.txt filter=up\n");
    change(root);
    const { gitCommit } = await open("workspace");
    await gitCommit.run({ message: "m" }, task);
    expect(git(root, "show", "HEAD:a.txt")).toBe("TWO");
  });
});

// `npx` and `npm run` put such a folder first.
test("a program named git in a folder of the workspace on the PATH is not run", async () => {
  const bin = join(root, "node_modules", ".bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "git"), `#!/bin/sh\ntouch ${ran}\n`, { mode: 0o755 });
  const inherit = { ...process.env, HOME: base, PATH: `${bin}:${process.env["PATH"]}` };
  const { gitStatus } = defineWorkspaceTasks(await openWorkspace({ root, inherit }));
  expect((await gitStatus.run({}, task)).changes).toHaveLength(1);
  expect(existsSync(ran)).toBe(false);
});

describe("a repository inside of the folder", () => {
  const inside = (): string => join(root, "inside");
  const make = (): void => {
    mkdirSync(inside());
    git(inside(), "init", "--quiet");
    writeFileSync(join(inside(), "a.txt"), "one\n");
    git(inside(), "add", "--all");
    git(inside(), "commit", "--quiet", "-m", "inside");
  };

  test("its programs do not run when the repository outside knows it", ofCampaign, async () => {
    make();
    git(root, "add", "--all");
    git(root, "commit", "--quiet", "-m", "with a repository inside");
    plant(inside(), "x");
    git(root, "config", "diff.submodule", "diff");
    const { gitStatus, gitDiff, gitCommit } = await open("user");
    writeFileSync(join(root, "b.txt"), "");
    await gitStatus.run({}, task);
    await gitDiff.run({}, task);
    expect(await gitCommit.run({ message: "m" }, task)).toMatchObject({ files: ["b.txt"] });
    expect(existsSync(ran)).toBe(false);
  });

  test("it is left out of a commit and named by the status", ofCampaign, async () => {
    make();
    writeFileSync(join(root, "b.txt"), "");
    const { gitStatus, gitCommit } = await open("user");
    expect(await gitCommit.run({ message: "m" }, task)).toMatchObject({ files: ["b.txt"] });
    expect((await gitStatus.run({}, task)).changes).toEqual([{ status: "??", path: "inside/" }]);
  });
});

test(
  "a commit has files that became folders, folders that became files, and those that are gone",
  ofCampaign,
  async () => {
    mkdirSync(join(root, "was-folder"));
    writeFileSync(join(root, "was-folder", "x"), "");
    writeFileSync(join(root, "was-file"), "");
    git(root, "add", "--all");
    git(root, "commit", "--quiet", "-m", "files");
    for (const name of ["was-folder", "was-file", "a.txt"]) rmSync(join(root, name), { recursive: true });
    writeFileSync(join(root, "was-folder"), "");
    mkdirSync(join(root, "was-file"));
    writeFileSync(join(root, "was-file", "x"), "");
    await (await open("workspace")).gitCommit.run({ message: "m" }, task);
    expect(git(root, "ls-files").split("\n")).toEqual(["was-file/x", "was-folder"]);
    expect(git(root, "status", "--porcelain")).toBe("");
  },
);
