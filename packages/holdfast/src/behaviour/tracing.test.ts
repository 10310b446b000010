// `trace`, `replay` and `--trace` as a user calls them: through the launcher, as processes.

import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

const AGENT = (asks: string): string => `import { defineAgent } from "holdfast";
import { appendFileSync } from "node:fs";
export default defineAgent({ name: "steps", initial: () => ({ n: 0 }), turn: async (ctx, { n }) => {
  ctx.appendEntry({ role: "user", content: "round " + n });
  await ctx.run("${asks}", (task) => {
    appendFileSync("ran.txt", (task.traceparent ?? "none") + "\\n");
    task.reportUsage({ model: "acme/big", inputTokens: 3, outputTokens: 4, costMicroUsd: 5 });
    return "secret words";
  });
  if (n === 0) return { state: { n: 1 } };
  await ctx.waitForSignal("go");
  return { done: n };
} });
`;

let project: Project;
beforeEach(() => {
  project = new Project();
  mkdirSync(project.path(".holdfast"));
  writeFileSync(project.path("steps.ts"), AGENT("model"));
  writeFileSync(project.path("changed.ts"), AGENT("other"));
});
afterEach(() => project.dispose());

const park = (...args: string[]) => project.run("run", "steps.ts", "--session", "s1", "--park", ...args);
const events = (path: string) =>
  readFileSync(project.path(path), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { type: string }).type);

test(
  "logs, trace and replay of a session that stores nothing of what it did say so",
  ofCampaign,
  async () => {
    await park("--persistence", "minimal");
    const asked = await Promise.all(["logs", "trace", "replay"].map((command) => project.run(command, "s1")));
    for (const { code, stderr } of asked) {
      expect(code).toBe(0);
      expect(stderr).toContain("session s1 is minimal: only its status is stored");
    }
    await project.run("run", "steps.ts", "--session", "s2", "--park");
    expect((await project.run("trace", "s2")).stderr).not.toContain("is stored");
  },
);

describe("--trace", () => {
  test("a session is traced to the terminal, a file and a database at once, privately and without users' data", async () => {
    const { code, stdout } = await park(
      "--trace",
      "stdout",
      "--trace=file:t.ndjson",
      "--trace",
      "sqlite:t.db",
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\d\d:\d\d:\d\d\.\d{3} s1 session started: steps 1\n/);
    expect(stdout).toContain("s1 model used acme/big: 3 tokens in, 4 out, 0.000005 USD\n");
    const types = events("t.ndjson");
    expect(types[0]).toBe("session_started");
    expect(types.at(-1)).toBe("session_released");
    const database = new DatabaseSync(project.path("t.db"), { readOnly: true });
    const rows = database.prepare("SELECT type FROM trace_event ORDER BY id").all() as { type: string }[];
    database.close();
    expect(rows.map(({ type }) => type)).toEqual(types);
    expect(readFileSync(project.path("t.ndjson"), "utf8")).not.toContain("secret words");
    for (const file of ["t.ndjson", "t.db"]) expect(statSync(project.path(file)).mode & 0o777).toBe(0o600);
  });

  test(
    "from the configuration, from its folder on; the command line stands instead of it",
    ofCampaign,
    async () => {
      writeFileSync(
        project.path(".holdfast/config.json"),
        JSON.stringify({ trace: ["file:from-config.ndjson"] }),
      );
      await park();
      expect(events("from-config.ndjson")).toContain("committed");
      await project.run("resume", "s1", "--park", "--trace", "file:from-flag.ndjson");
      expect(events("from-flag.ndjson")[0]).toBe("session_started");
      expect(events("from-config.ndjson").filter((type) => type === "session_started")).toHaveLength(1);
    },
  );

  test("a trace that cannot be written is told, and the session goes on", ofCampaign, async () => {
    const { code, stderr } = await park("--trace", "file:/dev/full");
    expect(code).toBe(0);
    expect(stderr.match(/are dropped: ENOSPC/g)).toHaveLength(1);
    expect((await project.json("show", "s1"))["status"]).toBe("waiting");
  });

  test.each([
    ["nowhere", "the destination of traces is unknown"],
    ["file:", "the destination of traces is unknown"],
    ["stdout:x", "the destination of traces is unknown"],
    ["sqlite:no/such/folder/t.db", "no trace can be written"],
    ["otlp:localhost:4318", "is not the address"],
  ])("%s is refused before anything starts", async (target, says) => {
    const { code, stderr } = await park("--trace", target);
    expect({ code, says: stderr.includes(says), stack: stderr.includes("    at ") }).toEqual({
      code: 3,
      says: true,
      stack: false,
    });
    expect(existsSync(project.path(".holdfast/holdfast.db"))).toBe(false);
  });

  test("a configuration that says something else is refused", async () => {
    writeFileSync(project.path(".holdfast/config.json"), JSON.stringify({ trace: [1] }));
    expect(await park()).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('"trace" is not a text'),
    });
  });

  test("the trace that the command is called in reaches the tasks, also after a resume", async () => {
    const TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const args = ["run", "steps.ts", "--session", "s1", "--park"];
    await project.finish(args, { stdin: "", env: { TRACEPARENT } });
    expect(readFileSync(project.path("ran.txt"), "utf8")).toBe(`${TRACEPARENT}\n${TRACEPARENT}\n`);
    expect((await project.json("trace", "s1"))["traceparent"]).toBe(TRACEPARENT);
  });
});

test("trace works from the journal alone, for people and for programs", async () => {
  await park();
  const { code, stdout } = await project.run("trace", "s1");
  expect(code).toBe(0);
  expect(stdout).toMatch(/turn 0 {2}\d+ m?s, 2 deliveries, 1 task/);
  expect(stdout).toMatch(/signal "go" .* open/);
  const json = await project.json<{ turns: { items: { name: string }[] }[] }>("trace", "s1");
  expect(json.turns.map(({ items }) => items.map(({ name }) => name))).toEqual([["model"], ["model", "go"]]);
});

describe("replay", () => {
  const ran = () => readFileSync(project.path("ran.txt"), "utf8");

  test("replay steps through the last turn, shows what is open, and changes nothing", async () => {
    await park();
    const before = {
      ran: ran(),
      shown: await project.json("show", "s1"),
      logs: (await project.run("logs", "s1", "--json")).stdout,
    };
    const { code, stdout, stderr } = await project.run("replay", "s1");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const text of [
      "started",
      'task "model"',
      'open: signal "go"',
      'state: {"n":1}',
      "user: round 1",
      "asks for what the journal holds",
    ])
      expect(stdout).toContain(text);
    expect(stdout, "an input is told once").not.toMatch(/with input (\S+) .*\1/);
    const after = {
      ran: ran(),
      shown: await project.json("show", "s1"),
      logs: (await project.run("logs", "s1", "--json")).stdout,
    };
    expect({ ...after, shown: { ...after.shown, durationMs: 0 } }).toEqual({
      ...before,
      shown: { ...before.shown, durationMs: 0 },
    });
  });

  test("replay shows an earlier turn, and stops at a position", async () => {
    await park();
    const first = await project.run("replay", "s1", "--turn", "0", "--json");
    const steps = first.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(steps.at(-1)).toMatchObject({
      step: "stand",
      turn: 0,
      isOver: true,
      entries: [{ content: "round 0" }],
    });
    const stopped = await project.run("replay", "s1", "--at", "1");
    expect(stopped.stdout).toMatch(/open: task s1-1 "model", attempt 1/);
    expect(stopped.stdout).toContain("is here, in turn 0, and continues");
  });

  test("replay of other code shows both sides, runs nothing, and exits with the error", async () => {
    await park();
    const before = ran();
    const { code, stdout, stderr } = await project.run("replay", "s1", "--agent", "changed.ts");
    expect(code).not.toBe(0);
    expect(stdout).toContain("from here on the code asks for something else");
    for (const text of ["E_NONDETERMINISM", 'task "model"', 'task "other"', "changed.ts:"])
      expect(stderr).toContain(text);
    expect(ran()).toBe(before);
    const { stdout: json } = await project.run("replay", "s1", "--agent", "changed.ts", "--json");
    expect(JSON.parse(json.trimEnd().split("\n").at(-1)!)).toMatchObject({
      divergence: { code: "nondeterminism" },
    });
  });

  test.each([
    [["--at", "999"], "the journal has no position 999"],
    [["--at", "-1"], "--at is not a whole number"],
    [["--turn", "x"], "--turn is not a whole number"],
    [["--turn", "9"], "has no turn 9"],
    [["--turn", "1", "--at", "0"], "position 0 is not in turn 1"],
  ])("%j is refused with a reason", async (args, says) => {
    await park();
    const { code, stderr } = await project.run("replay", "s1", ...args);
    expect({ code, says: stderr.includes(says) }).toEqual({ code: 2, says: true });
  });
});
