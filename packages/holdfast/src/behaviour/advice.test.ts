// Messages for people when a session did not succeed: facts, the place, and the next step.

import { rmSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { calledAs } from "@holdfast/terminal/frame/terminal";
import { Project } from "../testing/holdfast-process.ts";

const AGENTS: Readonly<Record<string, string>> = {
  "busy.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "busy", run: async () => { for (;;); } });
`,
  "fails.ts": `import { defineAgent, HoldfastError } from "holdfast";
export default defineAgent({ name: "fails", run: async (ctx) => {
  await ctx.run("lookup", () => {
    throw new HoldfastError("policy_denied", "no", { expected: "yes", fix: "ask nicely" });
  });
} });
`,
  "stray.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "stray", run: async (ctx) => {
  await new Promise((go) => setTimeout(go, 1));
  return ctx.run("after", () => 1);
} });
`,
  "mend.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "mend", run: async (ctx) => {
  const order = await ctx.run("take", () => ({ id: 7 }));
  return ctx.scheduleTask("ship", { order }, {});
}, tasks: [{ name: "ship", run: () => new Promise(() => {}) }] });
`,
  "parallel.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "parallel", run: async (ctx) => {
  const fetched = [1, 2].map((n) => ctx.run("fetch", () => n));
  const slow = ctx.run("slow", () => new Promise(() => {}));
  const results = await ctx.all(fetched);
  slow.cancel();
  await ctx.requestInput("Sure?", { timeoutMs: 86_400_000 });
  return results;
} });
`,
  "daemon.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "daemon", initial: () => 0, turn: async (ctx, n: number) => {
  await ctx.waitForSignal("order");
  return n === 1 ? { done: "two" } : { state: n + 1 };
} });
`,
  "forgot.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "forgot", run: async (ctx) => ({ order: { total: ctx.run("sum", () => 3) } }) });
`,
  "kept.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "kept", run: async (ctx) => {
  const paid = await ctx.run("pay", () => "paid");
  void ctx.waitForSignal("go");
  ctx.hasSignal("go");
  return paid;
} });
`,
  "clean.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "clean", run: async (ctx) => { await ctx.waitForSignal("never"); } });
`,
  "strict.ts": `import { defineAgent } from "holdfast";
const schema = { "~standard": { version: 1, vendor: "test", validate: (value: any) =>
  typeof value?.name === "string" ? { value } : { issues: [{ message: "a name is missing", path: ["name"] }] } } } as const;
export default defineAgent({ name: "strict", input: schema, run: async (_, input: any) => input.name });
`,
};

describe("telling", () => {
  let project: Project;
  beforeEach(() => {
    project = new Project({ eachAsProcess: true });
    for (const [name, text] of Object.entries(AGENTS)) writeFileSync(project.path(name), text);
  });
  afterEach(() => project.dispose());

  test(
    "L4: an agent that loops twice is parked, also in its first slice; a later resume tries again",
    { ...ofCampaign, timeout: 60_000 },
    async () => {
      for (const args of [
        ["run", "busy.ts", "--session", "b"],
        ["resume", "b"],
      ]) {
        expect(await project.run(...args)).toMatchObject({
          signal: "SIGKILL",
          stderr: expect.stringMatching(/error\[E_AGENT_BUSY\][^]*at: \S+busy\.ts:2:/),
        });
      }
      const { code, stderr } = await project.run("resume", "b");
      expect(code).toBe(1);
      expect(stderr).toContain("error[E_SESSION_PAUSED]: session b: its agent kept the process busy");
      expect(stderr).toMatch(/at: \S+busy\.ts:2:/);
      expect(stderr).toContain("correct the code, then: holdfast resume b");
      expect(await project.json("show", "b")).toMatchObject({ status: "paused", pauseReason: "poison" });
      expect((await project.run("doctor")).stdout).toContain(
        "1 paused session: holdfast list --status paused",
      );

      writeFileSync(project.path("busy.ts"), AGENTS["busy.ts"]!.replace("{ for (;;); }", '"mended"'));
      expect(await project.run("resume", "b")).toMatchObject({ code: 0, stdout: "mended\n" });
      const shown = await project.run("show", "b");
      expect(shown.stdout).not.toContain("busy without awaiting");
    },
  );

  test("an error keeps its place and its advice, in run, in show and in logs", ofCampaign, async () => {
    const { code, stderr } = await project.run("run", "fails.ts", "--session", "f");
    expect(code).toBe(12);
    expect(stderr).toMatch(/at: \S+fails\.ts:4:11\n/);
    const { stdout } = await project.run("show", "f");
    expect(stdout).toMatch(
      /policy_denied|HoldfastError: no\n +at: \S+fails\.ts:4:11\n +expected: yes\n +fix: ask nicely\n/,
    );
    expect((await project.run("logs", "f")).stdout.trimEnd().split("\n").at(-1)).toContain("failed");
  });

  test(
    "after a fault of its code the code is to be corrected first; logs end with the fault",
    ofCampaign,
    async () => {
      const { code, stderr } = await project.run("run", "stray.ts", "--session", "s");
      expect(code).toBe(1);
      expect(stderr).toMatch(/error\[E_NON_DURABLE_AWAIT\][^]*at: \S+stray\.ts:\d+:\d+\n/);
      expect(stderr).toContain("correct the code, then: holdfast resume s\n");
      // Also when the very first slice failed, a command has its id.
      expect(stderr).not.toMatch(/(?:approve|signal|resume) +(?:\n|$)/);
      expect((await project.run("show", "s")).stdout).toContain(
        "Paused\n  its agent made a mistake: correct the code\n      holdfast resume s",
      );
      expect((await project.run("logs", "--last")).stdout).toMatch(
        /paused \(agent_fault\) .*not durable[^\n]*\n$/,
      );
    },
  );

  test(
    "a divergence shows both inputs, and --accept-drift works where it is advised",
    ofCampaign,
    async () => {
      const running = project.start(["run", "mend.ts", "--session", "m"]);
      await running.says("▸ ship");
      running.kill("SIGKILL");
      await running.finished;
      const changed = AGENTS["mend.ts"]!.replace("{ order }", "{ order, fast: true }").replace(
        "new Promise(() => {})",
        '"shipped"',
      );
      writeFileSync(project.path("mend.ts"), changed);
      const { stderr } = await project.run("resume", "m");
      expect(stderr).toContain('got: task "ship" with input {"order":{"id":7},"fast":true}');
      expect(stderr).toContain('expected: task "ship" with input {"order":{"id":7}}');
      expect(stderr).toContain("resume m --accept-drift");
      writeFileSync(project.path("mend.ts"), changed.replaceAll('"ship"', '"send"'));
      const another = await project.run("resume", "m", "--accept-drift");
      expect(another.stderr).toMatch(/got: task "send"/);
      expect(another.stderr, "another task is no drift").not.toContain("--accept-drift");
      writeFileSync(project.path("mend.ts"), changed);
      expect(await project.run("resume", "m", "--accept-drift")).toMatchObject({
        code: 0,
        stdout: "shipped\n",
      });
    },
  );

  test(
    "tasks of one kind are told apart, withdrawn ones and the end of patience are shown, one task in full",
    ofCampaign,
    async () => {
      const { stderr } = await project.run("run", "parallel.ts", "--session", "p", "--park");
      expect(stderr).toMatch(/▸ fetch #0\n▸ fetch #1\n/);
      expect(stderr).toMatch(/slow #2 +withdrawn\n/);
      expect(stderr).toMatch(/\? Sure\? +\(until .* \(in (?:24 h|23 h 59 min|1440 min)[^)]*\)\)/);
      expect((await project.run("show", "p", "--task", "1")).stdout).toMatch(
        /#1 .*fetch[^]*Input\n[^]*Output\n2/,
      );
      const shown = (await project.run("show", "--last")).stdout;
      expect(shown).toMatch(/#2 .*slow +withdrawn/);
      expect(shown).toMatch(/an answer to question \d+, until .*: Sure\?/);
      expect((await project.run("show", "p", "--task", "9")).stderr).toContain("error[E_TASK_NOT_FOUND]");
      expect((await project.run("list", "--unfinished")).stdout).toContain("parallel");
      expect((await project.run("show", "--last", "p")).code).toBe(2);
    },
  );

  test("a daemon says once how it is signalled", ofCampaign, async () => {
    const running = project.start(["run", "daemon.ts", "--session", "d"]);
    await running.says('waits for signal "order"');
    running.type("hello");
    await running.says('the session does not wait for signal "input" now');
    expect(running.stderr).toContain('type {"name": "order", "payload": …}');
    await project.run("signal", "d", "order");
    await running.says(/turn 1[^]*waits for signal "order"/);
    await project.run("signal", "d", "order");
    const { stderr } = await running.finished;
    expect(stderr.match(/holdfast signal d order/g)).toHaveLength(1);
    const again = await project.run("run", "daemon.ts", "--session", "d");
    expect(again).toMatchObject({ code: 0, stdout: "two\n" });
    expect(again.stderr).toBe("session d has already ended\n");
  });

  test(
    "an outcome that is kept, and that no agent has heard, is said to be just that",
    ofCampaign,
    async () => {
      expect(await project.run("run", "kept.ts", "--session", "k")).toMatchObject({ code: 1 });
      expect((await project.run("show", "k")).stdout).toMatch(/#0 .*pay +completed \(not delivered yet\)/);
      const logs = (await project.run("logs", "k")).stdout.trimEnd().split("\n");
      expect(logs.at(-2)).toContain("pay #0  completed (not delivered yet)");
      expect(logs.at(-1)).toMatch(/paused \(agent_fault\) .*already has an open wait/);
    },
  );

  test("a forgotten await in an output is named by its path", ofCampaign, async () => {
    const { stderr } = await project.run("run", "forgot.ts");
    expect(stderr).toContain("a promise has no JSON form (at /order/total)");
  });

  test("a cancelled session is cancelled in its logs, whatever its agent threw", ofCampaign, async () => {
    const running = project.start(["run", "clean.ts", "--session", "c"]);
    await running.says("waits for");
    await project.run("cancel", "c", "--reason", "no longer needed");
    await running.finished;
    expect((await project.run("logs", "c")).stdout.trimEnd().split("\n").at(-1)).toMatch(
      /cancelled: no longer needed$/,
    );
  });

  test("a missing input is said to be missing, and how it is given", ofCampaign, async () => {
    const { code, stderr } = await project.run("run", "strict.ts");
    expect(code).toBe(2);
    expect(stderr).toContain("needs an input, and none was given");
    expect(stderr).toContain("holdfast run strict.ts --input '{…}'");
  });

  test(
    "a module of JavaScript in a project of CommonJS: the package.json that says so, and no word of Node's",
    ofCampaign,
    async () => {
      writeFileSync(project.path("package.json"), '{"type": "commonjs"}');
      writeFileSync(project.path("clean.js"), AGENTS["clean.ts"]!);
      const { code, stderr } = await project.run("run", "clean.js");
      expect(code).toBe(3);
      expect(stderr).toMatch(
        /^error\[E_AGENT_INVALID\][^]*"type": "commonjs" in \S+package\.json[^]*clean\.mjs/,
      );
      rmSync(project.path("package.json"));
    },
  );
});

test.each([
  [{ npm_command: "exec" }, "/x/node_modules/.bin/holdfast", "npx holdfast"],
  [{ PATH: "/usr/bin:/x/bin" }, "/x/bin/holdfast", "holdfast"],
  [{ PATH: "/usr/bin" }, "/x/bin/holdfast", "./bin/holdfast"],
  [{ PATH: "/x/bin" }, "/x/bin/holdfast.mjs", "node ./bin/holdfast.mjs"],
  [{ PATH: "" }, "/y/holdfast.mjs", "node /y/holdfast.mjs"],
])("called in %j as %s, commands are printed as %s", (env, file, expected) => {
  expect(calledAs(env, file, "/x")).toBe(expected);
});
