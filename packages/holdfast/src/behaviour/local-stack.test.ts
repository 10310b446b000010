// The local stack as people use it: real processes, started and killed.

import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";
import { AGENTS, LocalStack, textOf } from "../testing/local-stack.ts";

let project: Project;
let stack: LocalStack;
beforeEach(() => {
  project = new Project();
  stack = new LocalStack(project);
});
afterEach(() => stack.dispose());

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
    expect(await stack.run("greet", "Ada")).toBe("hello Ada");
    const status = await project.run("local", "status");
    expect(status.stdout).toMatch(/runner +ready/);

    expect(await project.run("down")).toMatchObject({ code: 0 });
    expect(stack.processes()).toEqual([]);
    expect(await project.run("local", "stop")).toMatchObject({ code: 0 });
    expect(await project.run("local", "status")).toMatchObject({ code: 4 });
  });

  test(
    "no argument, environment or log of a process shows a token, and only this user can read the files",
    ofCampaign,
    async () => {
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
    },
  );

  test(
    "two starts at once have one winner, and the other says that the stack is running",
    ofCampaign,
    async () => {
      const codes = (await Promise.all([stack.start(), stack.start()])).map(({ code, stderr }) => ({
        code,
        stderr,
      }));
      const [won, lost] = codes.toSorted((a, b) => a.code! - b.code!);
      expect(won).toMatchObject({ code: 0 });
      expect(lost).toMatchObject({ code: 6, stderr: expect.stringContaining("is running already") });
      expect((await stack.status()).status).toBe("running");
    },
  );

  test("a port that is taken is an error that names it, and nothing stays behind", ofCampaign, async () => {
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

  test(
    "a file of agents that does not load is an error with its place, and nothing stays behind",
    ofCampaign,
    async () => {
      writeFileSync(project.path("agents.ts"), "export const broken = ;");
      const { code, stderr } = await stack.start();
      expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining("agents.ts") });
      expect(stack.processes()).toEqual([]);
    },
  );

  test("the log keeps the lines of each component apart", ofCampaign, async () => {
    await stack.start();
    const { stdout } = await project.run("local", "logs", "-c", "runner");
    expect(stdout).toContain("waiting for runs");
    expect(stdout).not.toMatch(/ (coordinator|supervisor) /);
    const last = await project.run("local", "logs", "-c", "supervisor", "-n", "1", "--json");
    expect(JSON.parse(last.stdout)).toMatchObject({
      component: "supervisor",
      text: expect.stringContaining("ready on"),
    });
    const following = project.start(["local", "logs", "-f"]);
    for (const said of ["waiting for runs", "ready on"]) await following.says(said);
    following.kill("SIGINT");
    expect((await following.finished).code).toBe(0);
  });
});

describe("stopping while a step runs", () => {
  test("a stop lets the step end, and the next start does not repeat it", ofCampaign, async () => {
    writeFileSync(
      project.path("agents.ts"),
      AGENTS.replace("await delay(ms);", 'while (!existsSync("go")) await delay(20);').replace(
        "{ append",
        "{ existsSync, append",
      ),
    );
    await stack.start("--grace", "25s");
    const { port } = new URL((await stack.status()).url!);
    const running = stack.run("steps", { count: 2, ms: 0 });
    while (ledger().length < 1) await delay(10);
    const stop = project.start(["local", "stop"], { stdin: "" });
    await stop.says("running steps have 25.0 s to end");
    const log = async () => (await project.run("local", "logs", "-c", "runner")).stdout;
    while (!(await log()).includes("1 running step has 25.0 s to end")) await delay(20);
    writeFileSync(project.path("go"), "");
    expect(await stop.finished).toMatchObject({ code: 0 });
    expect(stack.processes()).toEqual([]);
    expect(ledger().map(([, step]) => step)).toEqual(["0"]);
    expect(await project.run("up", "--agents", "agents.ts", "--port", port)).toMatchObject({ code: 0 });
    expect(await running).toBe(2);
    expect(ledger().map(([, step]) => step)).toEqual(["0", "1"]);
  });

  test("`--grace` bounds the stop of the stack, and a second stop ends the grace", ofCampaign, async () => {
    await stack.start("--grace", "50ms");
    await stack.begin("steps", { count: 1, ms: 600_000 });
    while (ledger().length < 1) await delay(10);
    expect(await project.run("local", "stop")).toMatchObject({ code: 0 });
    await stack.start("--grace", "25s");
    while (ledger().length < 2) await delay(10);
    const first = project.start(["local", "stop"], { stdin: "" });
    await first.says("once more hands them over at once");
    expect(await project.run("local", "stop")).toMatchObject({ code: 0 });
    expect(await first.finished).toMatchObject({ code: 0 });
    const log = (await project.run("local", "logs", "-c", "runner")).stdout;
    expect(log.match(/Runner stopped/g)).toHaveLength(2);
  });
});

describe("processes that are killed", () => {
  // Its lease has 15 s: the session ends long before, because the supervisor saw the runner die.
  test("a killed runner's session continues at the next runner without waiting for the lease", async () => {
    await stack.start();
    const running = stack.run("steps", { count: 4, ms: 400 });
    while (ledger().length < 2) await delay(10);
    const killed = await stack.kill("runner");
    const { url } = await stack.until("restarted", ({ processes }) => processes[1]?.restarts === 1);
    expect(url).toBeDefined();
    const log = async () => (await project.run("local", "logs", "-c", "supervisor")).stdout;
    while (!/the sessions of rnr_\S+ are free/.test(await log())) await delay(20); // It is noted beside the restart.
    expect(await running).toBe(4);
    const steps = ledger();
    expect(new Set(steps.map(([, , pid]) => pid)).size).toBe(2);
    expect(steps.at(-1)![2]).not.toBe(String(killed));
  });

  test(
    "a killed coordinator comes back on its port, the session that runs loses no attempt, and a new run waits",
    ofCampaign,
    async () => {
      await stack.start();
      const running = stack.run("steps", { count: 6, ms: 300 });
      while (ledger().length < 2) await delay(10);
      const { url } = await stack.status();
      await stack.kill("coordinator");
      const { url: after } = await stack.until("restarted", ({ processes }) => processes[0]?.restarts === 1);
      expect(after).toBe(url);
      expect(await running).toBe(6);
      expect(ledger().map(([, step]) => step)).toEqual(["0", "1", "2", "3", "4", "5"]);

      const supervisor = await stack.pidOf("supervisor");
      process.kill(supervisor, "SIGSTOP"); // It starts nothing again meanwhile.
      await stack.kill("coordinator");
      const run = project.start(["run", "--agent", "greet", "--input", '"Ada"'], { stdin: "" });
      await run.says("the local stack does not answer: waiting for it, at most 15 s");
      process.kill(supervisor, "SIGCONT");
      expect(await run.finished).toMatchObject({ code: 0 });
    },
  );

  test("the processes of a killed supervisor end without it, and the next start continues the session", async () => {
    await stack.start();
    const running = stack.run("steps", { count: 6, ms: 300 });
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

describe("a folder that is removed", () => {
  test(
    "the stack of a removed folder ends with all processes, and the next start has the only supervisor",
    ofCampaign,
    async () => {
      await stack.start();
      expect(await stack.run("greet", "Ada")).toBe("hello Ada");
      rmSync(project.path(".local/share/holdfast/local"), { recursive: true });
      while (stack.processes().length > 0) await delay(20);
      expect(await stack.start()).toMatchObject({ code: 0 });
      const first = await stack.pidOf("supervisor");

      rmSync(project.path(".local/share/holdfast/local"), { recursive: true });
      while ((await stack.start()).code !== 0); // The old coordinator may still hold the database.
      const supervisors = () =>
        stack.processes().filter((pid) => textOf(`/proc/${pid}/cmdline`).includes("--foreground"));
      while (supervisors().includes(first)) await delay(20);
      expect(supervisors()).toEqual([await stack.pidOf("supervisor")]);
      expect(await stack.run("greet", "Bob")).toBe("hello Bob");
    },
  );
});

describe("new code", () => {
  test(
    "a changed file of agents runs in new sessions, and a file that does not load keeps its last version",
    ofCampaign,
    async () => {
      await stack.start();
      expect(await stack.run("greet", "Ada")).toBe("hello Ada");
      const first = await stack.pidOf("runner");
      writeFileSync(project.path("agents.ts"), AGENTS.replace('"hello "', '"good day, "'));
      await stack.until(
        "renewed",
        ({ processes }) =>
          processes.length === 2 && processes[1]!.status === "ready" && processes[1]!.pid !== first,
      );
      expect(await stack.run("greet", "Ada")).toBe("good day, Ada");

      writeFileSync(project.path("agents.ts"), "export const broken = ;");
      const { problem } = await stack.until("troubled", (state) => state.problem !== undefined);
      expect(problem).toContain("agents.ts");
      expect(await stack.run("greet", "Ada")).toBe("good day, Ada");
      expect((await project.run("local", "status")).stdout).toContain("the version before still runs");
      expect((await project.run("local", "logs", "-c", "supervisor")).stdout).toContain(
        "their last version stays",
      );
    },
  );

  test(
    "a new import that does not load is named, and its correction alone is loaded",
    ofCampaign,
    async () => {
      await stack.start();
      writeFileSync(project.path("words.ts"), "export const word = ;");
      writeFileSync(
        project.path("agents.ts"),
        `import { word } from "./words.ts";\n${AGENTS.replace('"hello "', "word")}`,
      );
      const { problem } = await stack.until("troubled", (state) => state.problem !== undefined);
      expect(problem).toContain("words.ts");
      expect(await stack.run("greet", "Ada")).toBe("hello Ada");
      writeFileSync(project.path("words.ts"), 'export const word = "good day, ";');
      await stack.until("corrected", (state) => state.problem === undefined);
      expect(await stack.run("greet", "Ada")).toBe("good day, Ada");
    },
  );

  test(
    "a changed configuration is read by a new runner, and a wrong one is named and changes nothing",
    ofCampaign,
    async () => {
      await stack.start();
      const configured = project.path(".holdfast/config.json");
      mkdirSync(project.path(".holdfast"), { recursive: true });
      writeFileSync(configured, '{ "trase": "file:traces" }');
      const { problem } = await stack.until("troubled", (state) => state.problem !== undefined);
      expect(problem).toContain(".holdfast/config.json#/trase");
      writeFileSync(configured, '{ "trace": "file:traces" }');
      await stack.until("corrected", (state) => state.problem === undefined);
      expect(await stack.run("greet", "Ada")).toBe("hello Ada");
      await project.run("local", "stop");
      expect(textOf(project.path("traces"))).toContain("session_ended");
    },
  );

  test("a restart lets a task that runs finish in its process, and it runs once", ofCampaign, async () => {
    await stack.start();
    const running = stack.run("steps", { count: 2, ms: 2_500 });
    while (ledger().length < 1) await delay(10);
    const before = await stack.pidOf("runner");
    expect(await project.run("local", "restart")).toMatchObject({ code: 0 });
    expect(await stack.pidOf("runner")).not.toBe(before);
    expect(await running).toBe(2);
    expect(ledger().map(([, step]) => step)).toEqual(["0", "1"]);
  });
});

describe("sessions of the stack and of the project", () => {
  test(
    "a session is started in the stack when it has the agent, and each is found where it is",
    ofCampaign,
    async () => {
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

      // A schedule of an agent that the stack has is the stack's, as a session is.
      writeFileSync(project.path("other.ts"), ONE_AGENT);
      const add = async (file: string) =>
        (await project.run("schedule", "add", "0 3 * * *", "--run", file, "--id", file)).stderr;
      expect(await add("one.ts")).toContain(`it fires while the coordinator runs: ${url}`);
      expect(await add("other.ts")).toContain("it fires while this runs");
      expect(await project.json("schedule", "list")).toMatchObject([
        { scheduleId: "other.ts", place: project.path(".holdfast/holdfast.db") },
        { scheduleId: "one.ts", place: url },
      ]);
      for (const id of ["one.ts", "other.ts"])
        expect(await project.run("schedule", "remove", id)).toMatchObject({ code: 0 });
      expect(await project.json("schedule", "list")).toEqual([]);

      // The page is the stack's, too.
      expect(await project.json("ui")).toMatchObject({ url: `${url}/ui/` });

      // A stack that does not run is named, so that its sessions do not seem lost.
      expect(await project.run("local", "stop")).toMatchObject({ code: 0 });
      const start = "run `holdfast local start` for those of the local stack, which is stopped";
      const stopped = await project.run("list");
      expect([stopped.stdout.includes("in-stack"), stopped.stderr]).toEqual([
        false,
        expect.stringContaining(start),
      ]);
      for (const command of ["show", "resume", "cancel"]) {
        const { code, stderr } = await project.run(command, "in-stack");
        expect([command, code, stderr]).toEqual([command, 4, expect.stringContaining(start)]);
      }
      // A place that somebody names has no sessions of a stack.
      const named = await project.run("list", "--db", ".holdfast/holdfast.db");
      expect(named.stderr).not.toContain("local stack");
    },
  );
});

const ONE_AGENT = `
import { defineAgent } from "holdfast";
export default defineAgent({ name: "one", run: async (ctx) => ctx.run("one", async () => 1) });
`;
