// Trees of sessions, budgets and pauses, as a user meets them in a terminal.

import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

const AGENTS: Readonly<Record<string, string>> = {
  "family.ts": `import { defineAgent, defineTask, local } from "holdfast";
import { appendFileSync, existsSync } from "node:fs";
const work = defineTask({
  name: "work",
  cost: () => ({ maxTokens: 100, maxCostMicroUsd: 1_000 }),
  run: async (n: number, task) => {
    appendFileSync("work.txt", n + "\\n");
    while (n % 2 === 1 && !existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 10));
    task.reportUsage({ model: "m", inputTokens: 60, outputTokens: 40, costMicroUsd: 1_000 });
    return n * 10;
  },
});
const child = defineAgent({ name: "child", tasks: [work], run: async (ctx, n: number) => {
  const first = await ctx.scheduleTask(work, n * 2);
  ctx.reportProgress({ done: 1 });
  return first + await ctx.scheduleTask(work, n * 2 + 1);
} });
export default defineAgent({ name: "parent", agents: [child], run: async (ctx) =>
  Promise.all([1, 2].map((n) => ctx.waitForChild(ctx.spawnAgent(local(child), n)))) });
`,
  "left.ts": `import { defineAgent, local } from "holdfast";
const heir = defineAgent({ name: "heir", run: async (ctx) => ctx.waitForSignal("go") });
export default defineAgent({ name: "parent", agents: [heir], run: async (ctx) => {
  ctx.spawnAgent(local(heir), undefined, { onParentEnd: "leave" });
  ctx.spawnAgent(local(heir));
  return "over";
} });
`,
  "over.ts": `import { defineAgent, local } from "holdfast";
const heir = defineAgent({ name: "heir", run: async (_, n: number) => n + 1 });
export default defineAgent({ name: "first", agents: [heir],
  run: async (ctx) => ctx.handoffToAgent(local(heir), 1, { completion: "immediate" }) });
`,
  "waits-below.ts": `import { defineAgent, local } from "holdfast";
const child = defineAgent({ name: "child", run: async (ctx) => {
  ctx.signalParent("ready");
  return ctx.waitForSignal("go");
} });
export default defineAgent({ name: "waits-below", agents: [child], run: async (ctx) => {
  const one = ctx.spawnAgent(local(child));
  const { type } = await ctx.waitForChildEvent(one);
  await ctx.waitForSignal("person");
  ctx.signalChild(one, "go", type);
  return ctx.waitForChild(one);
} });
`,
  "steps.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "steps", run: async (ctx) => {
  for (const name of ["a", "b", "c", "d"]) await ctx.run(name, () => name);
} });
`,
  "own.ts": `import { defineAgent, local } from "holdfast";
const steps = defineAgent({ name: "steps", run: async (ctx) => {
  for (const name of ["a", "b"]) await ctx.run(name, () => name);
} });
export default defineAgent({ name: "own", agents: [steps], run: async (ctx) =>
  ctx.waitForChild(ctx.spawnAgent(local(steps), null, { budget: { maxSteps: 1 } })) });
`,
  "wait.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "wait", run: (ctx) => ctx.waitForSignal("go") });
`,
};

/** The commands that a person is told to type, in their order. */
function commandsIn(stderr: string): string[] {
  return [...stderr.matchAll(/(?:continue with|and then): (.*)$/gm)].map(([, command]) => command!);
}

describe("in a terminal", () => {
  let project: Project;
  beforeEach(() => {
    project = new Project();
    for (const [name, text] of Object.entries(AGENTS)) writeFileSync(project.path(name), text);
  });
  afterEach(() => project.dispose());

  const release = (): void => writeFileSync(project.path("go"), "");
  const statusOf = async (id: string) => (await project.json<{ status: string }>("show", id)).status;

  test(
    "a root session's successor is named, and continues with the command that is shown",
    ofCampaign,
    async () => {
      const { stdout, stderr } = await project.run("run", "over.ts", "--session", "o");
      expect(stdout).toContain('"handedOffTo": "o-0"');
      expect(stderr).toMatch(/it was handed over to o-0, which continues in its place: .* show o-0/);
      expect(await statusOf("o-0")).toBe("submitted");
      const resumed = await project.run("resume", "o-0");
      expect(resumed).toMatchObject({ code: 0, stdout: "2\n" });
    },
  );

  test(
    "a minimal session that asked for a child is shown as stored in full, with the reason, and hears it later",
    ofCampaign,
    async () => {
      await project.run("run", "waits-below.ts", "--persistence", "minimal", "--session", "m", "--park");
      const shown = await project.run("show", "m");
      expect(shown.stdout).toContain("full: it was minimal until it asked for child m-0");
      expect(await project.json("show", "m")).toMatchObject({ persistedBy: "it asked for child m-0" });
      const logs = await project.run("logs", "m");
      expect(logs.stdout).toContain("m-0  (the session was minimal; from here on it is stored in full)");
      await project.run("signal", "m", "person");
      expect(await project.run("resume", "m")).toMatchObject({ code: 0, stdout: "signal\n" });
    },
  );

  describe("a family", () => {
    test(
      "killed and resumed, it goes on as one tree and repeats nothing that was finished",
      ofCampaign,
      async () => {
        const killed = project.start(["run", "family.ts", "--session", "f"]);
        while ((await project.run("list")).stdout.split('{"done":1}').length < 3);
        killed.kill("SIGKILL");
        await killed.finished;
        const { stdout: listed } = await project.run("list");
        expect(listed).toMatch(/\nf {2,}waiting.*the end of child f-0; the end of child f-2/);
        expect(listed).toMatch(/\n {2}f-0 {2,}interrupted .*\n {2}f-2 {2,}interrupted/);
        release();

        const { code, stdout } = await project.run("resume", "f");

        expect({ code, output: JSON.parse(stdout) as unknown }).toEqual({ code: 0, output: [50, 90] });
        const { tasks } = await project.json<{ tasks: object[] }>("show", "f-2");
        expect(tasks).toMatchObject([{ attempts: 1 }, { attempts: 2 }]);
        const shown = await project.run("show", "f");
        expect(shown.stdout).toMatch(
          /Children \(2\)\n {2}f-0 {2}completed {2}child {2}1 {2}\{"done":1\}\n {2}f-2/,
        );
        expect((await project.run("show", "f-0")).stdout).toMatch(/parent +f \(cancelled with it\)/);
      },
    );

    test(
      "a budget that its children use up ends `run` with exit code 9, and a raise and a resume go on",
      ofCampaign,
      async () => {
        release();
        const { code, stderr } = await project.run(
          "run",
          "family.ts",
          "--session",
          "f",
          "--budget",
          "250tokens",
        );
        expect(code).toBe(9);
        expect(stderr).toContain("session f cannot continue: f-0 below it is paused");
        expect(stderr).toMatch(
          /child f-0 \(child\) is paused \(budget_exceeded\): .*\n {2}holdfast budget f --raise 600tokens\n/,
        );
        expect(stderr).toMatch(
          /continue with: holdfast budget f --raise 600tokens\nand then: holdfast resume f\n$/,
        );
        const shown = await project.run("show", "f-0");
        expect(shown.stdout).toContain("the budget of f has too little left: 200 of 250 tokens spent");
        expect(shown.stdout).toContain("holdfast budget f --raise 600tokens");
        const above = await project.run("show", "f");
        expect(above.stdout).toMatch(
          /Paused below it\n {2}f-0: .*\n {6}holdfast budget f --raise 600tokens\n {2}f-2: .*\n {2}and then: holdfast resume f\n/,
        );
        const { stdout: examined } = await project.run("doctor");
        expect(examined).toMatch(
          /paused \(budget_exceeded\) {2}child\n {6}holdfast budget f --raise 600tokens\n {6}then: holdfast resume f\n/,
        );
        expect(examined).not.toContain("resume f-0");
        expect(await project.run("resume", "f")).toMatchObject({ code: 9 }); // Nothing was raised.

        const raised = await project.finish(["budget", "f", "--raise", "1000tokens", "--json"], {
          stdin: "",
        });

        expect(JSON.parse(raised.stdout)).toMatchObject({
          accounts: [{ payer: "f", limits: [{ max: 1_000 }] }],
          resume: "holdfast resume f",
        });
        expect(await project.run("resume", "f")).toMatchObject({
          code: 0,
          stdout: expect.stringContaining("90"),
        });
        expect((await project.run("trace", "f")).stdout).toMatch(
          /\n2 sessions below it\n {2}f-0 {2}child {2}completed .*120\+80 tokens.*\n {2}f-2 .*\nin all 240\+160 tokens/,
        );
        expect((await project.run("budget", "f-0")).stdout).toMatch(
          /^f\n.*\n {2}tokens {2}1,000 +400 +0 +600\n$/,
        );
      },
    );

    test.each(
      sampled([
        ["a single session", "steps.ts", "2steps", []],
        ["a single session in another database", "steps.ts", "2steps", ["--db", "an other.db"]],
        ["a parent whose child has used it up", "family.ts", "250tokens", []],
        ["a parent whose child has spent its money", "family.ts", "0.003usd", ["--db", "an other.db"]],
        ["a child with a budget of its own", "own.ts", "9steps", []],
      ]),
    )(
      "the commands that a used-up budget of %s prints work as they are",
      async (_whose, file, budget, options) => {
        release();
        const started = ["run", file, "--session", "f", "--budget", budget, ...options];
        const { code, stderr } = await project.run(...started);
        expect(code).toBe(9);
        const [raise, ...others] = commandsIn(stderr);
        expect(raise).toMatch(/^holdfast budget \S+ --raise /);
        const raised = await project.shell(raise!);
        expect(raised).toMatchObject({ code: 0 });
        const calls = [...others, ...commandsIn(raised.stderr)];
        expect(calls.length).toBeGreaterThan(0);
        for (const command of new Set(calls)) expect(await project.shell(command)).toMatchObject({ code: 0 });
        expect(
          await project.shell(`holdfast result f ${options.map((part) => `'${part}'`).join(" ")}`),
        ).toMatchObject({ code: 0 });
      },
    );

    test(
      "a raise of a child without a budget is answered with the same raise of the session that pays",
      ofCampaign,
      async () => {
        release();
        await project.run("run", "family.ts", "--session", "f", "--budget", "250tokens");
        const { code, stderr } = await project.run("budget", "f-0", "--raise", "1000tokens");
        expect(code).toBe(2);
        const [, command] = /session f, which pays for it: (.*)/.exec(stderr) ?? [];
        expect(await project.shell(command!)).toMatchObject({ code: 0 });
        expect(await project.run("resume", "f")).toMatchObject({ code: 0 });
      },
    );

    test("an ephemeral session that has used up its budget is gone, and no command is printed that would need it", async () => {
      const { code, stderr } = await project.run("run", "steps.ts", "--ephemeral", "--budget", "2steps");
      expect(code).toBe(9);
      expect(stderr).toContain(
        "fix: run it again with a higher --budget; the session was ephemeral and is lost",
      );
      expect(commandsIn(stderr)).toEqual([]);
    });

    test(
      "a child that somebody pauses ends `run`, as a pause of the session itself does",
      ofCampaign,
      async () => {
        const running = project.start(["run", "family.ts", "--session", "f"]);
        while ((await project.run("list")).stdout.split('{"done":1}').length < 3);
        await project.run("pause", "f-0");
        release();
        expect(await running.finished).toMatchObject({
          code: 1,
          stderr: expect.stringMatching(
            /continue with: holdfast unpause f-0\nand then: holdfast resume f\n$/,
          ),
        });
        expect((await project.run("unpause", "f-0")).stderr).toContain("holdfast resume f");
        expect(await project.run("resume", "f")).toMatchObject({ code: 0 });
      },
    );

    test.each(sampled([[[]], [["--park"]]]))(
      "a child with a mistake ends `run`, and the commands it names go on with all %j",
      async (options) => {
        const agents = (fixed: string): string => `import { defineAgent, local } from "holdfast";
          const child = defineAgent({ name: "child", run: async (ctx) => ${fixed} });
          export default defineAgent({ name: "parent", agents: [child], run: async (ctx) =>
            ctx.waitForChild(ctx.spawnAgent(local(child))) });`;
        writeFileSync(project.path("wrong.ts"), agents("ctx.waitForSignal(7)"));
        const { code, stderr } = await project.run("run", "wrong.ts", "--session", "f", ...options);
        expect({ code, stderr }).toMatchObject({
          code: 1,
          stderr: expect.stringMatching(
            /correct the code, then: holdfast resume f-0\nand then: holdfast resume f\n$/,
          ),
        });
        writeFileSync(project.path("wrong.ts"), agents('ctx.run("say", () => "right")'));
        expect(await project.run("resume", "f-0")).toMatchObject({ code: 0 });
        expect(await project.run("resume", "f")).toMatchObject({ code: 0, stdout: "right\n" });
      },
    );

    test("only the child whose code is wrong is said to need other code", async () => {
      writeFileSync(
        project.path("both.ts"),
        `import { defineAgent, local } from "holdfast";
        const wrong = defineAgent({ name: "wrong", run: async (ctx) => ctx.waitForSignal(7) });
        const steps = async (ctx) => { for (const name of ["a", "b"]) await ctx.run(name, () => name); };
        const short = defineAgent({ name: "short", run: steps });
        export default defineAgent({ name: "parent", agents: [short, wrong], run: async (ctx) =>
          Promise.all([ctx.spawnAgent(local(short), null, { budget: { maxSteps: 1 } }), ctx.spawnAgent(local(wrong))]
            .map((child) => ctx.waitForChild(child))) });`,
      );
      const { stderr } = await project.run("run", "both.ts", "--session", "f");
      expect(stderr).toContain("\ncontinue with: holdfast budget f-0 --raise 4steps\n");
      expect(stderr).toContain(
        "\ncorrect the code, then: holdfast resume f-1\nand then: holdfast resume f\n",
      );
    });

    test(
      "a question or a signal that a child waits for keeps `run`, and parks it with exit code 0, as its own do",
      ofCampaign,
      async () => {
        writeFileSync(
          project.path("asks.ts"),
          `import { defineAgent, local } from "holdfast";
         const child = defineAgent({ name: "child", run: async (ctx) => ctx.requestInput("Go on?") });
         const other = defineAgent({ name: "other", run: async (ctx) => ctx.waitForSignal("go") });
         export default defineAgent({ name: "parent", agents: [child, other], run: async (ctx) => ctx.all([
           ctx.waitForChild(ctx.spawnAgent(local(child))), ctx.waitForChild(ctx.spawnAgent(local(other)))]) });`,
        );
        expect(await project.run("run", "asks.ts", "--session", "f", "--park")).toMatchObject({ code: 0 });
        const running = project.start(["resume", "f"]);
        await running.says("child f-0 (child) asks");
        await project.run("pause", "f-2");
        await running.says("child f-2 (other) is paused"); // A person may still answer the other one here.
        await project.run("approve", "f-0");
        expect(await running.finished).toMatchObject({
          code: 1,
          stderr: expect.stringContaining("holdfast unpause f-2"),
        });
      },
    );

    test("a cancel covers it, and says so", ofCampaign, async () => {
      const running = project.start(["run", "family.ts", "--session", "f"]);
      while ((await project.run("list")).stdout.split('{"done":1}').length < 3);
      const { stderr } = await project.run("cancel", "f", "--reason", "enough");
      expect(stderr).toContain("and all below it");
      release();
      expect(await running.finished).toMatchObject({ code: 6, stderr: expect.stringContaining("enough") });
      expect(await statusOf("f-0")).toBe("cancelled");
      expect((await project.run("list")).stdout).toContain("its parent ended or was cancelled");
    });

    test("a child that outlives its parent is resumed alone, from its parent's file", async () => {
      expect(await project.run("run", "left.ts", "--session", "f")).toMatchObject({
        code: 0,
        stdout: "over\n",
      });
      expect([await statusOf("f-0"), await statusOf("f-1")]).toEqual(["waiting", "cancelled"]);
      await project.run("signal", "f-0", "go", "7");
      expect(await project.run("resume", "f-0")).toMatchObject({ code: 0, stdout: "7\n" });
    });
  });

  test("parked, a session says its id on standard output, alone; ended, its output", async () => {
    const parked = await project.run("run", "wait.ts", "--park");
    const id = parked.stdout.trimEnd();
    expect(parked).toMatchObject({ code: 0, stdout: `${id}\n`, stderr: expect.stringContaining("parked") });
    expect((await project.json("show", id))["sessionId"]).toBe(id);
    const again = await project.finish(["resume", id, "--park", "--json"], { stdin: "" });
    expect(
      again.stdout
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => typeof JSON.parse(line)),
    ).not.toContain("string");
    await project.run("signal", id, "go", "7");
    expect(await project.run("resume", id, "--park")).toMatchObject({ code: 0, stdout: "7\n" });
  });

  test("a session goes through standard output and standard input as it goes through a file", async () => {
    await project.run("run", "wait.ts", "--session", "w", "--park");
    const { code, stdout } = await project.run("export", "w", "-o", "-");
    expect(code).toBe(0);
    await project.run("export", "w", "-o", "w.ndjson");
    expect(stdout).toBe(readFileSync(project.path("w.ndjson"), "utf8"));
    const taken = await project.finish(["import", "-", "--session", "w2"], { stdin: stdout });
    expect(taken).toMatchObject({ code: 0, stdout: "w2\n" });
    await project.run("signal", "w2", "go", "8");
    expect(await project.run("resume", "w2")).toMatchObject({ code: 0, stdout: "8\n" });
    expect(await project.run("export", "w", "-o", "-", "--json")).toMatchObject({ code: 2, stdout: "" });
  });

  test(
    "told to park, it stays while a child is at work, and leaves when all of them wait",
    ofCampaign,
    async () => {
      writeFileSync(
        project.path("slow.ts"),
        `import { defineAgent, local } from "holdfast";
       const slow = defineAgent({ name: "slow", run: async (ctx) => {
         const done = await ctx.run("work", () => new Promise((resolve) => setTimeout(() => resolve("done"), 1_500)));
         await ctx.waitForSignal("go");
         return done;
       } });
       export default defineAgent({ name: "parent", agents: [slow],
         run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(slow))) });`,
      );
      const parked = await project.run("run", "slow.ts", "--session", "s", "--park");
      expect(parked).toMatchObject({ code: 0, stderr: expect.stringContaining("parked") });
      expect(await statusOf("s-0")).toBe("waiting");
      await project.run("signal", "s-0", "go");
      expect(await project.run("resume", "s", "--park")).toMatchObject({ code: 0, stdout: "done\n" });
    },
  );

  describe("limits", () => {
    test("a cost budget ends `run` with exit code 9 and the command that raises it", async () => {
      writeFileSync(project.path("go"), "");
      const parked = await project.run(
        "run",
        "family.ts",
        "--session",
        "f",
        "--budget",
        "0.001usd,9steps",
        "--park",
      );
      expect(parked.code).toBe(9); // The parent waits; its child is paused.
      writeFileSync(
        project.path("solo.ts"),
        AGENTS["family.ts"]!.replace("export default", "const parent =") + "export default child;\n",
      );
      const { code, stderr } = await project.run(
        "run",
        "solo.ts",
        "--session",
        "s",
        "--input",
        "1",
        "--budget",
        "0.0019usd",
      );
      expect(code).toBe(9);
      expect(stderr).toContain("100 tokens, $0.001");
      expect(stderr).toContain("spent: cost $0.001 of $0.0019");
      expect(stderr).toContain("holdfast budget s --raise");

      const lowered = await project.run("budget", "s", "--raise", "0.0001usd");
      expect(lowered).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("would lower the limit of cost"),
      });
      const raised = await project.run("budget", "s", "--raise", "1usd");
      expect(raised.stderr).toContain("holdfast resume s");
      expect(await project.run("resume", "s")).toMatchObject({ code: 0, stdout: "50\n" });
    });

    test("a session without a budget says so, and cannot be raised", async () => {
      await project.run("run", "wait.ts", "--session", "w", "--park");
      expect(await project.run("budget", "w")).toMatchObject({
        code: 0,
        stderr: expect.stringContaining("no budget"),
      });
      const raised = await project.run("budget", "w", "--raise", "1usd");
      expect(raised).toMatchObject({ code: 2, stderr: expect.stringContaining("no budget of its own") });
    });

    test(
      "an agent whose turns never end is warned about once, and refused where bounds are strict",
      ofCampaign,
      async () => {
        writeFileSync(
          project.path("daemon.ts"),
          `import { defineAgent } from "holdfast";
         export default defineAgent({ name: "daemon", initial: () => 0, turn: async (ctx, n: number) => {
           await ctx.waitForSignal("go");
           return { state: n + 1 };
         } });`,
        );
        const strict = await project.run("run", "daemon.ts", "--session", "d", "--strict-bounds", "--park");
        expect(strict).toMatchObject({ code: 2, stderr: expect.stringContaining("may take turns for ever") });
        const warned = await project.run("run", "daemon.ts", "--session", "d", "--park");
        expect([warned.code, warned.stderr.split("may take turns for ever").length]).toEqual([0, 2]);
        const resumed = await project.run("resume", "d", "--park");
        expect(resumed.stderr).not.toContain("may take turns for ever");
        const bounded = ["run", "daemon.ts", "--strict-bounds", "--ttl", "1h", "--park"];
        expect((await project.run(...bounded)).code).toBe(0);

        const add = ["schedule", "add", "0 3 * * *", "--run", "daemon.ts"];
        const refused = { code: 2, stderr: expect.stringContaining("may take turns for ever") };
        expect(await project.run(...add, "--strict-bounds")).toMatchObject(refused);
        writeFileSync(project.path(".holdfast/config.json"), '{ "strictBounds": true }');
        expect(await project.run("run", "daemon.ts", "--park")).toMatchObject(refused);
        expect(await project.run("resume", "d", "--park")).toMatchObject({ code: 0 });
        expect(await project.run(...add)).toMatchObject(refused);
        expect(await project.run(...add, "--ttl", "1h")).toMatchObject({ code: 0 });
        // The form of an agent that runners have is not known here.
        const byName = ["run", "--agent", "any", "--url", "http://127.0.0.1:1"];
        expect(await project.finish(byName, { env: { HOLDFAST_TOKEN: "any" } })).toMatchObject({
          code: 2,
          stderr: expect.stringContaining('agent "any" may take turns for ever'),
        });
      },
    );

    test("--ttl cancels it, and the cause is told", async () => {
      const ended = await project.run("run", "wait.ts", "--session", "w", "--ttl", "300ms");
      expect(ended.code).toBe(6);
      const { cancel } = await project.json<{ cancel: object }>("show", "w");
      expect(cancel).toMatchObject({ cause: "deadline" });
    });

    test.each([
      [["--budget", "5"], "has no unit"],
      [["--budget", "5eur"], 'no unit "eur"'],
      [["--ttl", "soon"], "no time span"],
    ])("%j is refused before anything is written", async (options, message) => {
      const { code, stderr } = await project.run("run", "wait.ts", "--session", "w", ...options);
      expect({ code, isReported: stderr.includes(message) }).toEqual({ code: 2, isReported: true });
      expect(await project.json("list")).toEqual([]);
    });
  });

  describe("a pause", () => {
    test("a paused session reacts to no arrival until it is unpaused", async () => {
      await project.run("run", "wait.ts", "--session", "w", "--park");
      expect((await project.run("pause", "w")).stderr).toContain("holdfast unpause w");
      await project.run("signal", "w", "go", "7");
      const shown = await project.run("show", "w");
      expect(shown.stdout).toMatch(/Paused\n {2}somebody paused it\n +holdfast unpause w/);
      const { resume, status } = await project.json("unpause", "w");
      expect({ resume, status }).toEqual({ resume: "holdfast resume w", status: "working" });
      expect(await project.run("resume", "w")).toMatchObject({ code: 0, stdout: "7\n" });
      expect(await project.run("pause", "w")).toMatchObject({ code: 6 });
      expect(await project.run("unpause", "w")).toMatchObject({ code: 6 });
    });

    test("over, what it asked can be answered at once", async () => {
      writeFileSync(
        project.path("ask.ts"),
        `import { defineAgent } from "holdfast";
         export default defineAgent({ name: "ask", run: async (ctx) => ctx.requestInput({ prompt: "Go on?" }) });`,
      );
      await project.run("run", "ask.ts", "--session", "a", "--park");
      await project.run("pause", "a");
      await project.run("unpause", "a");
      expect(await project.run("approve", "a")).toMatchObject({ code: 0 });
      expect(JSON.parse((await project.run("resume", "a")).stdout)).toEqual({ approved: true });
    });

    test("a pause ends `run` in the terminal that runs the session", ofCampaign, async () => {
      const running = project.start(["run", "wait.ts", "--session", "w"]);
      await running.says("waits for");
      await project.run("pause", "w");
      expect(await running.finished).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("holdfast unpause w"),
      });
    });
  });
});
