// The options of a start of the local stack: secrets, an executor, a policy and the mode.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CanaryScan } from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";
import { LocalStack, textOf } from "../testing/local-stack.ts";

// `script` of util-linux makes the terminal.
const onTerminal = test.skipIf(
  !spawnSync("script", ["--version"], { encoding: "utf8" }).stdout?.includes("util-linux"),
);

let project: Project;
let stack: LocalStack;
beforeEach(() => {
  project = new Project({ eachAsProcess: true });
  stack = new LocalStack(project);
});
afterEach(() => stack.dispose());

describe("secrets of the stack", () => {
  const CANARY = "canary-7f3b1c9d2e5a4860";
  const KEYED = `
import { execFileSync } from "node:child_process";
import { defineAgent, defineTask } from "holdfast";
const look = defineTask({ name: "look", secrets: ["CANARY_KEY"], run: (_, task) => ({
  chars: task.secret("CANARY_KEY").length,
  shell: execFileSync("sh", ["-c", "env; cat /proc/$PPID/environ"], { encoding: "latin1" }).includes("canary-"),
}) });
export const keyed = defineAgent({ name: "keyed", secrets: ["CANARY_KEY"], tasks: [look], run: (ctx) => ctx.scheduleTask(look, null) });
`;
  const DYING = `
import { defineAgent, defineTask } from "holdfast";
const die = defineTask({ name: "die", secrets: ["CANARY_KEY"], run: async (way, task) => {
  const key = task.secret("CANARY_KEY");
  console.log("printed", key);
  process.stdout.write(Buffer.from("written " + key + "\\n"));
  if (task.attempt > 1) return "survived";
  if (way === "abort") process.abort();
  setTimeout(() => { throw new Error("thrown " + key); });
  return new Promise(() => {});
} });
export const dying = defineAgent({ name: "dying", secrets: ["CANARY_KEY"], tasks: [die], run: (ctx, way) => ctx.scheduleTask(die, way) });
`;
  const seen = { chars: CANARY.length, shell: false };

  test("a secret is asked for once, survives a restart of its runner, and is in no file, argument or environment", async () => {
    writeFileSync(project.path("agents.ts"), KEYED);
    const start = ["up", "--agents", "agents.ts", "--port", "0", "--secret-stdin", "CANARY_KEY"];
    const { code, stderr } = await project.start(start, { stdin: `${CANARY}\n` }).finished;
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(await stack.run("keyed", null)).toEqual(seen);
    await stack.kill("runner");
    await stack.until("restarted", ({ processes }) => processes[1]?.restarts === 1);
    expect(await stack.run("keyed", null)).toEqual(seen);
    for (const pid of stack.processes())
      for (const file of ["cmdline", "environ"]) expect(textOf(`/proc/${pid}/${file}`)).not.toContain(CANARY);
    await project.run("local", "stop");
    for (const file of readdirSync(project.folder, { recursive: true, withFileTypes: true }))
      if (file.isFile())
        expect([file.name, textOf(`${file.parentPath}/${file.name}`).includes(CANARY)]).toEqual([
          file.name,
          false,
        ]);
  });

  test(
    "a runner that dies with a secret shows it neither in the log nor in a core file",
    ofCampaign,
    async () => {
      const scan = new CanaryScan();
      writeFileSync(project.path("agents.ts"), DYING);
      const start =
        "ulimit -c unlimited; exec holdfast up --agents agents.ts --port 0 --secret-stdin CANARY_KEY";
      const { code, stderr } = await project.shell(start, { stdin: `${scan.secret}\n` });
      expect({ code, stderr }).toMatchObject({ code: 0 });
      for (const way of ["throw", "abort"]) expect(await stack.run("dying", way)).toBe("survived");
      const log = textOf(project.path(".local/share/holdfast/local/stack.log"));
      for (const text of [
        "printed [secret]",
        "written [secret]",
        "nobody caught Error: thrown [secret]",
        "SIGABRT",
      ])
        expect(log).toContain(text);
      expect(textOf(`/proc/${await stack.pidOf("runner")}/coredump_filter`)).toMatch(/^0+$/m);
      scan.searchFolder(project.folder);
      expect(scan.found).toEqual([]);
    },
  );

  const ON_TERMINAL =
    "holdfast local start --agents agents.ts --port 0; echo code=$?; stty -a | tr ' ;' '\\n\\n' | grep -xE -- '-?(echo|icanon|isig)'";

  /** The modes of a terminal that shows what is typed. */
  const RESTORED = /^isig\r?\nicanon\r?\necho\r?$/m;

  onTerminal(
    "a secret that is typed on a terminal reaches the agents, and the terminal shows stars",
    ofCampaign,
    async () => {
      writeFileSync(project.path("agents.ts"), KEYED);
      const started = project.shellOnTerminal(ON_TERMINAL);
      await started.says("Enter CANARY_KEY: ");
      started.child.stdin.write(`${CANARY.slice(0, 9)}x\u007f`);
      started.child.stdin.write(`${CANARY.slice(9)}\r`);
      const { stdout } = await started.finished;
      expect(stdout).toContain("code=0");
      expect(stdout).toMatch(RESTORED);
      expect(stdout).toContain(`Enter CANARY_KEY: ${"*".repeat(10)}\b \b${"*".repeat(CANARY.length - 9)}`);
      for (const text of [stdout, textOf(project.path(".local/share/holdfast/local/stack.log"))])
        expect(text).not.toContain(CANARY.slice(0, 9));
      expect(await stack.run("keyed", null)).toEqual(seen);
    },
  );

  onTerminal(
    "Ctrl-C at the question stops the start with 130, restores the terminal and leaves nothing",
    ofCampaign,
    async () => {
      writeFileSync(project.path("agents.ts"), KEYED);
      const started = project.shellOnTerminal(ON_TERMINAL);
      await started.says("Enter CANARY_KEY: ");
      started.child.stdin.write(CANARY.slice(0, 12));
      await started.says("*".repeat(12));
      started.child.stdin.write("\u0003");
      const { stdout } = await started.finished;
      expect(stdout).toContain("code=130");
      expect(stdout).toMatch(RESTORED);
      expect(stdout).not.toContain(CANARY.slice(0, 9));
      while (stack.processes().length > 0) await delay(20); // The supervisor ends after its command.
      expect(await project.run("local", "status")).toMatchObject({ code: 4 });
    },
  );

  test(
    "a start without a terminal and without the secret is an error that names it, and nothing stays behind",
    ofCampaign,
    async () => {
      writeFileSync(project.path("agents.ts"), KEYED);
      const { code, stderr } = await stack.start();
      expect({ code, stderr }).toEqual({ code: 5, stderr: expect.stringContaining("CANARY_KEY") });
      expect(stack.processes()).toEqual([]);
    },
  );
});

test("the sandbox is the default of the mode unless the environment names one", ofCampaign, async () => {
  const get = ["config", "get", "sandbox", "--origin"];
  expect((await project.run(...get)).stdout).toBe("filesystem  (default: mode local)\n");
  const cloud = project.start(get, { env: { HOLDFAST_MODE: "cloud" }, stdin: "" });
  expect((await cloud.finished).stdout).toBe("daytona  (default: mode cloud)\n");
  const named = project.start(get, { env: { SANDBOX_TYPE: "virtual" }, stdin: "" });
  expect((await named.finished).stdout).toBe("virtual  (environment: SANDBOX_TYPE)\n");
});

test("the value of mode is that of MODE, and a MODE that is none is noted beside the default", async () => {
  const get = (MODE: string) =>
    project.finish(["config", "get", "mode", "--origin"], { env: { MODE }, stdin: "" });
  expect(await get("cloud")).toMatchObject({ stdout: "cloud  (environment: MODE)\n", stderr: "" });
  expect(await get("production")).toMatchObject({
    stdout: "local  (default)\n",
    stderr: expect.stringContaining("set HOLDFAST_MODE"),
  });
});

test("an unknown MODE is an error also of an action whose mode decides nothing", async () => {
  const status = project.start(["local", "status"], { env: { MODE: "bogus" }, stdin: "" });
  const { code, stderr } = await status.finished;
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("set HOLDFAST_MODE") });
});

test("ENV=local as a mode is a warning that names HOLDFAST_MODE, which silences it", ofCampaign, async () => {
  const start = (env: Record<string, string>) =>
    project.start(["local", "start"], { env: { ENV: "local", ...env }, stdin: "" }).finished;
  expect((await start({})).stderr).toContain("set HOLDFAST_MODE=local");
  expect((await start({ HOLDFAST_MODE: "local" })).stderr).not.toContain("HOLDFAST_MODE");
});

describe("an executor and a policy of the stack", () => {
  let folder: string;
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "holdfast-policy-"))));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Agents may change what is in the project, so a policy lies outside. */
  const policyFile = (content: string): string => {
    const file = join(folder, "policy.json");
    writeFileSync(file, content, { mode: 0o600 });
    return file;
  };

  test(
    "the runner offers the executor under the policy, also after a restart and after its death",
    ofCampaign,
    async () => {
      const policy = policyFile('{"executors":["test-executor"],"concurrency":3}');
      const { code, stderr } = await stack.start("-x", "test-executor", "--policy", policy);
      expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining("test-executor") });
      expect(await stack.status()).toMatchObject({
        executor: "test-executor",
        policy,
        offers: ["greet", "steps", "test-executor"],
      });
      expect((await project.run("local", "status")).stdout).toContain(policy);
      const turn = async (sessionId: string): Promise<void> => {
        const input = '{"prompt":"result 7"}';
        const args = ["run", "--agent", "test-executor", "--input", input, "--session", sessionId, "--park"];
        expect(await project.run(...args)).toMatchObject({ code: 0 });
        const { maxRuns } = (await project.json<{ maxRuns: number }[] & object>("runners", "list"))[0]!;
        expect(maxRuns).toBe(3);
      };
      await turn("first");
      expect(await project.run("local", "restart")).toMatchObject({ code: 0 });
      await stack.ready();
      await turn("second");
      await stack.kill("runner");
      await stack.until("restarted", ({ processes }) => processes[1]?.restarts === 1);
      await stack.ready();
      await turn("third");
    },
  );

  test.each<[string, () => string[], number, string]>(
    sampled([
      ["a policy that is not there", () => ["--policy", "none.json"], 2, "none.json"],
      ["a policy that is not JSON", () => ["--policy", policyFile("{")], 3, "policy.json"],
      [
        "a policy with a wrong value",
        () => ["--policy", policyFile('{"concurrency":"many"}')],
        3,
        "concurrency",
      ],
      ["a policy in the project", () => ["--policy", "agents.ts"], 3, "lies in the project"],
      [
        "a policy that forbids the executor",
        () => ["-x", "test-executor", "--policy", policyFile('{"executors":["other"]}')],
        12,
        "test-executor",
      ],
      ["an executor that does not exist", () => ["-x", "nobody"], 4, "nobody"],
      ["an executor at a path that is not there", () => ["-e", "./none"], 2, "./none"],
      ["an executor by its name and by a path", () => ["-x", "a", "-e", "b"], 2, "--executor-path"],
      ["a data folder that cannot be made", () => [], 10, "/proc/none"],
    ]),
  )(
    "a start with %s is an error that names it, and nothing stays behind",
    async (what, words, exit, text) => {
      const env = what.startsWith("a data folder") ? { XDG_DATA_HOME: "/proc/none" } : {};
      const args = ["up", "--agents", "agents.ts", "--port", "0", ...words()];
      const { code, stderr } = await project.start(args, { stdin: "", env }).finished;
      expect({ code, stderr }).toEqual({ code: exit, stderr: expect.stringContaining(text) });
      expect(stderr).not.toMatch(/^ +at .*:\d+:\d+\)?$/m);
      expect(stack.processes()).toEqual([]);
    },
  );
});
