// Sessions of executors: real programs, processes and gateways over a runtime in memory.

import { NEXT_INPUT } from "@holdfast/core";
import { vanishRuntime } from "@holdfast/runtime/internal";
import { releaseClaim } from "@holdfast/testkit/test-runtime";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { isCampaign, ofCampaign, sampled } from "@holdfast/testkit/campaign";

import { openWorld, type World } from "../../testing/executor-world.ts";
import { findExecutor } from "./profile.ts";

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const WAIT = { timeout: 30_000, interval: 20 };

describe("the executor that comes with Holdfast", () => {
  const profile = () => ({ ...findExecutor(world.folder, "test-executor"), conversationTtlMs: 0 });

  test("a session runs its steps, and completes with the result", ofCampaign, async () => {
    const { runtime, agent } = world.open(profile());
    const handle = await runtime.start(agent, { prompt: 'say hello\nresult {"n":1}\necho this' });
    expect(await handle.result()).toEqual({ result_text: "echo this", result_data: { n: 1 } });
    const { entries } = await conversation(handle.sessionId);
    expect(entries).toEqual([
      ["user", 'say hello\nresult {"n":1}\necho this'],
      ["assistant", "hello"],
      ["assistant", "echo this"],
    ]);
  });

  test("a session fails with the executor's own error and the exit code", ofCampaign, async () => {
    const { runtime, agent } = world.open(profile());
    const handle = await runtime.start(agent, { prompt: "fail out of luck" });
    await expect(handle.result()).rejects.toThrow(
      "test-executor reports an error: out of luck (Process exited with code 1)",
    );
  });

  test.each(["2.0", "2.1", "2.2"] as const)("the executor accepts schema %s", async (schemaVersion) => {
    const { runtime, agent } = world.open({ ...profile(), schemaVersion });
    expect(await (await runtime.start(agent, "echo")).result()).toMatchObject({ result_text: "echo" });
  });

  test("the executor is invoked with the newest schema that it names", async () => {
    const { executor } = world.open(profile());
    expect(await executor.version()).toBe("2.2");
  });
});

describe("the invocation", () => {
  const SHOW =
    'const env = process.env; await event("result", { result_data: { inv, ids: [env.AGENT_SESSION_ID, env.AGENT_SESSION_NAME], names: Object.keys(env), cwd: process.cwd() } });';

  test("an executor gets the session, the prompt and the optional fields on its standard input", async () => {
    const { runtime, agent } = world.open(
      await world.node(SHOW, { schemaVersion: "2.1", config: { model: "opus" } }),
    );
    const input = {
      prompt: "work",
      project_dir: world.folder,
      agent_blueprint: { name: "researcher", system_prompt: "You search." },
      metadata: { ticket: 7 },
    };
    const handle = await runtime.start(agent, input);
    const { result_data: seen } = (await handle.result()) as { result_data: Record<string, unknown> };
    expect(seen).toMatchObject({
      inv: {
        schema_version: "2.1",
        mode: "start",
        session_id: handle.sessionId,
        executor_config: { model: "opus" },
        ...input,
      },
      ids: [handle.sessionId, handle.sessionId],
      cwd: world.folder,
    });
  });

  test(
    "an unknown executor gets schema 2.0, with other parameters as a part of the prompt",
    ofCampaign,
    async () => {
      const { runtime, agent } = world.open(await world.node(SHOW));
      const handle = await runtime.start(agent, { parameters: { prompt: "work", depth: 2 } });
      const { result_data: seen } = (await handle.result()) as { result_data: { inv: object } };
      expect(seen.inv).toEqual({
        schema_version: "2.0",
        mode: "start",
        session_id: handle.sessionId,
        project_dir: world.folder,
        prompt: '<inputs>\n{\n  "depth": 2\n}\n</inputs>\n\nwork',
      });
    },
  );

  test(
    "an executor gets no variable that it did not declare, and a declared secret",
    ofCampaign,
    async () => {
      vi.stubEnv("EXECUTOR_TEST_KEY", "canary-key-4711");
      const profile = await world.node(
        'await event("result", { result_text: process.env.EXECUTOR_TEST_KEY ?? "none", result_data: Object.keys(process.env) });',
      );
      const { runtime, agent } = world.open(profile);
      const bare = (await (await runtime.start(agent, "work")).result()) as { result_data: string[] };
      const known = ["PATH", "HOME", "LANG", "TERM", "TMPDIR", "PWD", "SHLVL", "_", "OLDPWD"];
      expect(
        bare.result_data.filter((name) => !/^(AGENT|HOLDFAST)_/.test(name) && !known.includes(name)),
      ).toEqual([]);
      const declared = world.open({ ...profile, name: "with-key", secrets: ["EXECUTOR_TEST_KEY"] });
      const result = await (await declared.runtime.start(declared.agent, "work")).result();
      expect(result).toMatchObject({
        result_text: "[secret]",
        result_data: expect.arrayContaining(["EXECUTOR_TEST_KEY"]),
      });
      vi.unstubAllEnvs();
    },
  );

  test("a prompt with the characters of shells arrives as it is", ofCampaign, async () => {
    const prompt = "$(touch pwned); `touch pwned` && touch pwned\n'\"\\";
    const { runtime, agent } = world.open(await world.node(SHOW));
    const { result_data: seen } = (await (await runtime.start(agent, prompt)).result()) as {
      result_data: { inv: { prompt: string } };
    };
    expect(seen.inv.prompt).toBe(prompt);
    expect(existsSync(join(world.folder, "pwned"))).toBe(false);
  });

  test.each([
    ["nothing", undefined, "no prompt"],
    ["an empty prompt", { prompt: "" }, "no prompt"],
    ["a number", 7, "no prompt"],
    ["parameters that are no object", { parameters: [1] }, "no prompt"],
    ["a blueprint that is no object", { prompt: "x", agent_blueprint: "b" }, "wrong agent_blueprint"],
    [
      "a folder that is not there",
      { prompt: "x", project_dir: "/no/such/folder" },
      "project_dir is no folder",
    ],
    ["a relative folder", { prompt: "x", project_dir: "." }, "project_dir is no folder"],
  ])("a session with %s as its input fails before a program starts", async (_what, input, text) => {
    const { runtime, agent } = world.open(await world.shell("touch started"));
    await expect((await runtime.start(agent, input)).result()).rejects.toThrow(text);
    expect(existsSync(join(world.folder, "started"))).toBe(false);
  });
});

describe("a program that misbehaves fails its turn with the exact cause", () => {
  const NO_SCHEMA = 'test "$1" = --schema && exit 1\n';
  test.each(
    sampled([
      ["ends without a result", "exit 0", "ended its turn without a result"],
      ["prints garbage", "head -c 100000 /dev/urandom", "ended its turn without a result"],
      ["fails with an error", "echo 'please login' >&2; exit 1", "please login (Process exited with code 1)"],
      ["fails with output", "echo 'no luck'; exit 3", "(stdout) no luck (Process exited with code 3)"],
      ["fails without a word", "exit 7", "Process exited with code 7"],
      [
        "knows another schema",
        "echo 'Unsupported schema version: 2.0. Supported: 9.9' >&2; exit 1",
        "Supported: 9.9",
      ],
      [
        isCampaign ? "writes a gigabyte" : "writes 100 megabytes",
        `head -c ${isCampaign ? 1_000_000_000 : 100_000_000} /dev/zero; exit 4`,
        "code 4; only the end of its output is shown",
      ],
      ["leaves a process that holds its output", "sleep 1000 & exit 6", "Process exited with code 6"],
      ["writes a megabyte of errors first", "head -c 1000000 /dev/zero >&2; echo late; exit 8", "code 8"],
      ["exits as a shell does after a signal", "exit 137", "Process exited with code 137"],
      ["leaves a daemon", "setsid sleep 1000 > /dev/null 2>&1 & exit 5", "Process exited with code 5"],
    ]),
  )("it %s", async (_what, script, text) => {
    const { runtime, agent } = world.open(await world.shell(NO_SCHEMA + script));
    const handle = await runtime.start(agent, "work");
    await expect(handle.result()).rejects.toThrow(text);
    expect(world.processes()).toEqual([]);
  });

  test("it closes its input before a long invocation is written", async () => {
    const { runtime, agent } = world.open(await world.shell(`${NO_SCHEMA}exec <&-; sleep 0.2; exit 9`));
    const handle = await runtime.start(agent, "x".repeat(500_000));
    await expect(handle.result()).rejects.toThrow("Process exited with code 9");
  });

  test.each([
    ["is built for another machine", "\u007fELF\u0002\u0001\u0001 and no program"],
    ["is not text and not a program", "\u0000\u0001\u0002"],
    ["names an interpreter that is not there", "#!/no/such/interpreter\n"],
  ])("it %s", async (_what, content) => {
    const profile = await world.shell("");
    writeFileSync(profile.command[0], content);
    const { runtime, agent } = world.open(profile);
    await expect((await runtime.start(agent, "work")).result()).rejects.toThrow(
      /not started|exited with code/,
    );
  });

  // `npm test` tries five signals, and the tests campaign all (`HOLDFAST_CAMPAIGN`).
  const SIGNALS = isCampaign
    ? [
        ..."SIGHUP SIGINT SIGQUIT SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE SIGKILL SIGUSR1 SIGSEGV SIGUSR2".split(
          " ",
        ),
        ..."SIGPIPE SIGALRM SIGTERM SIGXCPU SIGXFSZ SIGVTALRM SIGPROF SIGIO SIGSYS".split(" "),
      ]
    : ["SIGHUP", "SIGABRT", "SIGKILL", "SIGSEGV", "SIGPIPE"];
  // Signals whose default is the end of a process. SIGCHLD, SIGCONT, SIGURG and SIGWINCH end none, and
  // SIGSTOP stops it.
  test.each(SIGNALS)("it dies by %s", async (signal) => {
    const { runtime, agent } = world.open(
      await world.shell(`${NO_SCHEMA}kill -${signal.slice(3)} $$; sleep 1000`),
    );
    await expect((await runtime.start(agent, "work")).result()).rejects.toThrow(`ended by ${signal}`);
  });

  test("it is not there", async () => {
    const profile = await world.shell("");
    const { runtime, agent } = world.open({ ...profile, command: [join(world.folder, "no-such-program")] });
    await expect((await runtime.start(agent, "work")).result()).rejects.toThrow(
      "not started: there is no program",
    );
  });

  test("it takes longer than its time", async () => {
    const { runtime, agent } = world.open(await world.shell(`${NO_SCHEMA}sleep 1000`, { timeoutMs: 300 }));
    await expect((await runtime.start(agent, "work")).result()).rejects.toThrow("after its time of 300 ms");
  });
});

test.each([
  [
    "what it writes",
    "echo; echo 'All tests pass.'; echo 'Nothing is left.'",
    "All tests pass.\nNothing is left.",
  ],
  ["half a message", `printf '{"type":"resu'`, '{"type":"resu'],
])("a program that knows nothing of reports answers by its output: %s", async (_what, script, text) => {
  const { runtime, agent } = world.open(await world.shell(`test "$1" = --schema && exit 1\n${script}`));
  const handle = await runtime.start(agent, "work");
  expect(await handle.result()).toEqual({ result_text: text, result_data: null });
});

describe("a report", () => {
  test("a wrong report is refused by its field, and the executor may continue", ofCampaign, async () => {
    const { runtime, agent } = world.open(
      await world.node(`
        const wrong = [await call("POST", "/events", {}), await call("POST", "/bind", { executor_session_id: "" }),
          await call("POST", "/events", { event_type: "message", session_id: "ses_other" }), await call("GET", "/agents")];
        await event("result", { result_data: wrong.map(({ status }) => status) });`),
    );
    const result = await (await runtime.start(agent, "work")).result();
    expect(result).toMatchObject({ result_data: [422, 422, 403, 404] });
  });

  test("the last message stands in for a result that was not reported", ofCampaign, async () => {
    const { runtime, agent } = world.open(
      await world.node(
        'await event("message", { role: "assistant", content: [{ type: "text", text: "all done" }] });',
      ),
    );
    expect(await (await runtime.start(agent, "work")).result()).toEqual({
      result_text: "all done",
      result_data: null,
    });
  });

  test(
    "defect 5.2 h: an executor that fills both of its pipes many times before its result completes",
    ofCampaign,
    async () => {
      const script = `
      const written = (stream) => new Promise((done) => stream.write("x".repeat(1_000_000) + "\\n", done));
      await Promise.all([written(process.stdout), written(process.stderr)]);
      await event("result", { result_text: "written" });`;
      const { runtime, agent } = world.open(await world.node(script));
      const handle = await runtime.start(agent, "work");
      expect(await handle.result()).toMatchObject({ result_text: "written" });
    },
  );

  test("a report that nobody waited for is in the session before the turn ends", ofCampaign, async () => {
    const { runtime, agent } = world.open(
      await world.node(`
        await Promise.all(Array.from({ length: 50 }, (_, n) => event("message", { role: "assistant", content: String(n) })));
        await event("result", { result_text: "end" });`),
    );
    const handle = await runtime.start(agent, "work");
    await handle.result();
    const { entries } = await conversation(handle.sessionId);
    expect(
      entries
        .slice(1, -1)
        .map(([, text]) => Number(text))
        .toSorted((a, b) => a - b),
    ).toEqual([...Array(50).keys()]);
  });
});

describe("a conversation", () => {
  const COUNT = `
    const { body } = await call("GET", "/sessions/" + inv.session_id + "/affinity");
    if (inv.mode === "start") await call("POST", "/bind", { session_id: inv.session_id, executor_session_id: "own-1" });
    await event("result", { result_text: inv.mode + " " + inv.prompt + " " + body.affinity.executor_session_id });`;

  test(
    "a session waits for its next input after a turn, and continues by mode resume with the bound id",
    ofCampaign,
    async () => {
      const { runtime, agent } = world.open(await world.node(COUNT, { conversationTtlMs: 60_000 }));
      const handle = await runtime.start(agent, "one");
      await waits(handle.sessionId);
      await handle.signal(NEXT_INPUT, 17);
      await handle.signal(NEXT_INPUT, { prompt: "two" });
      await vi.waitUntil(async () => (await progress(handle.sessionId)) === "resume two own-1", WAIT);
      await handle.cancel({ hard: true });
    },
  );

  test("a conversation that nobody continues completes with its last result", ofCampaign, async () => {
    const { runtime, agent } = world.open(await world.node(COUNT, { conversationTtlMs: 50 }));
    expect(await (await runtime.start(agent, "one")).result()).toEqual({
      result_text: "start one null",
      result_data: null,
    });
  });

  test.each(["a crash", "an orderly stop"])(
    "a turn that was cut off by %s is not repeated: the executor is started with mode resume",
    ofCampaign,
    async (by) => {
      const script = `
      if (inv.mode === "start") {
        await call("POST", "/bind", { session_id: inv.session_id, executor_session_id: "own-7" });
        writeFileSync("bound", ""); setInterval(() => {}, 1000);
      } else {
        const { body } = await call("GET", "/sessions/" + inv.session_id + "/affinity");
        await event("result", { result_text: inv.prompt, result_data: body.affinity.executor_session_id });
      }`;
      const profile = await world.node(script);
      const first = world.open(profile);
      const { sessionId } = await first.runtime.start(first.agent, "delete the file");
      await vi.waitUntil(() => existsSync(join(world.folder, "bound")), WAIT);
      if (by === "a crash") {
        vanishRuntime(first.runtime);
        await releaseClaim(world.storage, sessionId);
      } else await first.runtime.close({ graceMs: 0 });
      const second = world.open(profile);
      await second.runtime.recover();
      const result = (await second.runtime.handle(sessionId).result()) as { result_text: string };
      expect(result).toMatchObject({ result_data: "own-7" });
      expect(result.result_text).toMatch(
        /^Your previous turn was cut off.*The request was:\n\ndelete the file$/s,
      );
      expect(world.processes()).toEqual([]);
    },
  );
});

// Only /proc shows the environment of other processes.
test.runIf(process.platform === "linux")(
  "a process that a killed runner left for a session is ended before the next one starts",
  ofCampaign,
  async () => {
    const profile = await world.node('await event("result", { result_text: process.env.HOLDFAST_TAG });', {
      conversationTtlMs: 60_000,
    });
    const { runtime, agent } = world.open(profile);
    const handle = await runtime.start(agent, "work");
    await waits(handle.sessionId);
    const tag = await progress(handle.sessionId);
    const left = spawn("sleep", ["1000"], { env: { ...process.env, HOLDFAST_TAG: tag } });
    const gone = once(left, "exit");
    await handle.signal(NEXT_INPUT, "more");
    expect(await gone).toEqual([null, "SIGTERM"]);
  },
);

describe("a persistent executor", () => {
  const LOOP = `
    let first, buffer = "";
    for await (const chunk of process.stdin) {
      buffer += chunk;
      for (let at; (at = buffer.indexOf("\\n")) >= 0; buffer = buffer.slice(at + 1)) {
        const message = JSON.parse(buffer.slice(0, at));
        if (message.type === "shutdown") { writeFileSync("shut-down", ""); process.exit(0); }
        first ??= message.mode;
        console.log("noise"); console.log('{"type":"later"}'); console.log('{"type":"turn_complete","turn_id":"99"}');
        console.log(JSON.stringify({ type: "turn_complete", turn_id: message.turn_id, result: first + " " + process.pid + " " + message.prompt }));
      }
    }`;

  test("one process takes several turns while it is warm, and is asked to shut down", async () => {
    const profile = await world.node(LOOP, { lifecycle: "persistent", conversationTtlMs: 60_000 });
    const { runtime, agent, executor } = world.open(profile);
    const handle = await runtime.start(agent, "one");
    await waits(handle.sessionId);
    const [mode, pid] = (await progress(handle.sessionId))!.split(" ");
    expect(mode).toBe("start");
    await handle.signal(NEXT_INPUT, "two");
    await vi.waitUntil(async () => (await progress(handle.sessionId)) === `start ${pid} two`, WAIT);
    await executor.close();
    expect(existsSync(join(world.folder, "shut-down"))).toBe(true);
    expect(world.processes()).toEqual([]);
  });

  test("a turn after the process has gone starts another process with mode resume", ofCampaign, async () => {
    const profile = await world.node(LOOP, { lifecycle: "persistent", conversationTtlMs: 60_000 });
    const { runtime, agent } = world.open(profile, { warmMs: 0 });
    const handle = await runtime.start(agent, "one");
    await waits(handle.sessionId);
    await vi.waitUntil(() => world.processes().length === 0, WAIT);
    await handle.signal(NEXT_INPUT, "two");
    await vi.waitUntil(async () => /^resume \d+ two$/.test((await progress(handle.sessionId)) ?? ""), WAIT);
  });

  test.each(
    sampled([
      [
        "ends in the middle of a message",
        `printf '{"type":"turn_comp'; exit 0`,
        "its last message has no end",
      ],
      ["ends before the turn is complete", "exit 0", "ended before it completed its turn"],
      ["closes its output", "exec >&-; sleep 1000", "closed its standard output"],
      [
        "writes a message without an end",
        "tr '\\0' x < /dev/zero | head -c 3000000; sleep 1000",
        "longer than a megabyte",
      ],
      ["reports an error", `echo '{"type":"turn_complete","error":"quota"}'; sleep 1000`, "quota"],
      ["completes without a result", `echo '{"type":"turn_complete"}'; sleep 1000`, "without a result"],
      ["never completes", "sleep 1000", "longer than 2000 ms"],
    ]),
  )("a turn fails when the process %s", async (_what, script, text) => {
    const profile = await world.shell(`test "$1" = --schema && exit 1\nread line\n${script}`, {
      lifecycle: "persistent",
      timeoutMs: text.includes("2000") ? 2_000 : 60_000,
    });
    const { runtime, agent, executor } = world.open(profile);
    await expect((await runtime.start(agent, "work")).result()).rejects.toThrow(text);
    await executor.close();
    expect(world.processes()).toEqual([]);
  });
});

async function conversation(
  sessionId: string,
): Promise<{ entries: readonly (readonly [string, unknown])[] }> {
  const entries = await world.storage.reader.entries(sessionId, 0, 1_000);
  const said = entries.map(({ role, content }) => [role, JSON.parse(content)] as const);
  return { entries: said.map(([role, content]) => [role, content.text ?? content] as const) };
}

async function waits(sessionId: string): Promise<void> {
  await vi.waitUntil(async () => (await progress(sessionId)) !== undefined, WAIT);
}

/** The answer of the last turn that ended. */
async function progress(sessionId: string): Promise<string | undefined> {
  const session = await world.storage.reader.session(sessionId);
  const value = JSON.parse(session?.progress ?? "{}") as { readonly answer?: string };
  return value.answer;
}
