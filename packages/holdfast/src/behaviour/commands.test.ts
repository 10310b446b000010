// Every command as a user calls it: through the launcher, as a process.

import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { Project } from "../testing/holdfast-process.ts";

const AGENTS: Readonly<Record<string, string>> = {
  "echo.ts": `export default async function (ctx: any, input: unknown) {
  const seen = await ctx.run("look", () => input ?? "nothing");
  ctx.appendEntry({ role: "assistant", content: { text: "saw it" } });
  return seen;
}
`,
  "ask.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "ask", version: "2", run: async (ctx) => {
  const first = await ctx.requestInput({ prompt: "First?\\nWith a second line.", details: { command: "rm -rf x" } });
  const second = await ctx.requestInput("Second?", { answer: "any" });
  return { first, second };
} });
`,
  "two-questions.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "two-questions", run: (ctx) => ctx.all([ctx.requestInput("A?", { answer: "any" }), ctx.requestInput("B?", { answer: "any" })]) });
`,
  "flaky.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "flaky", run: async (ctx) => {
  await ctx.run("flaky", ({ attempt }) => { if (attempt < 3) throw new Error("not yet"); return attempt; },
    { retry: { initialDelayMs: 5 } });
  await ctx.run("hopeless", () => { throw new Error("no \\u001b[31mway\\u001b]0;title\\u0007"); }, { retry: { maxAttempts: 1 } });
} });
`,
  "wait.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "wait", run: (ctx) => ctx.waitForSignal("go") });
`,
  "stream.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "stream", run: (ctx) => ctx.run("speak", (task) => {
  console.log("printed by the agent");
  for (const piece of ["Hel", "lo \\u001b[", "31mthere"]) task.streamToken(piece);
  task.progress({ percent: 50 });
  return "done";
}) });
`,
};

describe("commands", () => {
  let project: Project;
  beforeEach(() => {
    project = new Project();
    for (const [name, text] of Object.entries(AGENTS)) writeFileSync(project.path(name), text);
  });
  afterEach(() => project.dispose());

  const lines = (text: string) =>
    text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  describe("run", () => {
    test("a text is written as it is, everything else as JSON", ofCampaign, async () => {
      expect(await project.run("run", "echo.ts", "--input", '"a b"')).toMatchObject({
        code: 0,
        stdout: "a b\n",
      });
      expect(await project.run("run", "echo.ts", "--input", '{"a":[1]}')).toMatchObject({
        code: 0,
        stdout: '{\n  "a": [\n    1\n  ]\n}\n',
      });
    });

    test("the input is read from a file and from standard input", ofCampaign, async () => {
      writeFileSync(project.path("in.json"), '\ufeff{"from":"file"}\n');
      expect((await project.run("run", "echo.ts", "--input", "@in.json")).stdout).toContain('"from": "file"');
      const piped = project.start(["run", "echo.ts", "--input", "-"], { stdin: '"from a pipe"\n' });
      expect((await piped.finished).stdout).toBe("from a pipe\n");
    });

    test("--json: a line per event, numbered without gaps, the result last", async () => {
      const { code, stdout, stderr } = await project.run("run", "echo.ts", "--json", "--session", "s");
      const events = lines(stdout);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(events[0]).toMatchObject({ type: "session", sessionId: "s", agent: "echo", resumed: false });
      expect(events.at(-1)).toEqual({
        type: "result",
        sessionId: "s",
        status: "completed",
        output: "nothing",
      });
      const numbered = events.filter((event) => "seq" in event);
      expect(numbered.map(({ seq }) => seq)).toEqual(numbered.map((_, i) => i));
      expect(numbered).toContainEqual(
        expect.objectContaining({ type: "task_completed", kind: "look", output: "nothing" }),
      );
      expect(numbered).toContainEqual(
        expect.objectContaining({ type: "append_entry", content: { text: "saw it" } }),
      );
      // The same events, told afterwards.
      expect(lines((await project.run("logs", "s", "--json")).stdout)).toEqual([...numbered, events.at(-1)]);
    });

    test("run makes its database in the project, for this user only", async () => {
      await project.run("run", "echo.ts");
      expect(statSync(project.path(".holdfast")).mode & 0o777).toBe(0o700);
      expect(statSync(project.path(".holdfast/holdfast.db")).mode & 0o777).toBe(0o600);
    });

    test("--ephemeral leaves nothing behind", async () => {
      expect(await project.run("run", "echo.ts", "--ephemeral")).toMatchObject({
        code: 0,
        stdout: "nothing\n",
      });
      expect(statSync(project.path(".holdfast"), { throwIfNoEntry: false })).toBeUndefined();
    });

    test("--persistence minimal keeps how it stands and ended, and starts over", ofCampaign, async () => {
      await project.run("run", "wait.ts", "--persistence", "minimal", "--session", "m", "--park");
      expect(await project.json("show", "m")).toMatchObject({ status: "waiting" });
      expect((await project.run("logs", "m")).stdout).toBe("");
      await project.run("signal", "m", "go", "7");
      expect(await project.run("resume", "m")).toMatchObject({ code: 0, stdout: "7\n" });
      expect(await project.run("result", "m")).toMatchObject({ code: 0, stdout: "7\n" });
      const wrong = await project.run("run", "wait.ts", "--persistence", "none");
      expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("neither full nor minimal") });
    });

    test(
      "--continue resumes the newest unfinished session of this agent, else it starts one",
      ofCampaign,
      async () => {
        await project.run("run", "wait.ts", "--continue", "--park");
        await project.run("run", "ask.ts", "--park");
        await project.run("run", "wait.ts", "--continue", "--park");
        const sessions = await project.json<{ sessionId: string; agent: { name: string } }[]>("list");
        expect(sessions.map(({ agent }) => agent.name)).toEqual(["ask", "wait"]);
        await project.run("signal", sessions[1]!.sessionId, "go", "7");
        expect(await project.run("run", "wait.ts", "--continue")).toMatchObject({ code: 0, stdout: "7\n" });
      },
    );

    test("agents' output and streams go to standard error, cleaned, and standard output is the result", async () => {
      const { stdout, stderr } = await project.run("run", "stream.ts");
      expect(stdout).toBe("done\n");
      expect(stderr).toContain("printed by the agent");
      expect(stderr).toContain("Hello [31mthere");
      expect(stderr).toContain('{"percent":50}');
      const events = lines((await project.run("run", "stream.ts", "--json")).stdout);
      expect(events.filter(({ type }) => type === "token")).toMatchObject([
        { text: "Hel", kind: "speak", attempt: 1, offset: 0 },
        { offset: 1 },
        { offset: 2 },
      ]);
    });

    test("an agent outside of any project finds this installation", async () => {
      mkdirSync(project.path("far/away"), { recursive: true });
      writeFileSync(
        project.path("far/away/agent.mjs"),
        'import { defineAgent } from "holdfast";\nimport "@holdfast/core";\nexport default defineAgent({ name: "far", run: async () => "found" });\n',
      );
      expect(await project.run("run", "far/away/agent.mjs")).toMatchObject({ code: 0, stdout: "found\n" });
    });
  });

  describe("a failed session", () => {
    test("run ends with exit code 1, and shows the reason and the number of attempts", async () => {
      const { code, stdout, stderr } = await project.run("run", "flaky.ts", "--session", "f");
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toContain('error[E_SESSION_FAILED]: session f failed: task "hopeless" failed: no way\n');
      expect(stderr).toContain("attempt 1 failed, again in");
      expect(stderr).not.toContain("\u001b");

      const { stdout: shown } = await project.run("show", "f");
      expect(shown).toMatch(/flaky +completed +\d+ ms +3 attempts/);
      expect(shown).toMatch(/hopeless +failed/);
      expect(await project.json("show", "f")).toMatchObject({
        status: "failed",
        tasks: [
          { kind: "flaky", status: "completed", attempts: 3 },
          {
            kind: "hopeless",
            status: "failed",
            attempts: 1,
            error: { message: "no \u001b[31mway\u001b]0;title\u0007" },
          },
        ],
      });
      expect(await project.run("result", "f")).toMatchObject({ code: 1, stdout: "" });
      expect(await project.run("resume", "f")).toMatchObject({ code: 1, stdout: "" });
    });

    test("--json: the result says so on standard output, the error is one object on standard error", async () => {
      const { code, stdout, stderr } = await project.run("run", "flaky.ts", "--json");
      expect(code).toBe(1);
      expect(lines(stdout).at(-1)).toMatchObject({ type: "result", status: "failed" });
      expect(JSON.parse(stderr)).toMatchObject({ code: "E_SESSION_FAILED", exitCode: 1 });
    });
  });

  describe("questions", () => {
    test("each is answered once, the oldest first, and the answers are kept apart", ofCampaign, async () => {
      await project.run("run", "ask.ts", "--session", "q", "--park");
      expect((await project.run("show", "q")).stdout).toMatch(
        /First\?\n +With a second line\.\n[^]*"command": "rm -rf x"/,
      );
      expect(await project.run("approve", "--last", "--no", "--reason", "no such x")).toMatchObject({
        code: 0,
        stdout: "",
      });
      const again = await project.run("approve", "q");
      expect(again.code).toBe(6);
      expect(again.stderr).toContain("already has an answer");
      expect(again.stderr).toContain('{"approved":false,"reason":"no such x"}');
      const same = await project.run("approve", "q", "--no", "--reason", "no such x");
      expect(same).toMatchObject({ code: 0, stderr: expect.stringContaining("already has an answer") });
      expect((await project.run("show", "q")).stdout).toContain("(has arrived)");
      await project.run("resume", "q", "--park");
      expect(await project.json("answer", "q", '"blue"')).toMatchObject({
        status: "stored",
        resume: "holdfast resume q",
      });
      await project.run("resume", "q");
      expect((await project.run("approve", "--last")).code).toBe(4);
      expect(await project.json("result", "q")).toMatchObject({
        output: { first: { approved: false, reason: "no such x" }, second: "blue" },
      });
    });

    test(
      "an answer of another shape than the question takes is refused, and not stored",
      ofCampaign,
      async () => {
        await project.run("run", "ask.ts", "--session", "q", "--park");
        const wrong = await project.run("answer", "q", '"blue"');
        expect(wrong.code).toBe(2);
        expect(wrong.stderr).toContain("asks for yes or no");
        expect(await project.json("show", "q")).toMatchObject({
          pendingSignals: [],
          waits: [{ answer: "approval" }],
        });
        await project.run("approve", "q");
        await project.run("resume", "q", "--park");

        const approved = await project.run("approve", "q");
        expect(approved.code).toBe(2);
        expect(approved.stderr).toMatch(
          /needs another answer than yes or no: Second\?[^]*fix: holdfast answer q \d+ JSON/,
        );
        expect((await project.run("show", "q")).stdout).not.toContain("approve q");
        expect(await project.json("show", "q")).toMatchObject({ pendingSignals: [] });
        // A late answer is refused, and the error shows the first one.
        await project.run("answer", "q", '"blue"');
        await project.run("resume", "q");
        expect((await project.run("approve", "q")).stderr).toContain("has ended");
      },
    );

    test("any open one can be answered by its number, before an older one", async () => {
      await project.run("run", "two-questions.ts", "--session", "q", "--park");
      const { questions } = await project.json<{ questions: { id: number; prompt: string }[] }>("show", "q");
      expect(questions.map(({ prompt }) => prompt)).toEqual(["A?", "B?"]);
      await project.run("answer", "q", String(questions[1]!.id), "-1");
      // A is the oldest now that nobody has answered.
      const { stderr } = await project.run("answer", "q", "1");
      expect(stderr).toContain("answered: A?");
      expect(await project.run("resume", "q")).toMatchObject({ code: 0, stdout: "[\n  1,\n  -1\n]\n" });
    });
  });

  describe("signals and cancelling, with nobody there", () => {
    test("a signal is stored, also one that is not waited for, and once per key", async () => {
      await project.run("run", "wait.ts", "--session", "w", "--park");
      expect(await project.json("signal", "w", "other")).toMatchObject({ status: "stored", awaited: false });
      expect(await project.json("signal", "w", "go", '{"n":1}', "--key", "k")).toMatchObject({
        status: "stored",
        awaited: true,
      });
      expect(await project.json("signal", "w", "go", '{"n":2}', "--key", "k")).toMatchObject({
        status: "duplicate",
      });
      expect(await project.json("show", "w")).toMatchObject({
        pendingSignals: ["other", "go"],
        resume: "holdfast resume w",
      });
      expect(await project.run("resume", "--last")).toMatchObject({ code: 0, stdout: '{\n  "n": 1\n}\n' });
    });

    test("cancel asks, cancel --hard ends", async () => {
      for (const id of ["a", "b"]) await project.run("run", "wait.ts", "--session", id, "--park");
      const asked = await project.run("cancel", "a", "--reason", "not needed");
      expect(asked.stderr).toContain("holdfast resume a");
      expect(await project.json("show", "a")).toMatchObject({
        status: "cancelling",
        cancel: { reason: "not needed" },
      });
      expect(await project.run("resume", "a")).toMatchObject({ code: expect.any(Number), stdout: "" });
      expect(await project.json("show", "a")).toMatchObject({ status: "cancelled" });

      expect(await project.json("cancel", "b", "--hard")).toMatchObject({
        status: "requested",
        sessionStatus: "cancelled",
      });
      expect((await project.run("result", "b")).stderr).toContain("E_SESSION_CANCELLED");
    });
  });

  describe("list, logs, doctor", () => {
    test("list shows the newest sessions first, by status, up to the limit", async () => {
      expect(await project.json("list")).toEqual([]);
      expect((await project.run("list")).stderr).toContain("no sessions");
      for (const id of ["a", "b", "c"]) await project.run("run", "echo.ts", "--session", id);
      await project.run("run", "ask.ts", "--session", "d", "--park");
      const { stdout } = await project.run("list");
      expect(stdout.split("\n").map((line) => line.split(" ")[0])).toEqual([
        "SESSION",
        "d",
        "c",
        "b",
        "a",
        "",
      ]);
      expect(stdout).toContain("an answer to question 0: First?\\nWith a second line.");
      expect(await project.json("list", "--status", "input_required")).toMatchObject([{ sessionId: "d" }]);
      expect((await project.run("list", "--limit", "2")).stderr).toContain("there are more");
    });

    test("logs: every line by its position, and nothing that steers a terminal", async () => {
      await project.run("run", "flaky.ts", "--session", "f");
      const { stdout } = await project.run("logs", "f");
      expect(stdout).toMatch(/^ +1 {2}\d{4}-\d\d-\d\d [\d:]{8} {2}\S flaky #0\n/);
      expect(stdout).toMatch(/failed .*: no way\n/);
      expect(stdout).not.toContain("\u001b");
    });

    test("doctor: what there is, what is unfinished, and how to go on", ofCampaign, async () => {
      expect((await project.run("doctor")).stdout).toContain("does not exist yet");
      await project.run("run", "ask.ts", "--session", "q", "--park");
      const { code, stdout } = await project.run("doctor");
      expect(code).toBe(0);
      for (const text of [
        "mode 600",
        "1 input_required",
        "holdfast resume q",
        "no problem was found",
        "owner     none",
      ]) {
        expect(stdout).toContain(text);
      }
      expect(await project.json("doctor")).toMatchObject({
        problems: [],
        sessions: { input_required: 1 },
        database: { exists: true },
      });
    });

    test("doctor: a log that SQLite reads only as far as it is whole is told of", ofCampaign, async () => {
      await project.run("run", "ask.ts", "--session", "q", "--park");
      writeFileSync(project.path(".holdfast/holdfast.db-wal"), "\0".repeat(4_096));
      const { code, stdout } = await project.run("doctor");
      expect(code).toBe(0);
      expect(stdout).toContain("4 KiB, checked up to its last whole commit");
    });
  });

  test(
    "the database of the flag, of the environment, of the file; and hints that name it",
    ofCampaign,
    async () => {
      const db = project.path("else where.db");
      const parked = await project.run("run", "wait.ts", "--session", "w", "--park", "--db", db);
      expect(parked.stderr).toContain(`holdfast resume w --db '${db}'`);
      expect(await project.json("list")).toEqual([]);
      const listed = project.start(["list", "--json"], { env: { HOLDFAST_DB: db }, stdin: "" });
      expect(JSON.parse((await listed.finished).stdout)).toMatchObject([{ sessionId: "w" }]);
      mkdirSync(project.path(".holdfast"));
      writeFileSync(project.path(".holdfast/config.json"), JSON.stringify({ db }));
      expect(await project.json("list")).toMatchObject([{ sessionId: "w" }]);
      writeFileSync(project.path(".holdfast/config.json"), '{"dbx": 1}');
      expect(await project.run("list")).toMatchObject({
        code: 3,
        stderr: expect.stringContaining("config.json"),
      });
    },
  );

  test(
    "a session continues with other code, where only inputs changed, if drift is accepted",
    ofCampaign,
    async () => {
      const agent = (input: string, kind = "work") => `import { defineAgent, defineTask } from "holdfast";
const work = defineTask({ name: "${kind}", run: (input) => input });
export default defineAgent({ name: "drift", tasks: [work], run: async (ctx) => {
  const made = await ctx.scheduleTask(work, ${input});
  await ctx.waitForSignal("go");
  return made;
} });
`;
      writeFileSync(project.path("drift.ts"), agent("1"));
      await project.run("run", "drift.ts", "--session", "d", "--park");
      await project.run("signal", "d", "go");
      writeFileSync(project.path("drift.ts"), agent("2"));

      const refused = await project.run("resume", "d");
      expect(refused).toMatchObject({ code: 1, stdout: "" });
      expect(refused.stderr).toContain("error[E_NONDETERMINISM]");
      expect(refused.stderr).toMatch(/at: .*drift\.ts:4/);
      expect(refused.stderr).toContain("--accept-drift");
      expect(await project.json("show", "d")).toMatchObject({
        status: "paused",
        pauseReason: "nondeterminism",
      });

      expect(await project.run("resume", "d", "--accept-drift")).toMatchObject({ code: 0, stdout: "1\n" });
    },
  );

  describe("config", () => {
    test("get tells a setting, alone for scripts, and with --origin where it was given", async () => {
      const byDefault = project.path(".holdfast/holdfast.db");
      expect(await project.run("config", "get", "db")).toMatchObject({ code: 0, stdout: `${byDefault}\n` });
      expect((await project.run("config", "get", "db", "--origin")).stdout).toBe(`${byDefault}  (default)\n`);
      mkdirSync(project.path(".config/holdfast"), { recursive: true });
      const file = project.path(".config/holdfast/config.json");
      writeFileSync(file, '{ "db": "mine.db" }');
      const mine = project.path("mine.db");
      expect((await project.run("config", "get", "db", "--origin")).stdout).toBe(
        `${mine}  (user file: ${file})\n`,
      );
      expect(await project.json("config", "get", "db")).toEqual({
        key: "db",
        value: mine,
        origin: "user_file",
        from: file,
      });
      await project.run("run", "echo.ts");
      expect(statSync(mine).isFile()).toBe(true);
      expect((await project.run("config", "get", "db", "--db", "x.db", "--origin")).stdout).toContain(
        "(flag: --db)",
      );

      writeFileSync(file, '{ "strictBounds": true }');
      expect((await project.run("config", "get", "strictBounds", "--origin")).stdout).toBe(
        `true  (user file: ${file})\n`,
      );
      mkdirSync(project.path(".holdfast"), { recursive: true });
      writeFileSync(project.path(".holdfast/config.json"), '{ "strictBounds": false }');
      expect(await project.json("config", "get", "strictBounds")).toMatchObject({
        value: false,
        origin: "project_file",
      });
    });

    test("list tells all of them, and makes nothing", async () => {
      const asked = { env: { HOLDFAST_DB: "/e.db" }, stdin: "" };
      const { code, stdout } = await project.start(["config", "list"], asked).finished;
      expect({ code, stdout }).toEqual({
        code: 0,
        stdout: expect.stringMatching(
          /^KEY +VALUE +GIVEN BY\ndb +\/e\.db +environment: HOLDFAST_DB\ntrace +default\nstrictBounds +false +default\ncommandNamespace +true +default\nmode +local +default\nsandbox +filesystem +default: mode local\nsandboxRoot +\S+ +default\n$/,
        ),
      });
      expect(await project.json("config", "list")).toEqual([
        { key: "db", value: project.path(".holdfast/holdfast.db"), origin: "default" },
        { key: "trace", value: "", origin: "default" },
        { key: "strictBounds", value: false, origin: "default" },
        { key: "commandNamespace", value: true, origin: "default" },
        ...["mode", "sandbox", "sandboxRoot"].map((key) => expect.objectContaining({ key })),
      ]);
      expect(statSync(project.path(".holdfast"), { throwIfNoEntry: false })).toBeUndefined();
    });

    test("a wrong file of the user is one paragraph, naming file and pointer", async () => {
      mkdirSync(project.path(".config/holdfast"), { recursive: true });
      const file = project.path(".config/holdfast/config.json");
      writeFileSync(file, '{ "db": 7 }');
      const { code, stdout, stderr } = await project.run("run", "echo.ts");
      expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
      expect(stderr).toMatch(/^error\[E_CONFIG_INVALID\]: .*\n( {2}\w+: .*\n)+$/);
      expect(stderr).toContain(`at: ${file}#/db`);
      expect(statSync(project.path(".holdfast"), { throwIfNoEntry: false })).toBeUndefined();
      // A flag overrides the configuration, so the configuration is not read.
      expect((await project.run("config", "get", "db", "--db", "x.db")).code).toBe(0);
    });
  });

  test("no colours, marks or width where they are not wanted", async () => {
    const env = { LANG: "C", NO_COLOR: "1", COLUMNS: "20" };
    const { code, stdout, stderr } = await project.finish(["run", "flaky.ts"], { env, stdin: "" });
    expect(code).toBe(1);
    // oxlint-disable-next-line no-control-regex -- plain ASCII is what is asked for.
    expect(stdout + stderr).toMatch(/^[\u0009\u000a\u0020-\u007e]*$/);
    const coloured = await project.finish(["list"], { env: { FORCE_COLOR: "1" }, stdin: "" });
    expect(coloured.code).toBe(0);
  });

  test("a reader that goes away is no error", ofCampaign, async () => {
    for (const id of ["a", "b"]) await project.run("run", "echo.ts", "--session", id);
    const started = project.start(["logs", "a", "--json"], { stdin: "" });
    started.child.stdout.destroy();
    const { code, stderr } = await started.finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });
});
