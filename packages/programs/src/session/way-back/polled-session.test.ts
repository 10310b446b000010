// A conversation that an external agent has started, between a further prompt and the turn that takes it.

import { existsSync } from "node:fs";
import { createRuntime, defineAgent, MemoryStorage } from "@holdfast/runtime";
import { expect, test } from "vitest";

import { externalAgent } from "../external-agent.ts";
import type { ExternalAgentProtocol, ExternalTurn } from "../external-agent-protocol.ts";
import { RemoteTurn } from "../../adapters/remote/remote-turn.ts";

type Call = (tool: string, input: object) => Promise<{ readonly text: string }>;

/** A program that makes these calls in its turn, and answers with what they return. */
function program(work: (call: Call) => Promise<unknown>): ExternalAgentProtocol {
  const begin = ({ wayBack }: ExternalTurn): Promise<RemoteTurn> =>
    Promise.resolve(
      new RemoteTurn(async ({ emit, signal }) => {
        emit({ type: "session_started", model: "unknown", boundId: "own" });
        const text = JSON.stringify(await work((tool, input) => wayBack!.call(tool, input, signal)));
        return { type: "answered", text };
      }),
    );
  return {
    name: "polls",
    capabilities: () => ({ steer: "none", followUp: "none", resume: "id", usage: "none", model: false }),
    find: () => Promise.resolve({ program: process.execPath, version: "1" }),
    locate: () => process.execPath,
    start: begin,
    sendMessage: begin,
    resume: begin,
    ownFolders: () => ({ written: [], read: [] }),
    ruledCall: ({ tool }) => ({ tool, subjectKind: "text", subject: null }),
    endLost: () => Promise.resolve(),
  };
}

/** A conversation that answers each prompt with it. */
const echo = defineAgent<unknown, string>({
  name: "echo",
  run: async (ctx) => {
    for (
      let { prompt: text } = ctx.input as { readonly prompt: string };
      ;
      text = await ctx.waitForSignal<string>("next_input")
    )
      ctx.reportProgress({ answer: `echo ${text}` });
  },
});

const mirror = defineAgent({ name: "mirror", run: (ctx) => Promise.resolve(ctx.input) });

async function answers(work: (call: Call) => Promise<unknown>, input: unknown = "begin"): Promise<unknown> {
  const runtime = createRuntime({ storage: new MemoryStorage() });
  try {
    const agent = externalAgent(program(work), {
      folder: process.cwd(),
      permissionModes: ["default"],
      agents: [echo, mirror],
    });
    const handle = await runtime.start(agent, input);
    return JSON.parse(await handle.result()) as unknown;
  } finally {
    await runtime.close();
  }
}

const parameters = (prompt: string): object => ({ parameters: { prompt, conversation: true } });
const start = async (call: Call): Promise<string> => {
  const { text } = await call("start_agent_session", { agent_name: "echo", ...parameters("one") });
  return (JSON.parse(text) as { readonly session_id: string }).session_id;
};

test("a prompt that no turn has taken is work under way, and never has the result of the turn before", async () => {
  const seen = await answers(async (call) => {
    const session_id = await start(call);
    await call("resume_agent_session", { session_id, parameters: { prompt: "two" }, mode: "async_poll" });
    for (;;) {
      const { text } = await call("get_agent_session_result", { session_id });
      const { status, result } = JSON.parse(text) as { readonly status: string; readonly result?: string };
      if (status === "finished") return result;
    }
  });
  expect(seen).toBe("echo two");
});

test("the second of two prompts at once is refused, and the first has its own result", async () => {
  const seen = await answers(async (call) => {
    const session_id = await start(call);
    const ask = (prompt: string): Promise<{ readonly text: string }> =>
      call("resume_agent_session", { session_id, parameters: { prompt }, mode: "sync" });
    return (await Promise.all([ask("two"), ask("three")])).map(({ text }) => text);
  });
  expect(seen).toEqual([
    expect.stringContaining('"result":"echo two"'),
    expect.stringContaining("still works on its last prompt"),
  ]);
});

test("a call that is repeated with its key does no work twice, and is answered as the first one", async () => {
  const seen = await answers(async (call) => {
    const work = { agent_name: "mirror", parameters: { n: 1 }, idempotency_key: "a" };
    const started = [await call("start_agent_session", work), await call("start_agent_session", work)];
    const session_id = await start(call);
    const prompt = { session_id, parameters: { prompt: "two" }, idempotency_key: "b" };
    const answered = [
      await call("resume_agent_session", prompt),
      await call("resume_agent_session", { ...prompt, idempotency_key: "c" }),
      await call("resume_agent_session", { ...prompt, idempotency_key: "c" }),
    ];
    const { text } = await call("list_agent_sessions", {});
    const { sessions } = JSON.parse(text) as { readonly sessions: readonly object[] };
    const results = answered.map((one) => (JSON.parse(one.text) as { readonly result: string }).result);
    return [started.map((one) => one.text), sessions.length, results];
  });
  expect(seen).toEqual([['{"n":1}', '{"n":1}'], 2, ["echo two", "echo two", "echo two"]]);
});

// Without bubblewrap there is no sandbox.
test.skipIf(!existsSync("/usr/bin/bwrap"))(
  "started-sessions-4: a session in a sandbox starts others in the same one alone",
  async () => {
    const begin = async (call: Call, sandbox?: string): Promise<string> => {
      const { text } = await call("start_agent_session", { agent_name: "mirror", parameters: { sandbox } });
      return text;
    };
    const tries = async (call: Call): Promise<unknown> => [await begin(call), await begin(call, "docker")];
    expect(await answers(tries, { text: "begin", sandbox: "bubblewrap" })).toEqual([
      '{"sandbox":"bubblewrap"}',
      'You work in the sandbox "bubblewrap", and so do the sessions that you start.',
    ]);
    expect(await answers(tries)).toEqual(["{}", '{"sandbox":"docker"}']);
  },
);
