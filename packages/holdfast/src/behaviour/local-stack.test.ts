// The local stack as people use it: real processes, started and killed.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnSync } from "node:child_process";
import { createServer } from "node:net";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { CanaryScan } from "@holdfast/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startSession } from "../testing/coordinator-client.ts";
import { Project } from "../testing/holdfast-process.ts";
import { AGENTS, LocalStack, textOf } from "../testing/local-stack.ts";

// `script` of util-linux makes the terminal.
const onTerminal = test.skipIf(
  spawnSync("script", ["--version"], { encoding: "utf8" }).stdout?.includes("util-linux") !== true,
);

let project: Project;
let stack: LocalStack;
beforeEach(() => {
  project = new Project();
  stack = new LocalStack(project);
});
afterEach(() => stack.dispose());

/** Starts a session in the stack, and waits for its end however often the coordinator goes away. @returns its output. */
async function runInStack(agent: string, input: unknown): Promise<unknown> {
  const { url } = await stack.ready();
  const coordinator = {
    url: url!,
    adminToken: readFileSync(project.path(".local/share/holdfast/admin-token"), "utf8").trim(),
  };
  const sessionId = await startSession(coordinator, { agent, input });
  for (;;) {
    const headers = { authorization: `Bearer ${coordinator.adminToken}` };
    const answer = await fetch(`${url}/v1/sessions/${sessionId}`, { headers }).catch(() => undefined);
    const session =
      answer?.ok === true ? ((await answer.json()) as { status: string; output: unknown }) : undefined;
    if (session?.status === "completed") return session.output;
    expect(["failed", "paused", "cancelled"]).not.toContain(session?.status);
    await delay(50);
  }
}

const ledger = () =>
  textOf(project.path("ledger"))
    .trim()
    .split("\n")
    .map((line) => line.split(" "));

describe("starting and stopping", () => {
  test("the start returns when the stack is ready and says what runs, and the stop ends every process", async () => {
    const { code, stderr } = await stack.start();
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const { url, processes } = await stack.status();
    expect(stderr).toContain("the local stack runs");
    for (const text of [url!, project.folder, "stack.log", "holdfast local stop"])
      expect(stderr).toContain(text);
    expect(processes).toMatchObject([
      { component: "coordinator", status: "ready", restarts: 0 },
      { component: "runner", status: "ready", restarts: 0 },
    ]);
    expect(await runInStack("greet", "Ada")).toBe("hello Ada");
    const status = await project.run("local", "status");
    expect(status.stdout).toMatch(/runner +ready/);

    expect(await project.run("down")).toMatchObject({ code: 0 });
    expect(stack.processes()).toEqual([]);
    expect(await project.run("local", "stop")).toMatchObject({ code: 0 });
    expect(await project.run("local", "status")).toMatchObject({ code: 4 });
  });

  test("no argument, environment or log of a process shows a token, and only this user can read the files", async () => {
    await stack.start();
    for (const pid of stack.processes())
      for (const file of ["cmdline", "environ"])
        expect(textOf(`/proc/${pid}/${file}`)).not.toMatch(/hf_\w+_[0-9a-f]{8}/);
    const folder = project.path(".local/share/holdfast/local");
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    for (const name of ["stack.json", "stack.log", "stack.lock"]) {
      expect(statSync(`${folder}/${name}`).mode & 0o777).toBe(0o600);
      expect(readFileSync(`${folder}/${name}`, "latin1")).not.toMatch(/hf_\w+_[0-9a-f]{8}/);
    }
  });

  test("two starts at once have one winner, and the other says that the stack is running", async () => {
    const codes = (await Promise.all([stack.start(), stack.start()])).map(({ code, stderr }) => ({
      code,
      stderr,
    }));
    const [won, lost] = codes.toSorted((a, b) => a.code! - b.code!);
    expect(won).toMatchObject({ code: 0 });
    expect(lost).toMatchObject({ code: 6, stderr: expect.stringContaining("is running already") });
    expect((await stack.status()).status).toBe("running");
  });

  test("a port that is taken is an error that names it, and nothing stays behind", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as { port: number };
    try {
      const { code, stderr } = await project.run("up", "--agents", "agents.ts", "--port", String(port));
      expect({ code, stderr }).toEqual({ code: 7, stderr: expect.stringContaining(String(port)) });
      expect(stack.processes()).toEqual([]);
    } finally {
      other.close();
    }
  });

  test("a file of agents that does not load is an error with its place, and nothing stays behind", async () => {
    writeFileSync(project.path("agents.ts"), "export const broken = ;");
    const { code, stderr } = await stack.start();
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining("agents.ts") });
    expect(stack.processes()).toEqual([]);
  });

  test("the log keeps the lines of each component apart", async () => {
    await stack.start();
    const { stdout } = await project.run("local", "logs", "-c", "runner");
    expect(stdout).toContain("waiting for runs");
    expect(stdout).not.toMatch(/ (coordinator|supervisor) /);
    const [line] = (await project.run("local", "logs", "-n", "1", "--json")).stdout.trim().split("\n");
    expect(JSON.parse(line!)).toMatchObject({
      component: "supervisor",
      text: expect.stringContaining("ready on"),
    });
  });
});

describe("processes that are killed", () => {
  // Its lease has 15 s: the session ends long before, because the supervisor saw the runner die.
  test("a killed runner's session continues at the next runner without waiting for the lease", async () => {
    await stack.start();
    const running = runInStack("steps", { count: 4, ms: 400 });
    while (ledger().length < 2) await delay(10);
    const killed = await stack.kill("runner");
    const { url } = await stack.until("restarted", ({ processes }) => processes[1]?.restarts === 1);
    expect(url).toBeDefined();
    const log = (await project.run("local", "logs", "-c", "supervisor")).stdout;
    expect(log).toMatch(/the sessions of rnr_\S+ are free/);
    expect(await running).toBe(4);
    const steps = ledger();
    expect(new Set(steps.map(([, , pid]) => pid)).size).toBe(2);
    expect(steps.at(-1)![2]).not.toBe(String(killed));
  });

  test("a killed coordinator comes back on its port, and the session that runs loses no attempt", async () => {
    await stack.start();
    const running = runInStack("steps", { count: 6, ms: 300 });
    while (ledger().length < 2) await delay(10);
    const { url } = await stack.status();
    await stack.kill("coordinator");
    const { url: after } = await stack.until("restarted", ({ processes }) => processes[0]?.restarts === 1);
    expect(after).toBe(url);
    expect(await running).toBe(6);
    expect(ledger().map(([, step]) => step)).toEqual(["0", "1", "2", "3", "4", "5"]);
  });

  test("the processes of a killed supervisor end without it, and the next start continues the session", async () => {
    await stack.start();
    const running = runInStack("steps", { count: 6, ms: 300 });
    while (ledger().length < 2) await delay(10);
    const { url } = await stack.status();
    await stack.kill("supervisor");
    while (stack.processes().some((pid) => textOf(`/proc/${pid}/cmdline`).includes("--supervised")))
      await delay(20);
    const port = new URL(url!).port;
    expect(await project.run("up", "--agents", "agents.ts", "--port", port)).toMatchObject({ code: 0 });
    expect(await running).toBe(6);
    expect(new Set(ledger().map(([, step]) => step)).size).toBe(6);
  });
});

describe("new code", () => {
  test("a changed file of agents runs in new sessions, and a file that does not load keeps its last version", async () => {
    await stack.start();
    expect(await runInStack("greet", "Ada")).toBe("hello Ada");
    const first = await stack.pidOf("runner");
    writeFileSync(project.path("agents.ts"), AGENTS.replace('"hello "', '"good day, "'));
    await stack.until(
      "renewed",
      ({ processes }) =>
        processes.length === 2 && processes[1]!.status === "ready" && processes[1]!.pid !== first,
    );
    expect(await runInStack("greet", "Ada")).toBe("good day, Ada");

    writeFileSync(project.path("agents.ts"), "export const broken = ;");
    const { problem } = await stack.until("troubled", (state) => state.problem !== undefined);
    expect(problem).toContain("agents.ts");
    expect(await runInStack("greet", "Ada")).toBe("good day, Ada");
    expect((await project.run("local", "status")).stdout).toContain("the version before still runs");
    expect((await project.run("local", "logs", "-c", "supervisor")).stdout).toContain(
      "their last version stays",
    );
  });

  test("a new import that does not load is named, and its correction alone is loaded", async () => {
    await stack.start();
    writeFileSync(project.path("words.ts"), "export const word = ;");
    writeFileSync(
      project.path("agents.ts"),
      `import { word } from "./words.ts";\n${AGENTS.replace('"hello "', "word")}`,
    );
    const { problem } = await stack.until("troubled", (state) => state.problem !== undefined);
    expect(problem).toContain("words.ts");
    expect(await runInStack("greet", "Ada")).toBe("hello Ada");
    writeFileSync(project.path("words.ts"), 'export const word = "good day, ";');
    await stack.until("corrected", (state) => state.problem === undefined);
    expect(await runInStack("greet", "Ada")).toBe("good day, Ada");
  });

  test("a changed configuration is read by a new runner, and a wrong one is named and changes nothing", async () => {
    await stack.start();
    const configured = project.path(".holdfast/config.json");
    mkdirSync(project.path(".holdfast"), { recursive: true });
    writeFileSync(configured, '{ "trase": "file:traces" }');
    const { problem } = await stack.until("troubled", (state) => state.problem !== undefined);
    expect(problem).toContain(".holdfast/config.json#/trase");
    writeFileSync(configured, '{ "trace": "file:traces" }');
    await stack.until("corrected", (state) => state.problem === undefined);
    expect(await runInStack("greet", "Ada")).toBe("hello Ada");
    await project.run("local", "stop");
    expect(textOf(project.path("traces"))).toContain("session_ended");
  });

  test("a restart lets a task that runs finish in its process, and it runs once", async () => {
    await stack.start();
    const running = runInStack("steps", { count: 2, ms: 2_500 });
    while (ledger().length < 1) await delay(10);
    const before = await stack.pidOf("runner");
    expect(await project.run("local", "restart")).toMatchObject({ code: 0 });
    expect(await stack.pidOf("runner")).not.toBe(before);
    expect(await running).toBe(2);
    expect(ledger().map(([, step]) => step)).toEqual(["0", "1"]);
  });
});

describe("sessions of the stack and of the project", () => {
  test("a session is started in the stack when it has the agent, and each is found where it is", async () => {
    writeFileSync(project.path("one.ts"), ONE_AGENT);
    expect(await project.run("local", "start", "--agents", "one.ts", "--port", "0")).toMatchObject({
      code: 0,
    });
    const { url } = await stack.ready();

    const inStack = await project.run("run", "one.ts", "--input", '"Ada"', "--session", "in-stack");
    expect(inStack).toMatchObject({ code: 0, stdout: "1\n" });
    expect(inStack.stderr).toContain(`in the local stack, on ${url}`);
    const here = await project.run("run", "one.ts", "--local", "--session", "in-project");
    expect(here).toMatchObject({ code: 0, stdout: "1\n" });
    expect(here.stderr).not.toContain("stack");

    const listed = await project.run("list");
    expect(listed.stdout).toMatch(/in-project[^]*in-stack/);
    expect(listed.stderr).toContain(`in the local stack, on ${url}`);
    expect(await project.json("list")).toMatchObject([
      { sessionId: "in-project", place: project.path(".holdfast/holdfast.db") },
      { sessionId: "in-stack", place: url },
    ]);
    for (const command of ["show", "result", "resume", "logs"])
      for (const id of ["in-stack", "in-project"])
        expect([command, id, (await project.run(command, id)).code]).toEqual([command, id, 0]);
    expect((await project.run("show", "in-stack")).stderr).toContain("in the local stack");
    // A second run with an id is the same session, wherever that is.
    expect(await project.run("run", "one.ts", "--local", "--session", "in-stack")).toMatchObject({
      stdout: "1\n",
    });
    expect(await project.json("list")).toHaveLength(2);
    expect(await project.run("show", "in-nothing")).toMatchObject({ code: 4 });
  });
});

const ONE_AGENT = `
import { defineAgent } from "holdfast";
export default defineAgent({ name: "one", run: async (ctx) => ctx.run("one", async () => 1) });
`;

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
    expect(await runInStack("keyed", null)).toEqual(seen);
    await stack.kill("runner");
    await stack.until("restarted", ({ processes }) => processes[1]?.restarts === 1);
    expect(await runInStack("keyed", null)).toEqual(seen);
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

  test("a runner that dies with a secret shows it neither in the log nor in a core file", async () => {
    const scan = new CanaryScan();
    writeFileSync(project.path("agents.ts"), DYING);
    const start =
      "ulimit -c unlimited; exec holdfast up --agents agents.ts --port 0 --secret-stdin CANARY_KEY";
    const { code, stderr } = await project.shell(start, { stdin: `${scan.secret}\n` });
    expect({ code, stderr }).toMatchObject({ code: 0 });
    for (const way of ["throw", "abort"]) expect(await runInStack("dying", way)).toBe("survived");
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
  });

  const ON_TERMINAL =
    "holdfast local start --agents agents.ts --port 0; echo code=$?; stty -a | tr ' ;' '\\n\\n' | grep -xE -- '-?(echo|icanon|isig)'";

  /** The modes of a terminal that shows what is typed. */
  const RESTORED = /^isig\r?\nicanon\r?\necho\r?$/m;

  onTerminal(
    "a secret that is typed on a terminal reaches the agents, and the terminal shows stars",
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
      expect(await runInStack("keyed", null)).toEqual(seen);
    },
  );

  onTerminal(
    "Ctrl-C at the question stops the start with 130, restores the terminal and leaves nothing",
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

  test("a start without a terminal and without the secret is an error that names it, and nothing stays behind", async () => {
    writeFileSync(project.path("agents.ts"), KEYED);
    const { code, stderr } = await stack.start();
    expect({ code, stderr }).toEqual({ code: 5, stderr: expect.stringContaining("CANARY_KEY") });
    expect(stack.processes()).toEqual([]);
  });
});

test("ENV=local as a mode is a warning that names HOLDFAST_MODE, which silences it", async () => {
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

  test("the runner offers the executor under the policy, also after a restart and after its death", async () => {
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
  });

  test.each<[string, () => string[], number, string]>([
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
  ])(
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
