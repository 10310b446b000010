import { execFileSync } from "node:child_process";
import { mkdtemp, mkdir, readFile, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TaskContext, TaskDefinition } from "@holdfast/runtime";
import { validate } from "@holdfast/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import { openWorkspace, type Workspace } from "@holdfast/workspace";
import { workspacesByRoot } from "./workspace-source.ts";
import { defineWorkspaceTasks, workspaceTasks, type WorkspaceTasks } from "./workspace-tasks.ts";

let root: string;
let workspace: Workspace;
let tasks: WorkspaceTasks;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "tasks-"));
  workspace = await openWorkspace({ root, inherit: { ...process.env, HOME: root } });
  tasks = defineWorkspaceTasks(workspace);
});

afterEach(async () => {
  await workspace.dispose();
  await rm(root, { recursive: true, force: true });
});

/** One attempt, as a runtime makes it. */
async function attempt<I, O>(
  task: TaskDefinition<I, O>,
  input: NoInfer<I>,
  context: Partial<TaskContext> = {},
): Promise<O> {
  const checked = await validate(task.input, input, task.name, "invalid_input");
  return task.run(checked, {
    sessionId: "ses_1",
    taskId: "ses_1-1",
    attempt: 1,
    overlaps: false,
    idempotencyKey: "ses_1-1",
    signal: new AbortController().signal,
    secret: () => "",
    signalSession: async () => undefined,
    readSession: async () => undefined,
    remainingBudget: () => Promise.resolve(undefined),
    streamToken: () => {},
    progress: () => {},
    reportUsage: () => {},
    ...context,
  });
}

describe("files", () => {
  test("files are written, read in parts, edited and listed", async () => {
    expect(await attempt(tasks.writeFile, { path: "src/a.txt", content: "one\ntwo\nthree\n" })).toMatchObject(
      { isNew: true },
    );
    expect(await attempt(tasks.readFile, { path: "src/a.txt", startLine: 2, lines: 1 })).toEqual({
      path: "src/a.txt",
      text: "two",
      startLine: 2,
      endLine: 2,
      totalLines: 3,
    });
    expect(await attempt(tasks.editFile, { path: "src/a.txt", oldText: "two", newText: "2" })).toMatchObject({
      replaced: 1,
      line: 2,
    });
    expect((await attempt(tasks.readFile, { path: "src/a.txt" })).text).toBe("one\n2\nthree\n");
    expect(await attempt(tasks.listFiles, {})).toEqual({ entries: ["src/"], isCut: false });
    expect(await attempt(tasks.listFiles, { recursive: true })).toEqual({
      entries: ["src/a.txt"],
      isCut: false,
    });
    expect(await attempt(tasks.search, { pattern: "three" })).toMatchObject({
      matches: [{ path: "src/a.txt", line: 3 }],
    });
  });

  test("an edit that died after writing is not made twice", async () => {
    await writeFile(join(root, "a.txt"), "value\n");
    const input = { path: "a.txt", oldText: "value", newText: "value + 1" };
    await attempt(tasks.editFile, input);
    expect(await attempt(tasks.editFile, input, { attempt: 2 })).toEqual({
      path: "a.txt",
      replaced: 1,
      line: 1,
    });
    expect(await readFile(join(root, "a.txt"), "utf8")).toBe("value + 1\n");
  });

  test("errors of file tasks help a model to do better", async () => {
    await writeFile(join(root, "a.txt"), "x\n");
    await writeFile(join(root, "a.bin"), Buffer.from([0, 1]));
    await expect(attempt(tasks.readFile, { path: "b.txt" })).rejects.toThrow(
      /there is no file or directory "b.txt"; list the directory/,
    );
    await expect(attempt(tasks.readFile, { path: "../x" })).rejects.toThrow(
      /leads out of the workspace; expected a path inside/,
    );
    await expect(attempt(tasks.readFile, { path: "a.txt", startLine: 9 })).rejects.toThrow(
      "has 1 lines, and line 9",
    );
    await expect(attempt(tasks.readFile, { path: "a.bin" })).rejects.toThrow("binary");
    await expect(attempt(tasks.editFile, { path: "a.txt", oldText: "y", newText: "z" })).rejects.toThrow(
      /does not contain oldText; read the file/,
    );
    await expect(attempt(tasks.editFile, { path: "a.bin", oldText: "y", newText: "z" })).rejects.toThrow(
      "binary",
    );
    await expect(attempt(tasks.writeFile, { path: ".git/hooks/post-commit", content: "x" })).rejects.toThrow(
      "do not write into .git",
    );
    await expect(attempt(tasks.readFile, { path: 1 as never })).rejects.toThrow("/path");
    await expect(attempt(tasks.readFile, { file: "a.txt" } as never)).rejects.toMatchObject({
      code: "invalid_input",
    });
  });

  test("an empty file has no lines and can be read", async () => {
    await writeFile(join(root, "empty"), "");
    expect(await attempt(tasks.readFile, { path: "empty" })).toMatchObject({ text: "", totalLines: 0 });
  });
});

describe("shell", () => {
  test("how a command ended is an output, not an error", async () => {
    const shown: unknown[] = [];
    const output = await attempt(
      tasks.shell,
      { command: "echo out; echo err >&2; exit 4" },
      { progress: (data) => shown.push(data) },
    );
    expect(output).toMatchObject({
      end: { type: "exit", exitCode: 4 },
      stdout: "out\n",
      stderr: "err\n",
      isCut: false,
    });
    expect(shown).toEqual(
      expect.arrayContaining([
        { stream: "stdout", text: "out\n" },
        { stream: "stderr", text: "err\n" },
      ]),
    );
  });

  // Elsewhere nothing finds a process by what it carries.
  test.runIf(process.platform === "linux")(
    "processes that a lost attempt left running are ended, also outside its group",
    async () => {
      const begun = Promise.withResolvers<void>();
      const lost = attempt(
        tasks.shell,
        { command: "setsid sleep 1000 & echo; wait" },
        { progress: () => begun.resolve() },
      );
      await begun.promise;
      await tasks.shell.endLost?.({ command: "sleep" }, "ses_1-1");
      expect((await lost).end.type).not.toBe("timeout");
    },
  );

  test("it is tried at most once unless asked otherwise", () => {
    expect(tasks.shell.retry).toMatchObject({ maxAttempts: 1 });
  });

  test("aborting the task ends the command", async () => {
    const controller = new AbortController();
    const running = attempt(
      tasks.shell,
      { command: "echo x; exec sleep 1000" },
      { signal: controller.signal, progress: () => controller.abort() },
    );
    await expect(running).rejects.toMatchObject({ name: "AbortError" });
  });
});

describe("git", () => {
  const gitIn = (...args: string[]): string =>
    execFileSync("git", args, { cwd: root, encoding: "utf8", env: { ...process.env, HOME: root } }).trim();

  beforeEach(async () => {
    gitIn("init", "-q", "-b", "main");
    await writeFile(join(root, "a.txt"), "one\n");
    await writeFile(join(root, ".gitignore"), "ignored\n");
    gitIn(
      "-c",
      "user.name=T",
      "-c",
      "user.email=t@example.invalid",
      "commit",
      "-q",
      "--allow-empty",
      "-m",
      "begin",
    );
  });

  test(
    "status names every file that differs, new, changed, renamed and deleted ones",
    ofCampaign,
    async () => {
      gitIn("add", "a.txt", ".gitignore");
      gitIn("-c", "user.name=T", "-c", "user.email=t@example.invalid", "commit", "-q", "-m", "files");
      await mkdir(join(root, "new dir"));
      await writeFile(join(root, "new dir", 'gr\u00fcn "x".txt'), "");
      await writeFile(join(root, "ignored"), "");
      gitIn("mv", "a.txt", "b.txt");
      await rm(join(root, ".gitignore"));
      const { changes, branch, commit } = await attempt(tasks.gitStatus, {});
      expect({ branch, commit }).toEqual({ branch: "main", commit: gitIn("rev-parse", "HEAD") });
      expect(changes).toEqual(
        expect.arrayContaining([
          { status: "R ", path: "b.txt" },
          { status: " D", path: ".gitignore" },
          { status: "??", path: 'new dir/gr\u00fcn "x".txt' },
        ]),
      );
    },
  );

  test(
    "a commit has everything that was changed, nothing of ours, and says whose task it was",
    ofCampaign,
    async () => {
      await mkdir(join(root, ".holdfast"));
      await writeFile(join(root, ".holdfast/holdfast.db"), "");
      await writeFile(join(root, ".holdfast-a.txt-00.tmp"), "");
      expect((await attempt(tasks.gitStatus, {})).changes.map((change) => change.path)).toEqual([
        ".gitignore",
        "a.txt",
      ]);
      const { commit, files, isNew } = await attempt(tasks.gitCommit, {
        message: "fix: two\n\n# not a comment",
      });
      expect({ commit, files, isNew }).toEqual({
        commit: gitIn("rev-parse", "HEAD"),
        files: [".gitignore", "a.txt"],
        isNew: true,
      });
      expect(gitIn("log", "-1", "--format=%an <%ae>%n%B")).toBe(
        "Holdfast <agent@holdfast.invalid>\nfix: two\n\n# not a comment\n\nHoldfast-Task: ses_1-1",
      );
    },
  );

  test(
    "an attempt after one that died makes no second commit, also when others have committed since",
    ofCampaign,
    async () => {
      const first = await attempt(tasks.gitCommit, { message: "once" });
      gitIn(
        "-c",
        "user.name=T",
        "-c",
        "user.email=t@example.invalid",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "somebody else",
      );
      await writeFile(join(root, "later.txt"), "");
      const second = await attempt(tasks.gitCommit, { message: "once" }, { attempt: 2 });
      expect(second).toEqual({ ...first, isNew: false });
      expect(gitIn("rev-list", "--count", "HEAD")).toBe("3");
    },
  );

  test("another task's commit is not taken for this one's", ofCampaign, async () => {
    await attempt(tasks.gitCommit, { message: "one\n\nHoldfast-Task: ses_1-2 not a trailer" });
    await writeFile(join(root, "b.txt"), "");
    expect(await attempt(tasks.gitCommit, { message: "two" }, { idempotencyKey: "ses_1-2" })).toMatchObject({
      isNew: true,
    });
    expect(await attempt(tasks.gitCommit, { message: "three" }, { idempotencyKey: "ses_1" })).toEqual({
      files: [],
      isNew: false,
    });
  });

  test("the configured author is kept, and a given one wins", ofCampaign, async () => {
    gitIn("config", "user.name", "Person");
    gitIn("config", "user.email", "person@example.invalid");
    await attempt(tasks.gitCommit, { message: "one" });
    expect(gitIn("log", "-1", "--format=%an <%ae>")).toBe("Person <person@example.invalid>");
    await writeFile(join(root, "b.txt"), "");
    const author = { name: "Bot", email: "bot@example.invalid" };
    await attempt(tasks.gitCommit, { message: "two", author }, { idempotencyKey: "k2" });
    expect(gitIn("log", "-1", "--format=%an <%ae> %cn")).toBe("Bot <bot@example.invalid> Bot");
  });

  // Tests leave reports and caches behind, and not every repository ignores them.
  test("a commit takes only the named new files, and all staged ones", ofCampaign, async () => {
    gitIn("add", "a.txt");
    await writeFile(join(root, "made.txt"), "");
    await writeFile(join(root, "report.xml"), "");
    await attempt(tasks.gitCommit, { message: "one", newFiles: ["made.txt", "gone.txt", "*.xml"] });
    expect(gitIn("ls-files").split("\n")).toEqual(["a.txt", "made.txt"]);
    await rm(join(root, "a.txt"));
    expect(
      (await attempt(tasks.gitCommit, { message: "two", newFiles: [] }, { idempotencyKey: "k2" })).files,
    ).toEqual(["a.txt"]);
  });

  test("hooks run only when asked for", ofCampaign, async () => {
    for (const hook of ["pre-commit", "post-commit", "prepare-commit-msg"]) {
      await writeFile(join(root, ".git/hooks", hook), `#!/bin/sh\necho ${hook} >> hooked\n`, { mode: 0o755 });
    }
    await attempt(tasks.gitCommit, { message: "one" });
    expect(await readdir(root)).not.toContain("hooked");
    await writeFile(join(root, "b.txt"), "");
    await attempt(tasks.gitCommit, { message: "two", runHooks: true }, { idempotencyKey: "k2" });
    expect(await readFile(join(root, "hooked"), "utf8")).toContain("pre-commit");
  });

  test("in a folder of a larger repository only that folder is committed", ofCampaign, async () => {
    await mkdir(join(root, "part"));
    await writeFile(join(root, "part/x.txt"), "");
    gitIn("add", "a.txt");
    const part = defineWorkspaceTasks(
      await openWorkspace({ root: join(root, "part"), inherit: { ...process.env, HOME: root } }),
    );
    expect((await attempt(part.gitCommit, { message: "part" })).files).toEqual(["part/x.txt"]);
    expect(gitIn("diff", "--cached", "--name-only")).toBe("a.txt");
  });

  test(
    "a lock that a killed git left behind is waited for, and removed when it is old",
    ofCampaign,
    async () => {
      const lock = join(root, ".git/index.lock");
      await writeFile(lock, "");
      await expect(attempt(tasks.gitCommit, { message: "one" })).rejects.toMatchObject({
        code: "locked",
        retryAfterMs: expect.any(Number),
      });
      const old = new Date(Date.now() - 60_000);
      await utimes(lock, old, old);
      await expect(attempt(tasks.gitCommit, { message: "one" }, { attempt: 2 })).rejects.toMatchObject({
        code: "locked",
      });
      expect(await attempt(tasks.gitCommit, { message: "one" }, { attempt: 3 })).toMatchObject({
        isNew: true,
      });
    },
  );

  // Where git has no German, or the system no such locale, it speaks English anyway.
  test("a lock is known as one whatever language git speaks", ofCampaign, async () => {
    await writeFile(join(root, ".git/index.lock"), "");
    const inherit = { ...process.env, HOME: root, LANG: "C.UTF-8" };
    for (const env of [{ LANGUAGE: "de" }, { LANGUAGE: "de", LC_ALL: "C.UTF-8" }]) {
      const german = defineWorkspaceTasks(await openWorkspace({ root, inherit, env }));
      await expect(attempt(german.gitCommit, { message: "one" })).rejects.toMatchObject({ code: "locked" });
    }
  });

  test("diff shows what was changed, without programs the repository brings along", ofCampaign, async () => {
    await attempt(tasks.gitCommit, { message: "one" });
    gitIn("config", "diff.external", "touch external");
    gitIn("config", "core.fsmonitor", "touch monitored");
    await writeFile(join(root, "a.txt"), "two\n");
    expect((await attempt(tasks.gitDiff, { path: "a.txt" })).diff).toContain("-one\n+two");
    await attempt(tasks.gitStatus, {});
    expect((await readdir(root)).toSorted()).toEqual([".git", ".gitignore", "a.txt"]);
  });

  test("a folder that is no repository is an error with git's words", async () => {
    await rm(join(root, ".git"), { recursive: true });
    await expect(attempt(tasks.gitStatus, {})).rejects.toThrow("not a git repository");
  });
});

test("tasks over several workspaces find theirs by the name in their input", async () => {
  const several = defineWorkspaceTasks(workspacesByRoot());
  await writeFile(join(root, "a.txt"), "here");
  expect((await attempt(several.readFile, { path: "a.txt", workspace: root })).text).toBe("here");
  await expect(attempt(several.readFile, { path: "a.txt" })).rejects.toMatchObject({ code: "invalid_input" });
  await expect(attempt(several.readFile, { path: "a.txt", workspace: join(root, "none") })).rejects.toThrow(
    "not a directory",
  );
});

test("every task has a name of its own and a description", () => {
  const all = workspaceTasks(workspace);
  expect(new Set(all.map((task) => task.name)).size).toBe(all.length);
  expect(all.every((task) => (task.description ?? "").length > 10)).toBe(true);
});
