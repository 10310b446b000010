import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeJson, HoldfastError, type AgentTracer } from "@holdfast/core";
import { createRuntime, MemoryStorage, type Runtime, type SessionHandle } from "@holdfast/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import type { AgentRecord } from "../record/agent-record.ts";
import type { ToolContent } from "../models/model-provider.ts";
import { RECORD } from "../testing/agent-record.ts";
import { fakeModel, type FakeModel, type Say } from "../testing/fake-model.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { LOOP_LIMITS } from "./turn/turn-draft.ts";
import { ModelLoop } from "./model-loop.ts";

let folder: string;
let storage: MemoryStorage;
let runtime: Runtime | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "model-agent-"));
  await writeFile(join(folder, "value.txt"), "one\n");
  storage = new MemoryStorage();
});

afterEach(async () => {
  await runtime?.close();
  await rm(folder, { recursive: true, force: true });
});

interface Played {
  readonly handle: SessionHandle;
  /** Prompts of the questions, in their order. */
  readonly questions: string[];
}

/** Starts a session, and answers its questions in their order: yes, unless told otherwise. */
async function start(
  record: Partial<AgentRecord>,
  model: FakeModel | readonly Say[],
  options: {
    readonly answers?: readonly unknown[];
    readonly input?: unknown;
    readonly agents?: AgentRecord[];
  } = {},
): Promise<Played> {
  const { answers = [], input = "Do it.", agents = [] } = options;
  const asked = new Set<string>();
  const questions: Played["questions"] = [];
  const tracer: AgentTracer = {
    trace: (event) => {
      if (event.type !== "waiting") return;
      for (const wait of event.waits) {
        if (wait.type !== "input" || asked.has(`${event.sessionId} ${wait.name}`)) continue;
        asked.add(`${event.sessionId} ${wait.name}`);
        questions.push(wait.prompt);
        const answer = answers[questions.length - 1] ?? { approved: true };
        void runtime?.answer(event.sessionId, answer, { question: wait.id });
      }
    },
  };
  const provider = Array.isArray(model) ? fakeModel(model) : (model as FakeModel);
  const parts = { model: provider, workspace: workspacesByRoot(), root: folder };
  const loop = new ModelLoop(parts);
  const children = agents.map((child) => loop.agent(child));
  const agent = loop.agent({ ...RECORD, ...record }, children);
  runtime = createRuntime({ storage, tracer, agents: [agent] });
  return { handle: await runtime.start(agent, input), questions };
}

async function entries(id: string): Promise<readonly { readonly role: string; readonly content: unknown }[]> {
  const read = await storage.reader.entries(id, 0, 1_000);
  return read.map(({ role, content }) => ({ role, content: decodeJson(content) }));
}

async function results(id: string): Promise<readonly string[]> {
  return (await entries(id))
    .filter(({ role }) => role === "tool")
    .map(({ content }) => (content as ToolContent).text);
}

describe("a request and its answer", () => {
  test("the output is the model's text after its tool calls", async () => {
    const model = fakeModel([{ calls: [["read_file", { path: "value.txt" }]] }, { text: "It says one." }]);
    const { handle, questions } = await start({}, model);
    expect(await handle.result()).toBe("It says one.");
    expect(questions).toEqual([]);
    expect((await entries(handle.sessionId)).map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "tool",
      "assistant",
    ]);
    expect(model.requests[0]?.system).toContain("You help.");
    expect(model.requests[0]?.system).toContain(folder);
    expect(model.requests[1]?.messages.at(-1)).toMatchObject({ role: "tool", content: { text: "one\n" } });
  });

  test("an input without a text starts nothing", async () => {
    await expect(start({}, [{ text: "never" }], { input: { no: "text" } })).rejects.toMatchObject({
      code: "invalid_input",
    });
  });

  test("an input schema is checked before anything is stored, with the path of what is wrong", async () => {
    const inputSchema = { type: "object", properties: { pages: { type: "integer" } }, required: ["pages"] };
    await expect(start({ inputSchema }, [], { input: { pages: "three" } })).rejects.toMatchObject({
      code: "invalid_input",
      message: expect.stringMatching(/pages/),
    });
    expect(await storage.reader.sessions({ limit: 10 })).toEqual([]);
  });

  test("an output that does not match its schema goes back to the model with what is wrong", async () => {
    const outputSchema = {
      type: "object",
      properties: { level: { enum: ["low", "high"] } },
      required: ["level"],
      additionalProperties: false,
    };
    const { handle } = await start({ outputSchema }, [
      { text: "It is low." },
      { calls: [["submit_output", { level: "medium" }]] },
      { calls: [["submit_output", { level: "low" }]] },
    ]);
    expect(await handle.result()).toEqual({ level: "low" });
    expect((await entries(handle.sessionId))[2]?.content).toContain("call submit_output");
    expect((await results(handle.sessionId))[0]).toContain('/level: must be one of "low", "high"');
  });

  test("an output schema of no object is offered as the property `output`", async () => {
    const { handle } = await start({ outputSchema: { type: "array", items: { type: "string" } } }, [
      { calls: [["submit_output", { output: ["a"] }]] },
    ]);
    expect(await handle.result()).toEqual(["a"]);
  });

  test("a model that never gives a result ends the session with the reason", async () => {
    const { handle } = await start(
      {},
      fakeModel(() => ({ text: " " })),
    );
    await expect(handle.result()).rejects.toMatchObject({
      message: expect.stringContaining(`gave no result in ${LOOP_LIMITS.corrections} replies`),
    });
  });
});

describe("permissions", () => {
  const WRITE: Say = { calls: [["write_file", { path: "new.txt", content: "new\n" }]] };

  test("X9: a change is asked for, with the whole call, and happens after the approval", async () => {
    const { handle, questions } = await start({}, [WRITE, { text: "Done." }]);
    await handle.result();
    expect(questions).toEqual(["Allow write_file: new.txt?"]);
    expect(await readFile(join(folder, "new.txt"), "utf8")).toBe("new\n");
  });

  test("X9: an approval counts for one call, and not for the same call again or for another one", async () => {
    const other: Say = { calls: [["write_file", { path: "new.txt", content: "other\n" }]] };
    const { handle, questions } = await start({}, [WRITE, WRITE, other, { text: "Done." }], {
      answers: [{ approved: true }, { approved: true }, { approved: false }],
    });
    await handle.result();
    expect(questions).toEqual(Array.from({ length: 3 }, () => "Allow write_file: new.txt?"));
    expect(await readFile(join(folder, "new.txt"), "utf8")).toBe("new\n");
  });

  test("a refused call changes nothing, and the model reads the reason", async () => {
    const { handle } = await start({}, [WRITE, { text: "Then not." }], {
      answers: [{ approved: false, reason: "not here" }],
    });
    await handle.result();
    expect(await results(handle.sessionId)).toEqual(["The person did not allow it. The reason: not here"]);
    await expect(readFile(join(folder, "new.txt"))).rejects.toThrow("ENOENT");
  });

  test("an allow rule with a pattern permits that command, and no line with another one behind it", async () => {
    const { handle, questions } = await start(
      { permissions: [{ decision: "allow", tool: "shell", pattern: "echo:*" }] },
      [
        { calls: [["shell", { command: "echo hi" }]] },
        { calls: [["shell", { command: "echo hi; touch made.txt" }]] },
        { text: "Done." },
      ],
      { answers: [{ approved: false }] },
    );
    await handle.result();
    expect(questions).toEqual(["Allow shell: echo hi; touch made.txt?"]);
    expect((await results(handle.sessionId))[0]).toBe("exit code 0\nhi");
    await expect(readFile(join(folder, "made.txt"))).rejects.toThrow("ENOENT");
  });

  test("a denied call is not asked for", async () => {
    const { handle, questions } = await start(
      { permissions: [{ decision: "deny", tool: "write_file", pattern: "*.txt" }] },
      [WRITE, { text: "Then not." }],
    );
    await handle.result();
    expect(questions).toEqual([]);
    expect((await results(handle.sessionId))[0]).toContain("Not permitted");
  });

  test("a tool that the record does not name is no tool for the model", async () => {
    const model = fakeModel([WRITE, { text: "Then not." }]);
    const { handle } = await start({ tools: ["read_file", "git_*"] }, model);
    await handle.result();
    expect(model.requests[0]?.tools.map(({ name }) => name)).toEqual(["read_file", "git_diff"]);
    expect((await results(handle.sessionId))[0]).toContain('There is no tool "write_file"');
  });

  test("an agent that plans first changes nothing before its plan is approved", async () => {
    const { handle, questions } = await start(
      { planFirst: true, permissions: [{ decision: "allow", tool: "write_file", pattern: null }] },
      [WRITE, { calls: [["propose_plan", { plan: "write new.txt" }]] }, WRITE, { text: "Done." }],
    );
    await handle.result();
    expect(questions).toEqual(["Approve this plan?"]);
    expect((await results(handle.sessionId)).map((text) => text.slice(0, 40))).toEqual([
      expect.stringContaining("is not possible yet"),
      "The plan was approved. Carry it out.",
      "new.txt: written, 4 bytes",
    ]);
  });

  test("an agent that plans first starts no other agent before its plan is approved", async () => {
    const delegate = { calls: [["delegate", { agent: "other", input: "x" }]] } as const;
    const model = fakeModel((request, number) => {
      if (request.system.includes("You count sheep.")) return { text: "helped" };
      if (number === 1) return { calls: [["propose_plan", { plan: "let other help" }]] };
      return number > 2 ? { text: "Done." } : delegate;
    });
    const { handle } = await start({ planFirst: true }, model, {
      agents: [{ ...RECORD, name: "other", prompt: "You count sheep." }],
    });
    await handle.result();
    expect(await results(handle.sessionId)).toEqual([
      expect.stringContaining("delegate is not possible yet"),
      "The plan was approved. Carry it out.",
      "helped",
    ]);
  });
});

describe("tool calls", () => {
  test("every call gets a result: wrong names, wrong arguments, arguments that are not JSON, and too many", async () => {
    const many = Array.from({ length: LOOP_LIMITS.callsPerReply + 3 }, (_, at) => [
      "read_file",
      { path: "value.txt", startLine: 1, lines: at + 1 },
    ]) as Say["calls"];
    const { handle } = await start({}, [
      {
        calls: [
          ["no_such_tool", {}],
          ["read_file", { file: "value.txt" }],
          ["read_file", {}, "no JSON"],
        ],
      },
      { calls: many ?? [] },
      { text: "Done." },
    ]);
    await handle.result();
    const texts = await results(handle.sessionId);
    expect(texts.slice(0, 3)).toEqual([
      expect.stringContaining('There is no tool "no_such_tool"'),
      expect.stringContaining("the arguments of read_file are not right"),
      "no JSON",
    ]);
    expect(texts).toHaveLength(3 + LOOP_LIMITS.callsPerReply + 3);
    expect(texts.at(-1)).toBe(
      `Not carried out: only ${LOOP_LIMITS.callsPerReply} calls of one reply are carried out.`,
    );
    expect(texts[3]).toBe("one");
  });

  test("a model that repeats one call is stopped by a question to a person", async () => {
    const model = fakeModel(() => ({ calls: [["read_file", { path: "value.txt" }]] }));
    const { handle, questions } = await start({}, model, {
      answers: [{ approved: false, reason: "enough" }],
    });
    await expect(handle.result()).rejects.toMatchObject({
      message: expect.stringContaining("was called 5 times"),
    });
    expect(questions[0]).toContain("read_file was called 5 times");
  });

  test("the turn limit is a question, and an approval lets the agent continue", async () => {
    const model = fakeModel((_request, number) =>
      number < 5 ? { calls: [["read_file", { path: "value.txt", lines: number + 1 }]] } : { text: "Done." },
    );
    const { handle, questions } = await start({ turnsMax: 3 }, model);
    expect(await handle.result()).toBe("Done.");
    expect(questions).toEqual([expect.stringContaining("3 model calls")]);
  });

  test("a question of the model waits for its answer", async () => {
    const { handle, questions } = await start(
      {},
      [{ calls: [["ask_user", { question: "Which one?", options: ["a", "b"] }]] }, { text: "b it is." }],
      { answers: ["b"] },
    );
    await handle.result();
    expect(questions).toEqual(["Which one?"]);
    expect(await results(handle.sessionId)).toEqual(["b"]);
  });

  test("delegated work runs in children beside each other, and a failed child is a result", async () => {
    const model = fakeModel((request, number) => {
      if (request.system.includes("You sum."))
        return { text: `sum of ${String(request.messages[0]?.content)}` };
      if (request.system.includes("You fail.")) return { text: "" };
      if (number > 0) return { text: "Done." };
      return {
        calls: [
          ["delegate", { agent: "sums", input: "1 and 2" }],
          ["delegate", { agent: "fails", input: "x" }],
        ],
      };
    });
    const child = { ...RECORD, name: "sums", prompt: "You sum." };
    const { handle } = await start({}, model, {
      agents: [child, { ...RECORD, name: "fails", prompt: "You fail." }],
    });
    expect(await handle.result()).toBe("Done.");
    expect(await results(handle.sessionId)).toEqual([
      "sum of 1 and 2",
      expect.stringContaining("gave no result"),
    ]);
  });
});

describe("conversations", () => {
  test("a conversation waits for its next request, and the model reads what was said before", async () => {
    const model = fakeModel([{ text: "Hello." }, { text: "You said hi." }]);
    const { handle } = await start({ isConversation: true, ttlMs: 60_000 }, model, { input: "hi" });
    await expect.poll(async () => (await handle.session()).status).toBe("waiting");
    await handle.signal("next_input", "what did I say?");
    await expect.poll(() => model.requests.length).toBe(2);
    expect(model.requests[1]?.messages.map(({ content }) => content)).toEqual([
      "hi",
      { text: "Hello.", toolCalls: [] },
      "what did I say?",
    ]);
    await expect.poll(async () => (await entries(handle.sessionId)).length).toBe(4);
    expect((await handle.session()).status).toBe("waiting");
  });

  test("a message that comes after the answer is the next request", async () => {
    const model = fakeModel([{ text: "Hello." }, { text: "Turned." }]);
    const { handle } = await start({ isConversation: true, ttlMs: 60_000 }, model, { input: "hi" });
    await expect.poll(async () => (await handle.session()).status).toBe("waiting");
    await handle.signal("steer", "turn left");
    await expect.poll(() => model.requests.length).toBe(2);
    expect(model.requests[1]?.messages.at(-1)).toEqual({
      role: "user",
      content: { text: "turn left", delivery: "queue" },
    });
  });

  test("a message in the middle of the work reaches the model before its next call", async () => {
    const gate = Promise.withResolvers<void>();
    const model = fakeModel(async (_request, number) => {
      if (number > 0) return { text: "As you say." };
      await gate.promise;
      return { calls: [["write_file", { path: "a.txt", content: "a" }]] };
    });
    const { handle, questions } = await start({}, model);
    await expect.poll(() => model.requests.length).toBe(1);
    await handle.signal("steer", { text: "Stop, do not write." });
    gate.resolve();
    expect(await handle.result()).toBe("As you say.");
    expect(questions).toEqual([]);
    expect(await results(handle.sessionId)).toEqual([
      "Not carried out: the user has sent a message in between, which follows.",
    ]);
    expect(model.requests[1]?.messages.at(-1)).toEqual({
      role: "user",
      content: { text: "Stop, do not write.", delivery: "steer" },
    });
  });
});

describe("models", () => {
  test("the next model of the list is asked when one cannot be reached", async () => {
    const asked: (string | undefined)[] = [];
    const model = fakeModel([{ text: "From the second." }]);
    const source = (wanted: string | undefined) => {
      asked.push(wanted);
      if (wanted === "a/one")
        return fakeModel(() => {
          throw new HoldfastError("model_auth", "no key");
        });
      return model;
    };
    const loop = new ModelLoop({ model: source, workspace: workspacesByRoot(), root: folder });
    const agent = loop.agent({ ...RECORD, model: "a/one", fallbackModels: ["b/two"] });
    runtime = createRuntime({ storage });
    expect(await (await runtime.start(agent, "hi")).result()).toBe("From the second.");
    expect(new Set(asked)).toEqual(new Set(["a/one", "b/two"]));
  });
});

test("a session continues with the record of its start when the file has changed", async () => {
  const model = fakeModel((request, number) =>
    number === 0
      ? { calls: [["ask_user", { question: "Go on?" }]] }
      : { text: request.system.split("\n")[0] ?? "" },
  );
  const parts = { model, workspace: workspacesByRoot(), root: folder };
  runtime = createRuntime({ storage });
  const handle = await runtime.start(new ModelLoop(parts).agent(RECORD), "hi");
  await expect.poll(async () => (await handle.session()).status).toBe("input_required");
  await runtime.close();
  const changed: AgentRecord = {
    ...RECORD,
    prompt: "Another.",
    source: { ...RECORD.source, hash: "fedcba9876543210" },
  };
  runtime = createRuntime({ storage, agents: [new ModelLoop(parts).agent(changed)] });
  const resumed = await runtime.resume(handle.sessionId);
  await runtime.answer(handle.sessionId, "yes");
  expect(await resumed.result()).toBe("You help.");
});

test("an input can name the folder of its session", async () => {
  const read: Say = { calls: [["read_file", { path: "value.txt" }]] };
  const loop = new ModelLoop({
    model: fakeModel([read, { text: "Done." }]),
    workspace: workspacesByRoot(),
    root: tmpdir(),
    place: async (_record, _task, _begin, input) => ({ address: (input as { folder: string }).folder }),
  });
  runtime = createRuntime({ storage });
  const handle = await runtime.start(loop.agent(RECORD), { folder, text: "Read it." });
  await handle.result();
  expect(await results(handle.sessionId)).toEqual(["one\n"]);
});

test("git facts are part of the prompt", async () => {
  execFileSync("git", ["init", "-q", "-b", "trunk"], { cwd: folder });
  const model = fakeModel([{ text: "Hello." }]);
  const { handle } = await start({}, model);
  await handle.result();
  expect(model.requests[0]?.system).toContain("on the git branch trunk");
});
