// A running session: stopping it, answering it, other processes beside it, and their deaths.

import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign, sampled } from "@holdfast/testkit/campaign";
import { LAUNCHER, Project } from "../testing/holdfast-process.ts";

const HAS_SCRIPT = spawnSync("script", ["--version"], { encoding: "utf8" }).stdout?.includes("util-linux");

const onTerminal = describe.skipIf(!HAS_SCRIPT); // `script` of util-linux makes the terminal

const AGENTS: Readonly<Record<string, string>> = {
  // Each task writes a line when it begins, so that what was done twice is seen.
  "steps.ts": `import { appendFileSync } from "node:fs";
import { defineAgent } from "holdfast";
export default defineAgent({ name: "steps", run: async (ctx, file: string) => {
  for (const name of ["one", "two", "three"]) {
    await ctx.run(name, async (task) => {
      appendFileSync(file, name + "\\n");
      if (name === "two") await new Promise((go) => setTimeout(go, task.attempt === 1 ? 60_000 : 10));
    });
  }
  return "all three";
} });
`,
  "count.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "count", run: async (ctx) =>
  await ctx.run("counts", () => new Promise((counted) => setTimeout(counted, 600, "counted"))) });
`,
  "wait.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "wait", run: (ctx) => ctx.waitForSignal("go") });
`,
  "lines.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "lines", run: async (ctx) => {
  const lines: string[] = [];
  for (;;) {
    const { key, value } = await ctx.select({ line: ctx.waitForSignal<string>("input"), end: ctx.waitForSignal("end") });
    if (key === "end") return lines;
    lines.push(value);
  }
} });
`,
  "clean.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "clean", run: async (ctx) => {
  try {
    return await ctx.waitForSignal("never");
  } catch {
    await ctx.run("clean up", () => "tidy");
    return "half of it";
  }
} });
`,
  "stray.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "stray", run: (ctx) => ctx.run("stray", () => new Promise(() => {
  setTimeout(() => { throw new Error("thrown where nobody catches"); }, 10);
})) });
`,
  "ask.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "ask", run: async (ctx) => [
  await ctx.requestInput({ prompt: "Ship it?", details: "npm publish" }),
  await ctx.requestInput("Which colour?", { answer: "any" }),
] });
`,
  "busy.ts": `import { defineAgent } from "holdfast";
export default defineAgent({ name: "busy", run: async (ctx) => { await ctx.run("first", () => 1); for (;;); } });
`,
};

describe("running", () => {
  let project: Project;
  beforeEach(() => {
    project = new Project({ eachAsProcess: true });
    for (const [name, text] of Object.entries(AGENTS)) writeFileSync(project.path(name), text);
  });
  afterEach(() => project.dispose());

  const begun = () => readFileSync(project.path("begun"), "utf8").trim().split("\n");
  const startSteps = async () => {
    const running = project.start([
      "run",
      "steps.ts",
      "--session",
      "s",
      "--input",
      JSON.stringify(project.path("begun")),
      "--grace",
      "10ms",
    ]);
    await running.says("▸ two");
    return running;
  };

  describe("stopping", () => {
    test.each(
      sampled([
        ["SIGINT", 130],
        ["SIGTERM", 143],
        ["SIGHUP", 129],
      ] as const),
    )("%s stops cleanly: exit %d, and the command that goes on", async (signal, exit) => {
      const running = await startSteps();
      running.kill(signal);
      const { code, stdout, stderr } = await running.finished;
      expect({ code, stdout }).toEqual({ code: exit, stdout: "" });
      expect(stderr).toContain("continue with: holdfast resume s\n");
      // Clean: nothing is left that says that somebody owns the database.
      expect(existsSync(project.path(".holdfast/holdfast.db-owner"))).toBe(false);

      expect(await project.run("resume", "s")).toMatchObject({ code: 0, stdout: "all three\n" });
      expect(begun()).toEqual(["one", "two", "two", "three"]);
    });

    test("--json tells it as well, with the result last", ofCampaign, async () => {
      const running = project.start(["run", "wait.ts", "--session", "s", "--json"]);
      await running.says('"wait_signal"');
      running.kill("SIGINT");
      const { code, stdout, stderr } = await running.finished;
      expect({ code, stderr }).toEqual({ code: 130, stderr: "" });
      const last = JSON.parse(stdout.trimEnd().split("\n").at(-1)!) as object;
      expect(last).toMatchObject({ type: "result", status: "waiting", resume: "holdfast resume s" });
    });

    test("a second Ctrl-C ends it at once, whatever the first one waits for", ofCampaign, async () => {
      writeFileSync(
        project.path("stubborn.ts"),
        AGENTS["wait.ts"]!.replace('"wait"', '"stubborn"')
          .replace(
            "(ctx) => ",
            "(ctx) => { process.on('SIGINT', () => { const until = Date.now() + 3_000; while (Date.now() < until); }); return ",
          )
          .replace('"go") });', '"go"); } });'),
      );
      const running = project.start(["run", "stubborn.ts", "--session", "s"]);
      await running.says("waits for signal");
      running.kill("SIGINT");
      await new Promise((go) => setTimeout(go, 300)); // Two presses, not one that arrived twice.
      running.kill("SIGINT");
      expect((await running.finished).code).toBe(130);
      expect(await project.json("show", "s")).toMatchObject({ status: "waiting" });
    });

    test("kill -9: resume goes on, and what was committed is not done again", async () => {
      const running = await startSteps();
      running.kill("SIGKILL");
      await running.finished;
      expect((await project.run("list")).stdout).toMatch(/ interrupted .* somebody to resume it/);
      const top = await project.run("top");
      expect(top.stderr).toContain("1 live session: 1 interrupted");
      expect(top.stdout).toMatch(/^interrupted .* no process runs it/m);
      const resumed = await project.run("resume", "--last");
      expect(resumed).toMatchObject({ code: 0, stdout: "all three\n" });
      expect(resumed.stderr).toContain("attempt 1 was lost with its process");
      expect(begun()).toEqual(["one", "two", "two", "three"]);
    });

    test("an ephemeral session that is stopped says that it is gone", ofCampaign, async () => {
      const running = project.start(["run", "wait.ts", "--ephemeral"]);
      await running.says("waits for signal");
      running.kill("SIGINT");
      const { code, stderr } = await running.finished;
      expect(code).toBe(130);
      expect(stderr).toContain("ephemeral");
      expect(stderr).not.toContain("resume");
    });

    test(
      "an exception that nobody catches ends the process with its line, and with the way on",
      ofCampaign,
      async () => {
        const { code, stderr } = await project.run("run", "stray.ts", "--session", "s");
        expect(code).toBe(1);
        expect(stderr).toContain("error[E_AGENT_ERROR]: nobody caught Error: thrown where nobody catches");
        expect(stderr).toMatch(/at: .*stray\.ts:3:28/);
        expect(stderr).toContain("holdfast resume s");
        expect(stderr).not.toMatch(/^\s+at (?!:)\S+/m);
      },
    );

    test(
      "an agent that loops without end is stopped, and nothing committed is lost",
      ofCampaign,
      async () => {
        const { signal, stderr } = await project.run("run", "busy.ts", "--session", "s");
        expect(signal).toBe("SIGKILL");
        expect(stderr).toContain("error[E_AGENT_BUSY]");
        expect(await project.json("show", "s")).toMatchObject({ tasks: [{ kind: "first", attempts: 1 }] });
      },
    );
  });

  describe("standard input", () => {
    test("lines are signals, in their order; its end ends nothing", ofCampaign, async () => {
      const text = 'first\n{"name":"input","payload":"second"}\n{"nam":"typo"}\n{"name":"answer:1"}\nthird';
      const running = project.start(["run", "lines.ts", "--session", "s"], { stdin: text });
      await running.says(/third/);
      expect(running.stderr).toContain("must be a signal");
      expect(running.stderr).toContain("cannot be the name of a signal");
      await project.run("signal", "s", "end");
      const { code, stdout } = await running.finished;
      expect({ code, output: JSON.parse(stdout) as unknown }).toEqual({
        code: 0,
        output: ["first", "second", "third"],
      });
    });

    test("`--input -` takes all of it: the rest are no signals", ofCampaign, async () => {
      const running = project.start(["run", "lines.ts", "--session", "s", "--input", "-"], { stdin: "1\n" });
      await running.says("waits for signal");
      await project.run("signal", "s", "end");
      expect(JSON.parse((await running.finished).stdout)).toEqual([]);
    });
  });

  onTerminal("on a terminal", () => {
    test("a question shows what it asks, and y, n or JSON answer it", ofCampaign, async () => {
      const running = project.startOnTerminal(["run", "ask.ts"]);
      await running.says("type y or n (a reason may follow)");
      running.type("maybe");
      await running.says("the question is still open");
      running.type("n too risky");
      await running.says("Which colour?");
      await running.says("type an answer as JSON");
      running.type('"blue"');
      const { code, stdout } = await running.finished;
      expect(code).toBe(0);
      expect(stdout).toContain("? Ship it?");
      expect(stdout).toMatch(/"reason": "too risky"[^]*"blue"/);
    });

    test("a running step is shown below everything else, until it has ended", async () => {
      const running = project.startOnTerminal(["run", "count.ts"]);
      const { code, stdout } = await running.finished;
      expect(code).toBe(0);
      const [before = "", ...drawn] = stdout.split("\u001b[K");
      expect(before + drawn.join("\n")).toMatch(/ counts {2}\S.*ms/);
      // The line is taken away for the line of the step that has ended, and is not there at the end.
      expect(drawn.at(-1)!.trimEnd()).toMatch(/counted$/);
    });

    test("Ctrl-C stops cleanly, and what is typed without a question is a signal", ofCampaign, async () => {
      const running = project.startOnTerminal(["run", "lines.ts", "--session", "s"]);
      await running.says("type a line");
      running.type("hello there");
      await running.says('"hello there"');
      running.child.stdin.write("\u0003");
      const { code, stdout } = await running.finished;
      expect(code).toBe(130);
      expect(stdout).toContain("continue with: holdfast resume s");
    });
  });

  describe("several processes and one database", () => {
    // Another command may own the database for no longer than its one signal takes, and be gone before we ask
    // it anything.
    test("an owner that ends before its first answer is followed by this process", ofCampaign, async () => {
      await project.run("run", "wait.ts", "--session", "s", "--park");
      const path = project.path(".holdfast/holdfast.db");
      const hello = { holdfast: "storage", protocol: 1, pid: 4711, since: 1, database: path };
      const server = createServer((socket) => {
        socket.on("error", () => {});
        socket.once("data", () => {
          server.close();
          socket.destroy();
        });
        socket.write(`${JSON.stringify(hello)}\n`);
      });
      await new Promise<void>((resolve) => server.listen(`${path}-socket`, resolve));
      const running = project.start(["resume", "s"]);
      await running.says("waits for signal");
      await project.run("signal", "s", "go");
      expect((await running.finished).code).toBe(0);
    });

    test("a session is run by one process; another is told which", ofCampaign, async () => {
      const running = project.start(["run", "wait.ts", "--session", "s"]);
      await running.says("waits for signal");
      const pid = String(running.child.pid);
      for (const args of [
        ["resume", "s"],
        ["run", "wait.ts", "--session", "s"],
        ["run", "wait.ts", "--continue"],
      ]) {
        const { code, stderr } = await project.run(...args);
        expect(code).toBe(6);
        expect(stderr).toContain("error[E_SESSION_CLAIMED]");
        expect(stderr).toContain(pid);
      }
      expect((await project.run("show", "s")).stdout).toContain(`process ${pid}`);
      expect(await project.json("doctor")).toMatchObject({ database: { ownerPid: running.child.pid } });
      expect(await project.json("signal", "s", "go", "1")).toEqual({
        sessionId: "s",
        name: "go",
        status: "stored",
        awaited: true,
      });
      expect(await running.finished).toMatchObject({ code: 0, stdout: "1\n" });
    });

    test(
      "a second session runs over the first process's socket, and goes on when that process ends",
      ofCampaign,
      async () => {
        const first = project.start(["run", "wait.ts", "--session", "first"]);
        await first.says("waits for signal");
        const second = project.start(["run", "wait.ts", "--session", "second"]);
        await second.says("waits for signal");
        const third = project.start(["run", "wait.ts", "--session", "third"]);
        await third.says("waits for signal");

        await project.run("signal", "third", "go", "3");
        expect(await third.finished).toMatchObject({ code: 0, stdout: "3\n" });
        first.kill("SIGKILL");
        await first.finished;
        await project.run("signal", "second", "go", "2");
        expect(await second.finished).toMatchObject({ code: 0, stdout: "2\n" });
        expect((await second.finished).stderr).not.toContain("resumes");
        // The one that was killed lost nothing either.
        await project.run("signal", "first", "go", "1");
        expect(await project.run("resume", "first")).toMatchObject({ code: 0, stdout: "1\n" });
      },
    );

    test("list, show, logs and doctor read beside a process that works", ofCampaign, async () => {
      const running = await startSteps();
      expect(await project.json("list")).toMatchObject([{ sessionId: "s", status: "working" }]);
      expect(await project.json("show", "s")).toMatchObject({
        tasks: [{ status: "completed" }, { status: "open" }],
      });
      expect((await project.run("doctor")).code).toBe(0);
      running.kill("SIGKILL");
    });

    test("logs -f follows to the end", ofCampaign, async () => {
      const running = project.start(["run", "wait.ts", "--session", "s"]);
      await running.says("waits for signal");
      const logs = project.start(["logs", "s", "-f", "--json"]);
      await logs.says('"wait_signal"');
      await project.run("signal", "s", "go", '"end"');
      await running.finished;
      const { code, stdout } = await logs.finished;
      expect(code).toBe(0);
      const events = stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as { type: string });
      expect(events.map(({ type }) => type)).toEqual([
        "started",
        "wait_signal",
        "signal_received",
        "complete",
        "result",
      ]);
    });

    test(
      "a graceful cancel reaches the agent, which cleans up; a hard one does not ask",
      ofCampaign,
      async () => {
        const polite = project.start(["run", "clean.ts", "--session", "polite"]);
        await polite.says("waits for signal");
        expect(await project.json("cancel", "polite", "--reason", "changed my mind")).toMatchObject({
          status: "requested",
        });
        const { code, stdout, stderr } = await polite.finished;
        expect([code, stdout], "what it gave back is its partial output").toEqual([6, "half of it\n"]);
        expect(stderr).toContain("error[E_SESSION_CANCELLED]");
        expect(await project.json("show", "polite")).toMatchObject({
          status: "cancelled",
          tasks: [{ kind: "clean up", status: "completed" }],
        });

        const rude = project.start(["run", "clean.ts", "--session", "rude"]);
        await rude.says("waits for signal");
        await project.run("cancel", "rude", "--hard");
        expect((await rude.finished).stderr).toContain("error[E_SESSION_CANCELLED]");
        expect(await project.json("show", "rude")).toMatchObject({ status: "cancelled", tasks: [] });
      },
    );
  });

  test("standard output holds the result and nothing an agent writes", ofCampaign, async () => {
    writeFileSync(
      project.path("chatty.ts"),
      `process.stdout.write("loading\\n");
export default async function (ctx: any) {
  await ctx.run("one", () => { process.stdout.write("working\\n"); console.log("still"); });
  return "done";
}`,
    );
    const { stdout, stderr } = await project.run("run", "chatty.ts", "--json");
    for (const line of stdout.trimEnd().split("\n")) expect(() => JSON.parse(line)).not.toThrow();
    expect(stderr).toMatch(/loading\n[^]*working\nstill/);
  });

  // Only some systems have a place that is always full.
  test.skipIf(!existsSync("/dev/full")).each(["run wait.ts --ephemeral --json", "list --json"])(
    "a full disk behind the standard output of %s is neither the agent's fault nor success",
    (command) => {
      const { status, stderr } = spawnSync(
        "sh",
        ["-c", `'${process.execPath}' '${LAUNCHER}' ${command} > /dev/full`],
        { cwd: project.folder, encoding: "utf8" },
      );
      expect(status).toBe(10);
      expect(JSON.parse(stderr)).toMatchObject({
        code: "E_STORAGE_FULL",
        message: expect.stringContaining("standard output"),
      });
    },
  );

  test.each(
    sampled([
      ["a task", 'await ctx.run("two", () => process.exit(0));', true],
      ["the agent's function", "process.exit(0);", true],
      ["a task, with a code of its own", 'await ctx.run("two", () => process.exit(9));', true],
      ["its file", "", false],
    ]),
  )("process.exit in %s is no success", async (_what, statement, isResumable) => {
    writeFileSync(
      project.path("exits.ts"),
      `${statement === "" ? "process.exit(0);" : ""}
export default async function (ctx: any) { await ctx.run("one", () => 1); ${statement} }`,
    );
    const { code, stderr, stdout } = await project.run("run", "exits.ts", "--session", "s");
    expect(code).toBe(statement.includes("9") ? 9 : 1);
    expect(stdout).toBe("");
    expect(stderr).toContain("error[E_AGENT_ERROR]: the process ended before the command did");
    expect(stderr).toContain("process.exit(");
    expect(stderr.includes("holdfast resume s")).toBe(isResumable);
  });

  test("the session's file is loaded again, as it is now", ofCampaign, async () => {
    await project.run("run", "wait.ts", "--session", "s", "--park");
    await project.run("signal", "s", "go", "5");
    appendFileSync(project.path("wait.ts"), "// changed, but not what it does\n");
    expect(await project.run("resume", "s")).toMatchObject({ code: 0, stdout: "5\n" });
  });
});
