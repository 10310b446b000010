import { readFileSync } from "node:fs";
import { mkdtemp, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";

import type { Execution } from "./execute.ts";
import { openWorkspace, type Workspace } from "./workspace.ts";

const CANARY = "canary-5b1f0c";

let root: string;
let workspace: Workspace;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "execute-"));
  workspace = await openWorkspace({
    root,
    env: { DECLARED: "yes" },
    inherit: {
      ...process.env,
      ANTHROPIC_API_KEY: CANARY,
      OPENAI_API_KEY: CANARY,
      AWS_SECRET_ACCESS_KEY: CANARY,
      GIT_DIR: CANARY,
    },
    limits: { killGraceMs: 200 },
  });
});

afterEach(async () => {
  await workspace.dispose();
  await rm(root, { recursive: true, force: true });
});

describe("how a command ends is told exactly", () => {
  test.each([
    ["exit 0", { type: "exit", exitCode: 0 }],
    ["exit 3", { type: "exit", exitCode: 3 }],
    ["kill -TERM $$", { type: "signal", signal: "SIGTERM" }],
    ["kill -KILL $$", { type: "signal", signal: "SIGKILL" }],
  ])("%s", async (command, end) => {
    expect((await workspace.execute(command)).end).toEqual(end);
  });

  test("a program that is not there", async () => {
    const { end } = await workspace.execute(["no-such-program-here", "x"]);
    expect(end).toMatchObject({ type: "spawn_error", code: "ENOENT" });
  });

  test("arguments that are too long for the system", async () => {
    const { end } = await workspace.execute(["true", "x".repeat(3_000_000)]);
    expect(end).toMatchObject({ type: "spawn_error", code: "E2BIG" });
  });

  test("its time was over", ofCampaign, async () => {
    // In which it begins, however busy the machine is.
    const { end, stdout, isTreeGone } = await workspace.execute("echo begun; exec sleep 1000", {
      timeoutMs: 1_500,
    });
    expect({ end, stdout, isTreeGone }).toEqual({
      end: { type: "timeout", timeoutMs: 1_500 },
      stdout: "begun\n",
      isTreeGone: true,
    });
  });

  test("it was aborted, before it began or while it ran", async () => {
    const before = await workspace.execute("touch made", { signal: AbortSignal.abort() });
    expect(before.end).toEqual({ type: "aborted" });
    await expect(readFile(join(root, "made"))).rejects.toThrow("ENOENT");

    const controller = new AbortController();
    const during = await workspace.execute("echo begun; exec sleep 1000", {
      signal: controller.signal,
      onOutput: () => controller.abort(),
    });
    expect(during.end).toEqual({ type: "aborted" });
  });

  test("a command that ignores SIGTERM is killed", async () => {
    const { end, isTreeGone } = await workspace.execute("trap '' TERM; while :; do sleep 0.01; done", {
      timeoutMs: 100,
    });
    expect({ end: end.type, isTreeGone }).toEqual({ end: "timeout", isTreeGone: true });
  });
});

describe("nothing of a command is left afterwards", () => {
  /**
   * At least one try must be in time. A busy machine may delay a single try, while a wait in the code
   * delays all.
   */
  async function withinSecond(command: string): Promise<Execution> {
    for (let left = 10; ; left--) {
      const done = await workspace.execute(command);
      if (done.durationMs < 1_000 || left === 0) return done;
    }
  }

  test("a grandchild that keeps the pipe open delays the result by less than a second, and is gone", async () => {
    const { end, stdout, durationMs, isTreeGone } = await withinSecond("sleep 1000 & echo $!");
    expect(end).toEqual({ type: "exit", exitCode: 0 });
    expect(durationMs).toBeLessThan(1_000);
    expect(isTreeGone).toBe(true);
    expect(isRunning(Number(stdout))).toBe(false);
  });

  test("a child process that also ignores SIGTERM is ended", async () => {
    const { stdout, durationMs, isTreeGone } = await withinSecond(
      `(trap '' TERM; while :; do sleep 0.01; done) & echo $!`,
    );
    expect(durationMs).toBeLessThan(1_000);
    expect(isTreeGone).toBe(true);
    expect(isRunning(Number(stdout))).toBe(false);
  });

  // Only /proc shows the environment of other processes.
  test.runIf(process.platform === "linux")(
    "a process that left its process group is found by its environment",
    async () => {
      // No `exec`, and nothing last that a shell would do as one: while a process changes its program, its
      // environment is empty.
      const script = `setsid sh -c 'echo $$ > pid; while :; do sleep 1; done' > /dev/null 2>&1 < /dev/null & while ! test -s pid; do sleep 0.01; done`;
      const { end, isTreeGone } = await workspace.execute(script);
      expect({ end, isTreeGone }).toEqual({ end: { type: "exit", exitCode: 0 }, isTreeGone: true });
      expect(isRunning(Number(await readFile(join(root, "pid"), "utf8")))).toBe(false);
    },
  );

  // Without /proc the group is all there is to find what a command has started.
  test("a command leads a process group of its own", async () => {
    const { stdout } = await workspace.execute(
      "ps -o pgid= -p $$ 2> /dev/null || cut -d ' ' -f 5 /proc/$$/stat; echo $$",
    );
    const [group, pid] = stdout.trim().split(/\s+/);
    expect(group).toBe(pid);
  });

  test("disposing ends what runs", async () => {
    const begun = Promise.withResolvers<void>();
    const running = workspace.execute("echo $$; exec sleep 1000", { onOutput: () => begun.resolve() });
    await begun.promise;
    await workspace.dispose();
    const { end, stdout } = await running;
    expect(end).toEqual({ type: "aborted" });
    expect(isRunning(Number(stdout))).toBe(false);
    await expect(workspace.execute("true")).rejects.toMatchObject({ code: "usage" });
  });

  // The process that started it was killed, so nobody waited for it. The next attempt must not run beside it.
  // Only /proc shows it.
  test.runIf(process.platform === "linux")(
    "processes that an earlier attempt left running are found by its tag and ended",
    async () => {
      const other = await openWorkspace({ root });
      const begun = Promise.withResolvers<void>();
      // No `exec`: while a process changes its program, its environment is empty for a moment.
      const lost = other.execute("echo $$; sleep 1000; true", {
        tag: "task-1",
        onOutput: () => begun.resolve(),
      });
      const unrelated = new AbortController();
      const untouched = other.execute("exec sleep 1000", { tag: "task-2", signal: unrelated.signal });
      // Two projects may have sessions of one id, and so tasks of one key.
      const project = await openWorkspace({ root: join(root, "..") });
      const ofProject = project.execute("exec sleep 1000", { tag: "task-1", signal: unrelated.signal });
      await begun.promise;
      await workspace.endTagged("task-1");
      expect((await lost).end.type).toBe("signal");
      unrelated.abort();
      expect((await untouched).end).toEqual({ type: "aborted" });
      expect((await ofProject).end).toEqual({ type: "aborted" });
    },
  );
});

describe("output", () => {
  test("both pipes are drained at once", async () => {
    const { stdout, stderr } = await workspace.execute(
      "head -c 300000 /dev/zero | tr '\\0' e >&2; head -c 300000 /dev/zero | tr '\\0' o",
    );
    expect([stdout.length, stderr.length]).toEqual([300_000, 300_000]);
  });

  test("it is kept up to the limit, its beginning and its end, with a mark where it was cut", async () => {
    const { stdout, isCut } = await workspace.execute("seq 1 100000", { outputBytes: 400 });
    expect(isCut).toBe(true);
    expect(stdout.startsWith("1\n2\n")).toBe(true);
    expect(stdout.endsWith("99999\n100000\n")).toBe(true);
    expect(stdout).toMatch(/\n\[\.\.\. \d+ bytes of output left out \.\.\.\]\n/);
    expect(stdout.length).toBeLessThan(300);
  });

  test("a command that never stops writing does not fill the memory", async () => {
    const { end, stdout } = await workspace.execute("yes", { outputBytes: 1_000, timeoutMs: 300 });
    expect(end.type).toBe("timeout");
    expect(stdout.length).toBeLessThan(700);
  });

  test("a stream is handed on while the command runs", async () => {
    const texts: string[] = [];
    await workspace.execute("printf 'gr\\303'; printf '\\274n' >&1; printf '!' >&2", {
      onOutput: (stream, text) => texts.push(`${stream}:${text}`),
    });
    expect(texts.join("")).toContain("stderr:!");
    expect(
      texts
        .filter((text) => text.startsWith("stdout"))
        .join("")
        .replaceAll("stdout:", ""),
    ).toBe("grün");
  });

  test("input reaches the command, also when it does not read it", async () => {
    expect((await workspace.execute(["cat"], { input: "hello" })).stdout).toBe("hello");
    expect((await workspace.execute(["true"], { input: "x".repeat(1_000_000) })).end).toEqual({
      type: "exit",
      exitCode: 0,
    });
    expect((await workspace.execute(["cat"])).stdout).toBe("");
  });
});

describe("the environment of a command", () => {
  test("the environment is an allow-list: no key of ours reaches it", async () => {
    const { stdout } = await workspace.execute(["env"], { env: { EXTRA: "more" } });
    const names = stdout
      .trim()
      .split("\n")
      .map((line) => line.slice(0, line.indexOf("=")));
    expect(stdout).not.toContain(CANARY);
    const known = ["PATH", "HOME", "LANG", "TERM", "TMPDIR", "DECLARED", "EXTRA", "HOLDFAST_EXECUTION"];
    expect(names.filter((name) => !known.includes(name))).toEqual([]);
    expect(names).toEqual(expect.arrayContaining(["PATH", "DECLARED", "EXTRA", "HOLDFAST_EXECUTION"]));
  });

  test("arguments are not seen by a shell", async () => {
    const text = "$(touch made); `touch made` && touch made '\"*";
    expect((await workspace.execute(["printf", "%s", text])).stdout).toBe(text);
    await expect(readFile(join(root, "made"))).rejects.toThrow("ENOENT");
  });

  test("the working directory is inside the workspace", async () => {
    await mkdir(join(root, "sub"));
    await symlink(tmpdir(), join(root, "out"));
    expect((await workspace.execute(["pwd"], { cwd: "sub" })).stdout.trim()).toBe(
      join(workspace.root, "sub"),
    );
    await expect(workspace.execute(["pwd"], { cwd: "out" })).rejects.toMatchObject({ code: "policy_denied" });
    await expect(workspace.execute(["pwd"], { cwd: ".." })).rejects.toMatchObject({ code: "policy_denied" });
    // A missing directory is otherwise reported as a missing program.
    await expect(workspace.execute(["pwd"], { cwd: "none" })).rejects.toMatchObject({
      code: "file_not_found",
    });
  });

  test.each([
    ["nothing", ""],
    ["blanks", "  "],
    ["no arguments", []],
    ["NUL in the line", "echo a\0b"],
    ["NUL in an argument", ["echo", "a\0b"]],
  ])("%s is refused", async (_what, command) => {
    await expect(workspace.execute(command)).rejects.toMatchObject({ code: "invalid_input" });
  });

  test("a time-out that cannot be is refused, and so is a variable", async () => {
    await expect(workspace.execute("true", { timeoutMs: 0 })).rejects.toMatchObject({
      code: "invalid_input",
    });
    await expect(workspace.execute("true", { timeoutMs: Number.NaN })).rejects.toMatchObject({
      code: "invalid_input",
    });
    await expect(workspace.execute("true", { timeoutMs: 1e9 })).rejects.toMatchObject({
      code: "invalid_input",
    });
    await expect(workspace.execute("true", { env: { "A=B": "x" } })).rejects.toMatchObject({
      code: "invalid_input",
    });
  });
});

test("the description says that commands are not isolated", async () => {
  expect(workspace.describe()).toContain("NOT isolated");
  expect(workspace.describe()).toContain(workspace.root);
});

test("parallel changes of one file are all kept", async () => {
  await writeFile(join(root, "counter"), "");
  await Promise.all(Array.from({ length: 20 }, () => workspace.updateFile("counter", (text) => `${text}x`)));
  expect((await workspace.readFile("counter")).text).toBe("x".repeat(20));
});

/** A zombie does not run: it is gone, and only its parent has not asked yet. */
function isRunning(pid: number): boolean {
  expect(pid).toBeGreaterThan(1);
  try {
    process.kill(pid, 0);
    return process.platform !== "linux" || !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false; // It may go between the two.
  }
}

test("when the process ends, its commands end with it", ofCampaign, async () => {
  const source = new URL("./workspace.ts", import.meta.url).href;
  const script = `
    const { openWorkspace } = await import(${JSON.stringify(source)});
    const workspace = await openWorkspace({ root: ${JSON.stringify(root)} });
    await workspace.execute("echo $$; exec sleep 1000", {
      onOutput: (_stream, text) => { process.stdout.write(text); process.exit(0); },
    });`;
  const { stdout } = await workspace.execute([process.execPath, "--input-type=module", "--eval", script]);
  // Killed by then, and dead as soon as it has its turn.
  await vi.waitUntil(() => !isRunning(Number(stdout)), 10_000);
});
