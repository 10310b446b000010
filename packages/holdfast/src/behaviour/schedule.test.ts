// Schedules from the command line: real processes, real seconds, real kills.
//
// The tests campaign kills 12 times. `npm test` leaves the kills out, and a run of this file alone kills 3
// times.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { isNote } from "@holdfast/core";
import { openSqliteReader } from "@holdfast/storage/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { Project, type HoldfastProcess } from "../testing/holdfast-process.ts";

const KILLS = isCampaign ? 12 : 3;

const AGENTS: Readonly<Record<string, string>> = {
  "echo.ts": `export default async (ctx, input) => ctx.run("look", () => input ?? "nothing");\n`,
  "desk.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "desk", run: async (ctx) => [await ctx.waitForSignal("go"), await ctx.waitForSignal("go")] });
`,
  "front.ts": `import { defineAgent, local } from "holdfast";
import desk from "./desk.ts";
export default defineAgent({ name: "front", agents: [desk], run: async (ctx) => {
  await ctx.waitForSignal("go");
  return ctx.handoffToAgent(local(desk), undefined, { completion: "immediate" });
} });
`,
  "work.ts": `import { defineAgent } from "holdfast";
import { appendFileSync } from "node:fs";
export default defineAgent({ name: "work", run: async (ctx, { ledger }) => {
  await ctx.run("first", (task) => appendFileSync(ledger, task.idempotencyKey + "\\n"));
  await ctx.sleep(200);
  await ctx.run("second", (task) => appendFileSync(ledger, task.idempotencyKey + "\\n"));
  return "done";
} });
`,
  "typed.ts": `import { defineAgent } from "holdfast";
const number = { "~standard": { version: 1, vendor: "test", validate: (value) =>
  typeof value === "number" ? { value } : { issues: [{ message: "no number" }] } } };
export default defineAgent({ name: "typed", input: number, run: async (ctx, input) => input });
`,
  "broken.ts": `throw new Error("no way");\n`,
};

/** The words of a command line, with a cron line in the place of @. */
function words(text: string, cron: string): string[] {
  return text.split(" ").map((word) => (word === "@" ? cron : word));
}

interface ListedSession {
  readonly sessionId: string;
  readonly status: string;
  readonly output?: unknown;
}

describe("holdfast schedule", () => {
  let project: Project;
  beforeEach(() => {
    project = new Project();
    for (const [name, text] of Object.entries(AGENTS)) writeFileSync(project.path(name), text);
  });
  afterEach(() => project.dispose());

  const sessions = () => project.json<ListedSession[]>("list", "--limit", "10000");

  test("add, list and remove: what is said is what is stored", async () => {
    const added = await project.run(
      ...words(`schedule add @ --run echo.ts --input {"a":1} --tz Asia/Tokyo --id morning`, "30 9 * * 1-5"),
    );
    expect(added).toMatchObject({ code: 0, stdout: "morning\n" });
    expect(added.stderr).toContain("starts echo");
    const stored = {
      scheduleId: "morning",
      cron: "30 9 * * 1-5",
      timeZone: "Asia/Tokyo",
      start: { agent: { name: "echo", version: "1", file: project.path("echo.ts") }, input: { a: 1 } },
    };
    const [listed] = await project.json<{ nextAt: number }[]>("schedule", "list");
    expect(listed).toMatchObject(stored);
    expect(new Date(listed!.nextAt).toISOString()).toMatch(/T00:30:00.000Z$/);
    expect((await project.run("schedule", "list")).stdout).toMatch(
      /^morning +30 9 \* \* 1-5 +2\d{3}-\d\d-\d\d 09:30:00 Asia\/Tokyo/m,
    );
    const { code, stderr } = await project.run("schedule", "pause", "morning");
    expect([code, stderr]).toEqual([0, expect.stringContaining("holdfast schedule unpause morning")]);
    await project.run(
      ...words(`schedule add @ --run echo.ts --input {"a":1} --tz Asia/Tokyo --id morning`, "30 9 * * 1-5"),
    );
    expect(await project.json("schedule", "list")).toMatchObject([{ isPaused: true }]);
    expect((await project.run("schedule", "list")).stdout).toMatch(/morning +30 9 \* \* 1-5 +paused/);
    expect(await project.json("schedule", "unpause", "morning")).toMatchObject({ nextAt: listed!.nextAt });
    expect((await project.run("schedule", "pause", "none")).code).toBe(4);
    expect(await project.json("schedule", "remove", "morning")).toEqual({
      scheduleId: "morning",
      status: "removed",
    });
    expect(await project.json("schedule", "list")).toEqual([]);
    expect(await project.run("schedule", "remove", "morning")).toMatchObject({
      code: 4,
      stderr: expect.stringContaining("E_SCHEDULE_NOT_FOUND"),
    });
  });

  test("add --budget: what it starts may spend so much, and list says so", async () => {
    const args = words(
      "schedule add @ --run echo.ts --id paid --budget 0.50usd,2000tokens --ttl 10m",
      "0 3 * * *",
    );
    expect((await project.run(...args)).stderr).toContain(
      "starts echo, each within cost $0.50, tokens 2,000, time 10 min 0 s",
    );
    const budget = { maxCostMicroUsd: 500_000, maxTokens: 2_000, ttlMs: 600_000 };
    expect(await project.json("schedule", "list")).toMatchObject([{ start: { budget } }]);
    expect(
      await project.run("schedule", "add", "* * * * *", "--signal", "x", "go", "--budget", "1usd"),
    ).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("exclude each other"),
    });
  });

  test("a session of an agent file gets the limits of the file, or those of its schedule", async () => {
    const limits = "holdfast:\n  budget: { turns: 3 }\n  ttl: 10m\n";
    writeFileSync(project.path("night.md"), `---\nname: night\ndescription: Works.\n${limits}---\nWork.\n`);
    const env = { HOLDFAST_SCRIPTED_MODEL_URL: "http://127.0.0.1:1" };
    const add = (...options: string[]) =>
      project.finish(["schedule", "add", "0 3 * * *", "--run", "night.md", "--input", '"go"', ...options], {
        env,
      });
    const { code, stderr } = await add("--id", "a");
    expect(code, stderr).toBe(0);
    expect((await add("--id", "b", "--budget", "5turns")).code).toBe(0);
    expect(await project.json("schedule", "list")).toMatchObject([
      { scheduleId: "a", start: { budget: { maxTurns: 3, ttlMs: 600_000 } } },
      { scheduleId: "b", start: { budget: { maxTurns: 5, ttlMs: 600_000 } } },
    ]);
  });

  test.each([
    [["61 * * * *", "--run", "echo.ts"], 2, "minute: 61"],
    [["* * * * *", "--run", "echo.ts", "--tz", "Mars"], 2, "at: timeZone"],
    [["* * * * *", "--run", "none.ts", "--tz", "Mars"], 2, "at: timeZone"],
    [["* * * * *", "--run", "echo.ts", "--id", "a b"], 2, "at: id"],
    [["* * * * *", "--run", "echo.ts", "--input", "{"], 2, "E_NOT_JSON"],
    [["* * * * *", "--run", "typed.ts", "--input", '"text"'], 2, "E_INVALID_INPUT"],
    [["* * * * *", "--run", "gone.ts"], 2, "E_FILE_NOT_FOUND"],
    [["* * * * *", "--run", "broken.ts"], 3, "no way"],
    [["*", "*", "*", "*", "*", "--run", "echo.ts"], 2, "in quotes"],
    [["* * * * *"], 2, "--run FILE or --signal ID"],
    [["* * * * *", "--signal", "desk"], 2, "name is missing"],
    [["* * * * *", "--signal", "desk", "answer:1"], 2, "name of a signal"],
    [["* * * * *", "--signal", "desk", "go", "{"], 2, "E_NOT_JSON"],
    [["* * * * *", "--signal", "desk", "go"], 4, "E_SESSION_NOT_FOUND"],
    [["* * * * *", "--run", "echo.ts", "--signal", "desk"], 2, "exclude each other"],
    [["* * * * *", "--run", "echo.ts", "--trace", "stdout"], 2, "no option --trace"],
    [["* * * * *", "--run", "echo.ts", "--budget", "much"], 2, "--budget"],
    [["* * * * *", "--run", "echo.ts", "--ttl", "soon"], 2, "--ttl"],
    [[], 2, "cron line is missing"],
  ])("add %j is refused with exit code %i, in a paragraph, and leaves nothing", async (args, exit, said) => {
    const { code, stdout, stderr } = await project.run("schedule", "add", ...args);
    expect({ code, stdout }).toEqual({ code: exit, stdout: "" });
    expect(stderr).toContain(said);
    expect(stderr).not.toMatch(/^\s+at .*:\d+:\d+\)?$/m);
    expect(existsSync(project.path(".holdfast"))).toBe(false);
  });

  test.each([
    [[], "add, list, pause, unpause, remove or run?"],
    [["frobnicate"], "`frobnicate` is no action of `holdfast schedule`"],
    [["run", "now"], "one argument too many"],
    [["run", "--id", "a"], "no option --id"],
    [["remove"], "id is missing"],
  ])("schedule %j is refused", async (args, said) => {
    expect(await project.run("schedule", ...args)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(said),
    });
  });

  test("two agents of one name from two files are refused: one would be run for the other", async () => {
    expect((await project.run("schedule", "add", "0 3 * * *", "--run", "echo.ts")).code).toBe(0);
    writeFileSync(project.path("echo.mjs"), AGENTS["echo.ts"]!);
    expect(await project.run("schedule", "add", "0 4 * * *", "--run", "echo.mjs")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("agent of the same name from another file"),
    });
  });

  test("run fires what was there and what is added meanwhile, tells what is next, and Ctrl-C ends it", async () => {
    await project.run("schedule", "add", "* * * * * *", "--run", "echo.ts", "--input", "7", "--id", "tick");
    const running = project.start(["schedule", "run"]);
    await running.says(/tick started tick-\d{8}T\d{6}Z, next at /);
    await running.says(/tick-\d{8}T\d{6}Z completed/);
    await project.run("schedule", "add", "* * * * * *", "--run", "echo.ts", "--id", "late");
    await running.says(/late started late-/);
    running.kill("SIGINT");
    const { code, stdout, stderr } = await running.finished;
    expect({ code, stdout }).toEqual({ code: 130, stdout: "" });
    expect(stderr).toContain("1 schedule; the next is tick");
    expect(stderr).toContain("stopped; schedules stay");
    const ended = (await sessions()).filter(({ status }) => status === "completed");
    expect(ended.find(({ sessionId }) => sessionId.startsWith("tick"))).toMatchObject({ output: 7 });
  });

  test("a session that is signalled is run, although nobody was running it", ofCampaign, async () => {
    expect((await project.run("run", "desk.ts", "--session", "desk", "--park")).code).toBe(0);
    await project.run("schedule", "add", "* * * * * *", "--signal", "desk", "go", '{"n":1}', "--id", "poke");
    const running = project.start(["schedule", "run", "--json"]);
    await running.says('"type":"session_ended","sessionId":"desk","status":"completed"');
    expect(await project.json("result", "desk")).toMatchObject({ output: [{ n: 1 }, { n: 1 }] });
    running.kill("SIGTERM");
    expect((await running.finished).code).toBe(143);
    expect(await project.run("schedule", "add", "* * * * *", "--signal", "desk", "go")).toMatchObject({
      code: 6,
    });
  });

  test(
    "a schedule for a session that has ended reports that, and the command that removes the schedule",
    ofCampaign,
    async () => {
      await project.run("run", "desk.ts", "--session", "desk", "--park");
      await project.run("schedule", "add", "* * * * * *", "--signal", "desk", "go", "--id", "poke");
      await project.run("cancel", "desk", "--hard");
      const running = project.start(["schedule", "run"]);
      await running.says(
        "poke sent nothing: desk has ended. Remove the schedule with `holdfast schedule remove poke`",
      );
      running.kill("SIGINT");
      await running.finished;
    },
  );

  test("a session that handed over counts as unfinished while its successor runs", ofCampaign, async () => {
    await project.run("run", "front.ts", "--session", "front", "--park");
    await project.run("schedule", "add", "* * * * * *", "--signal", "front", "go", "1", "--id", "poke");
    const running = project.start(["schedule", "run"]);
    await running.says("poke sent nothing: front has ended");
    running.kill("SIGINT");
    const { stderr } = await running.finished;
    expect(stderr.split("poke signalled front").length - 1).toBeGreaterThanOrEqual(3);
    expect(await project.json("show", "front-1")).toMatchObject({
      agent: { name: "desk" },
      status: "completed",
    });
  });

  test(
    "an agent that cannot be loaded holds up no other, and its session waits for it",
    ofCampaign,
    async () => {
      writeFileSync(project.path("breaks.ts"), AGENTS["echo.ts"]!);
      await project.run("schedule", "add", "* * * * * *", "--run", "breaks.ts", "--id", "breaks");
      await project.run("schedule", "add", "* * * * * *", "--run", "echo.ts", "--id", "tick");
      writeFileSync(project.path("breaks.ts"), AGENTS["broken.ts"]!);
      const running = project.start(["schedule", "run"]);
      await running.says("no way");
      await running.says(/tick-\w+ completed/);
      await running.says(/breaks started/);
      running.kill("SIGINT");
      await running.finished;
      expect((await sessions()).find(({ sessionId }) => sessionId.startsWith("breaks"))).toMatchObject({
        status: "submitted",
      });
    },
  );

  test(
    `${KILLS} kills of two processes that fire the same: each time starts one session, and each is run to its end`,
    { ...ofCampaign, timeout: 60_000 + KILLS * 10_000 },
    async () => {
      const ledger = project.path("ledger.txt");
      await project.run(
        ...words(`schedule add @ --run work.ts --id tick --input {"ledger":"${ledger}"}`, "* * * * * *"),
      );
      const all: HoldfastProcess[] = [];
      const begin = (): HoldfastProcess => {
        const started = project.start(["schedule", "run", "--json"]);
        all.push(started);
        return started;
      };
      const running = [begin(), begin()];
      // Whichever owns the database is the quicker one, at every time.
      await Promise.race(running.map((one) => one.says("fired")));
      // More of them where the machine is too busy for many times meanwhile.
      for (let kills = 0; kills < KILLS || firedBy(all).length <= KILLS / 3; kills++) {
        await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 1_200));
        const victim = Math.random() < 0.5 ? 0 : 1;
        running[victim]!.kill("SIGKILL");
        await running[victim]!.finished;
        running[victim] = begin();
      }
      running[0]!.kill("SIGKILL");
      await running[0]!.finished;
      // The remaining process finds the others' sessions once it knows the agents, which come with the
      // schedule.
      await running[1]!.says("fired");
      expect(await project.run("schedule", "remove", "tick")).toMatchObject({ code: 0 });
      let listed = await sessions();
      while (listed.some(({ status }) => status !== "completed")) listed = await sessions();
      running[1]!.kill("SIGINT");
      expect((await running[1]!.finished).code).toBe(130);

      const fired = firedBy(all);
      expect(new Set(fired).size, "a time was fired twice").toBe(fired.length);
      const ids = listed.map(({ sessionId }) => sessionId);
      expect(ids).toEqual(expect.arrayContaining(fired));
      expect(ids.length).toBeGreaterThan(KILLS / 3);

      // One line per attempt, always under the task's key: as many as the journals know of.
      const lines = readFileSync(ledger, "utf8").trimEnd().split("\n");
      const reader = openSqliteReader({ path: project.path(".holdfast/holdfast.db") });
      let lost = 0;
      for (const id of ids) {
        const journal = await reader.journal(id, 0, 1_000);
        lost += journal.filter((record) => isNote(record) && record.type === "attempt_lost").length;
      }
      reader.close();
      expect(new Set(lines).size, "two tasks of each session").toBe(2 * ids.length);
      expect(lines.length).toBeLessThanOrEqual(2 * ids.length + lost);
    },
  );
});

/** The sessions that these processes said they started. */
function firedBy(processes: readonly HoldfastProcess[]): string[] {
  return processes.flatMap(({ stdout }) =>
    stdout
      .split("\n")
      .filter((line) => line.startsWith('{"type":"fired"') && line.endsWith("}"))
      .map((line) => (JSON.parse(line) as { sessionId: string }).sessionId),
  );
}
