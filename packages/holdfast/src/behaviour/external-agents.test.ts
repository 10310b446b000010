// Claude Code as a durable session, by the real command. The program is a fake that speaks the protocol of
// the real one.

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { ANTHROPIC_KEY, ExternalProject } from "../testing/external-project.ts";
import type { Finished } from "../testing/holdfast-process.ts";

/** The external-agents campaign makes more of them. */
const KILLS = Number(process.env["HOLDFAST_KILLS"] ?? 1);

let project: ExternalProject;
beforeEach(() => void (project = new ExternalProject()));
afterEach(() => project.dispose());

const start = (args: readonly string[], env?: Readonly<Record<string, string>>) =>
  project.startHere(args, env);
const run = (...args: string[]): Promise<Finished> => project.finishHere(args);

test("run claude-code works in the current folder, and its conversation reads as one of ours", async () => {
  const { code, stdout, stderr } = await run("run", "claude-code", "think write:a.txt", "--session", "s");
  expect(code, stderr).toBe(0);
  expect(stdout).toBe("Done: think write:a.txt\n");
  expect(readFileSync(project.path("a.txt"), "utf8")).toBe("x\n");
  const [only, ...more] = project.starts();
  expect(more).toEqual([]);
  expect(only?.cwd).toBe(project.folder);
  expect(only?.args).toEqual(
    expect.arrayContaining(["--session-id", "--verbose", "--permission-mode", "default"]),
  );
  const { entries } = await project.shown("s");
  expect(entries.map(({ role }) => role)).toEqual(["user", "thinking", "assistant", "tool", "assistant"]);
  expect(entries[2]?.content).toMatchObject({
    toolCalls: [{ name: "Write", input: { file_path: "a.txt" } }],
  });
  expect(entries[3]?.content).toMatchObject({ name: "Write", text: "wrote a.txt", isError: false });
  const logs = (await run("logs", "s")).stdout;
  expect(logs).toContain('assistant: Write {"file_path":"a.txt","content":"x"}');
  expect(logs).toContain("Done: think write:a.txt");
  const raw = (await run("logs", "s", "--raw")).stdout.trimEnd().split("\n");
  const types = raw.map((line) => (JSON.parse(line) as { readonly type: string }).type);
  expect([types[0], types.at(-1)]).toEqual(["system", "result"]);
});

test(
  "the program gets its key and nothing else of the user's environment, and the key is not recorded",
  ofCampaign,
  async () => {
    const { code, stderr } = await project.finishHere(["run", "claude-code", "env", "--session", "s"], {
      GITHUB_TOKEN: "t",
    });
    expect(code, stderr).toBe(0);
    expect(project.starts()[0]?.env).toEqual(expect.arrayContaining(["ANTHROPIC_API_KEY", "PATH", "HOME"]));
    expect(project.starts()[0]?.env).not.toContain("GITHUB_TOKEN");
    const recorded = JSON.stringify((await project.shown("s")).entries);
    expect(recorded).toContain("ANTHROPIC_API_KEY");
    expect(recorded).not.toContain(ANTHROPIC_KEY);
    const raw = (await run("logs", "s", "--raw")).stdout;
    expect(raw).toContain("ANTHROPIC_API_KEY");
    expect(raw).not.toContain(ANTHROPIC_KEY);
  },
);

test("usage is counted once and priced by our table", ofCampaign, async () => {
  expect((await run("run", "claude-code", "hello", "--session", "s", "--budget", "100000tokens")).code).toBe(
    0,
  );
  const { budget } = await project.json<{ budget: { spent: unknown } }>("show", "s");
  expect(JSON.stringify(budget)).toContain("1130"); // 100 + 1,000 + 20, and 7 + 3 of the small model.
});

test(
  "a cost that is not known is shown as unknown, and refused under a budget in money",
  ofCampaign,
  async () => {
    const env = { ANTHROPIC_BASE_URL: "http://127.0.0.1:9" };
    const named = ["run", "claude-code", "--input", '{"text": "hello", "model": "claude-sonnet-4-5"}'];
    const elsewhere = await project.finishHere([...named, "--budget", "1usd"], env);
    expect(elsewhere.code).toBe(9);
    expect(elsewhere.stderr).toContain("E_UNKNOWN_PRICE");
    expect((await project.finishHere(["run", "claude-code", "hello", "--session", "s"], env)).code).toBe(0);
    expect((await run("show", "s")).stdout).toContain('"costMicroUsd":"unknown"');
    const { code, stderr } = await run("run", "claude-code", "hello", "--budget", "1usd");
    expect(code).toBe(9);
    expect(stderr).toContain("E_UNKNOWN_PRICE");
  },
);

test(
  "a conversation is interrupted and steered while the program works, and continues after it",
  ofCampaign,
  async () => {
    const input = JSON.stringify({ text: "write:a.txt hang", conversation: true });
    const running = start(["run", "claude-code", "--session", "s", "--input", input]);
    while (!existsSync(project.path("pids"))) await delay(20);
    const steered = await run("signal", "s", "steer", '"hurry"');
    expect(steered.code).toBe(0);
    expect((await run("list")).stdout).not.toMatch(/external_agent|signal "/);
    expect(steered.stderr).toContain("logs s says whether it joined the turn");
    await running.says("You say: hurry");
    await running.says("the message joined the turn that is under way");
    const queued = await run("signal", "s", "follow_up", '"write:b.txt"');
    expect(queued.stderr).toContain("logs s says when it is the request");
    await running.says("the message waits until the agent has answered");
    expect((await run("signal", "s", "interrupt")).code).toBe(0);
    await running.says("(The user interrupted the turn. claude-code was stopped by a request: exit code 0.)");
    expect(project.hanging()).toEqual([]);
    await running.says("Done: write:b.txt");
    expect(project.starts().map(({ args }) => args.at(-2))).toEqual(["--session-id", "--resume"]);
  },
);

test("a second process that resumes a session starts no second program", ofCampaign, async () => {
  const first = start(["run", "claude-code", "write:a.txt hang", "--session", "s"]);
  while (!existsSync(project.path("pids"))) await delay(20);
  const second = await run("resume", "s");
  expect(second.stderr).toContain("E_SESSION_CLAIMED");
  expect(project.starts()).toHaveLength(1);
  expect(project.hanging()).toHaveLength(2);
  first.kill("SIGKILL");
  await first.finished;
  expect((await run("resume", "s")).code).toBe(0);
  expect(project.starts()).toHaveLength(2);
  expect(project.hanging()).toEqual([]);
});

test(
  "a turn that reaches the budget is ended, and the session waits until it is raised",
  ofCampaign,
  async () => {
    const { code } = await run(
      "run",
      "claude-code",
      "write:a.txt hang",
      "--session",
      "s",
      "--budget",
      "10tokens",
    );
    expect(code).toBe(9);
    expect((await project.shown("s")).status).toBe("paused");
    expect((await run("budget", "s", "--raise", "100000tokens")).code).toBe(0);
    const { code: after, stdout, stderr } = await run("resume", "s");
    expect(after, stderr).toBe(0);
    expect(stdout).toContain("Done:");
  },
);

describe("a cut-off turn", () => {
  test("after kill -9 nothing of the program is left, its session is resumed, and it is told which call was cut off", async () => {
    const first = start(["run", "claude-code", "write:a.txt hang", "--session", "s"]);
    await project.hangs("s");
    first.kill("SIGKILL");
    await first.finished;
    const { code, stdout, stderr } = await run("resume", "s");
    expect(code, stderr).toBe(0);
    expect(stdout).toContain("Done: write:a.txt hang");
    expect(project.hanging()).toEqual([]);
    const [begun, resumed] = project.starts();
    const id = begun?.args[begun.args.indexOf("--session-id") + 1];
    expect(resumed?.args.slice(-2)).toEqual(["--resume", id]);
    const { entries } = await project.shown("s");
    const prompt = entries.find(({ role, content }) => role === "user" && String(content).includes("Verify"));
    expect(prompt?.content).toContain('Bash {"command":"sleep 1000"}');
    const calls = entries.filter(({ content }) => JSON.stringify(content).includes('"toolCallId"'));
    expect(
      calls.some(({ content }) => JSON.stringify(content).includes("Whether it took effect is unknown")),
    ).toBe(true);
  });

  test(
    `${KILLS} kills at random moments lose no answer, leave no process, and repeat no step that was reported as done`,
    { ...ofCampaign, timeout: KILLS * 10_000 + 30_000 },
    async () => {
      const words = Array.from({ length: 6 * KILLS + 4 }, (_, step) => `step:${step}`);
      let command: readonly string[] = ["run", "claude-code", words.join(" "), "--session", "s"];
      const reported = new Set<string>();
      for (let kills = 0; kills < KILLS; kills++) {
        const running = start(command);
        await running.says("▸ Run step");
        await delay(Math.random() * 600);
        running.kill("SIGKILL");
        await running.finished;
        command = ["resume", "s"];
        const steps = project.steps();
        for (const step of reported) expect(steps.get(step), `step ${step}`).toBe(1);
        const { entries, status } = await project.shown("s");
        if (status === "completed") break;
        for (const [, step] of JSON.stringify(entries).matchAll(/step (\d+) is done/g))
          if (steps.get(step!) === 1) reported.add(step!);
      }
      const { code, stdout, stderr } = await project.finishHere(command);
      expect(code, stderr).toBe(0);
      expect(stdout).toBe(`Done: ${words.join(" ")}\n`);
      expect([...project.steps().keys()]).toHaveLength(words.length);
      for (const step of reported) expect(project.steps().get(step), `step ${step}`).toBe(1);
      expect(project.processes()).toEqual([]);
      const text = JSON.stringify((await project.shown("s")).entries);
      expect(text.match(/"toolCallId"/g)?.length).toBe(text.match(/"toolCalls":\[\{/g)?.length);
    },
  );

  test("a cancel after kill -9 ends what was left running, and then the session", ofCampaign, async () => {
    const first = start(["run", "claude-code", "write:a.txt hang", "--session", "s"]);
    await project.hangs("s");
    expect(project.hanging()).toHaveLength(2);
    first.kill("SIGKILL");
    await first.finished; // From now on the guard of its programs may end them, too.
    expect((await run("cancel", "s")).code).toBe(0);
    expect((await project.shown("s")).status).toBe("cancelled");
    expect(project.hanging()).toEqual([]);
  });

  test("a program that dies in its turn is resumed without a person", ofCampaign, async () => {
    const { code, stderr } = await run("run", "claude-code", "die", "--session", "s");
    expect(code, stderr).toBe(0);
    expect(project.starts()).toHaveLength(2);
    expect(JSON.stringify((await project.shown("s")).entries)).toContain("make deploy");
  });

  test("a program that dies in every turn fails the session after a few turns", ofCampaign, async () => {
    const { code, stderr } = await run("run", "claude-code", "always-die", "--session", "s");
    expect(code).toBe(1);
    expect(stderr).toContain("in 6 turns in a row");
    expect((await project.shown("s")).error?.code).toBe("external_agent_failed");
  });

  test(
    "a request is sent afresh where the program stored no session and nothing was done",
    ofCampaign,
    async () => {
      const { code, stdout, stderr } = await run("run", "claude-code", "forget", "--session", "s");
      expect(code, stderr).toBe(0);
      expect(stdout).toContain("Done: forget");
      expect(project.starts().map(({ args }) => args.at(-2))).toEqual([
        "--session-id",
        "--resume",
        "--session-id",
      ]);
    },
  );

  test(
    "a session that the program lost after it had acted is a question, and a new one is told what was recorded",
    ofCampaign,
    async () => {
      const first = start(["run", "claude-code", "write:a.txt hang", "--session", "s"]);
      await project.hangs("s");
      first.kill("SIGKILL");
      await first.finished;
      rmSync(project.path(".claude"), { recursive: true });
      expect((await run("resume", "s", "--park")).code).toBe(0);
      expect((await run("inbox")).stdout).toContain("restore_incomplete");
      expect(project.starts()).toHaveLength(2);
      expect((await run("approve", "s")).code).toBe(0);
      const { code, stderr } = await run("resume", "s");
      expect(code, stderr).toBe(0);
      const [begun, , anew] = project.starts().map(({ args }) => args.slice(-2));
      expect(anew?.[0]).toBe("--session-id");
      expect(anew).not.toEqual(begun);
      const prompts = (await project.shown("s")).entries.filter(({ role }) => role === "user");
      expect(prompts.at(-1)?.content).toMatch(/session that is lost[^]*wrote a\.txt[^]*The request was:/);
    },
  );
});

describe("a call that needs a permission", () => {
  test(
    "a request is a question with the exact call, and the answer reaches the program once",
    ofCampaign,
    async () => {
      const running = start(["run", "claude-code", "ask:a.txt", "--session", "s"]);
      await running.says("Allow write_file: a.txt?");
      const inbox = await run("inbox");
      expect(inbox.stdout).toContain("write_file");
      expect(inbox.stdout).toContain("a.txt");
      expect(existsSync(project.path("a.txt"))).toBe(false);
      expect((await run("approve", "s")).code).toBe(0);
      const { code, stderr } = await running.finished;
      expect(code, stderr).toBe(0);
      expect(readFileSync(project.path("a.txt"), "utf8")).toBe("x\n");
      expect(project.answers()).toHaveLength(1);
    },
  );

  test("a call that a person refuses is not carried out, and the program reads why", ofCampaign, async () => {
    const running = start(["run", "claude-code", "ask:a.txt", "--session", "s"]);
    await running.says("Allow write_file");
    expect((await run("approve", "s", "--no", "--reason", "not now")).code).toBe(0);
    expect((await running.finished).code).toBe(0);
    expect(existsSync(project.path("a.txt"))).toBe(false);
    expect(project.answers()[0]).toContain("The reason: not now");
  });

  test(
    "a request stays a question after kill -9, and its answer counts once for the resumed program",
    ofCampaign,
    async () => {
      const first = start(["run", "claude-code", "ask:a.txt", "--session", "s"]);
      await first.says("Allow write_file");
      first.kill("SIGKILL");
      await first.finished;
      expect((await run("inbox")).stdout).toContain("a.txt");
      expect((await run("approve", "s")).code).toBe(0);
      const { code, stderr } = await run("resume", "s");
      expect(code, stderr).toBe(0);
      expect(readFileSync(project.path("a.txt"), "utf8")).toBe("x\n");
      expect(JSON.stringify((await project.shown("s")).entries)).toContain(
        "A person has allowed it, once: Write",
      );
      expect(project.answers()).toHaveLength(1);
    },
  );

  test(
    "a question waits without a process once the process has waited for long enough",
    ofCampaign,
    async () => {
      const input = JSON.stringify({ text: "ask:a.txt ask:a.txt", keepAliveMs: 0 });
      const parked = await run("run", "claude-code", "--input", input, "--session", "s", "--park");
      expect(parked.code, parked.stderr).toBe(0);
      expect((await run("approve", "s")).code).toBe(0);
      // The second call is asked for again: the grant was for one.
      expect((await run("resume", "s", "--park")).code).toBe(0);
      expect((await project.shown("s")).status).toBe("input_required");
      expect(readFileSync(project.path("a.txt"), "utf8")).toBe("x\n");
    },
  );

  test(
    "a rule that an answer made allows the call, and the question is not asked again",
    ofCampaign,
    async () => {
      const running = start(["run", "claude-code", "ask:a.txt", "--session", "s"]);
      await running.says("Allow write_file");
      expect((await run("approve", "s", "--for", "project")).code).toBe(0);
      expect((await running.finished).code).toBe(0);
      expect((await run("rules", "list")).stdout).toContain("write_file(a.txt)");
      expect((await run("run", "claude-code", "ask:a.txt")).code).toBe(0);
      expect(readFileSync(project.path("a.txt"), "utf8")).toBe("x\nx\n");
    },
  );

  test(
    "a request is no question any more when the program withdraws it, and unknown requests are answered",
    ofCampaign,
    async () => {
      const { code, stderr } = await run("run", "claude-code", "withdraw unknown-request", "--session", "s");
      expect(code, stderr).toBe(0);
      expect((await run("inbox")).stdout).not.toContain("shell");
      expect(project.answers()).toEqual(["Holdfast does not support the request request_user_dialog"]);
    },
  );
});

test(
  "doctor names the program with its version and abilities, and a missing one is no problem",
  ofCampaign,
  async () => {
    expect((await run("doctor")).stdout).toMatch(
      /programs +claude-code 2\.1\.329 \(resumes sessions.*works in a sandbox/,
    );
    writeFileSync(project.path("bin/claude"), "#!/bin/sh\nexit 1\n");
    expect((await run("doctor")).stdout).toMatch(/programs +[^]*exit code 1[^]*npm install -g/);
    rmSync(project.path("bin/claude"));
    const missing = await project.finishHere(["doctor"], { PATH: project.path("bin") });
    expect(missing.code).toBe(0);
    expect(missing.stdout).toContain("not installed: claude-code");
  },
);

describe("a program that is not as expected", () => {
  test(
    "lines that are no JSON, unknown messages and bytes that are no UTF-8 do no harm",
    ofCampaign,
    async () => {
      const { code, stdout, stderr } = await run("run", "claude-code", "garbage bytes", "--session", "s");
      expect(code, stderr).toBe(0);
      expect(stdout).toBe("Done: garbage bytes\n");
      expect(JSON.stringify((await project.shown("s")).entries)).toContain("a\u{fffd}b");
    },
  );

  test("an endless line is refused", ofCampaign, async () => {
    const { code, stderr } = await run("run", "claude-code", "huge");
    expect(code).toBe(1);
    expect(stderr).toContain("a line of more than 16777216 characters");
  });

  test("its error is told", ofCampaign, async () => {
    const { code, stderr } = await run("run", "claude-code", "exit");
    expect(code).toBe(1);
    expect(stderr).toMatch(/unknown option '--verbose'/);
  });

  test("a refused key pauses the session, and the command says how to sign in", ofCampaign, async () => {
    const { stderr } = await run("run", "claude-code", "api-error", "--session", "s");
    expect(stderr).toMatch(/Invalid API key[^]*\/login/);
    expect((await project.shown("s")).status).toBe("paused");
  });

  test("--resume-at-reset lets a session continue at the reset of a usage limit", ofCampaign, async () => {
    const { code, stdout, stderr } = await run("run", "claude-code", "limit:1", "--resume-at-reset");
    expect(code, stderr).toBe(0);
    expect(stdout).toBe("Done: limit:1\n");
  });

  test(
    "a missing program and one that is too old are errors that say how to install it",
    ofCampaign,
    async () => {
      const old = await project.finishHere(["run", "claude-code", "hello"], { FAKE_CLAUDE_VERSION: "1.0.2" });
      expect(old.code).toBe(0); // The variable is none of the program's.
      writeFileSync(project.path("bin/claude"), "#!/bin/sh\necho '1.0.2 (Claude Code)'\n");
      const { code, stderr } = await run("run", "claude-code", "hello");
      expect(code).toBe(11);
      expect(stderr).toMatch(/E_VERSION_UNSUPPORTED[^]*1\.0\.2[^]*npm install -g/);
      rmSync(project.path("bin/claude"));
      const missing = await project.finishHere(["run", "claude-code", "hello"], {
        PATH: project.path("bin"),
      });
      expect(missing.code).toBe(3);
      expect(missing.stderr).toMatch(/E_PROGRAM_MISSING[^]*npm install -g @anthropic-ai\/claude-code/);
    },
  );

  test.each([
    [{ text: "hello", permissionMode: "bypassPermissions" }],
    [{ text: "hello", model: "--dangerously-skip-permissions" }],
    [{ text: "hello", modle: "sonnet" }],
    [{ text: " " }],
  ])("an input that cannot be is refused before the program starts: %j", async (input) => {
    const { code, stderr } = await run("run", "claude-code", "--input", JSON.stringify(input));
    expect(code, stderr).toBe(2);
    expect(existsSync(project.path("claude.log"))).toBe(false);
  });
});
