// Tasks of `defineTask` as tools of a model, and tools that wait for the success of others. Also an agent
// that asks for help again and again.

import { tmpdir } from "node:os";
import type { AgentTracer } from "@holdfast/core";
import { createRuntime, defineTask, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { afterEach, expect, test } from "vitest";
import { z } from "zod";

import type { AgentRecord } from "../../record/agent-record.ts";
import type { ToolContent } from "../../models/model-provider.ts";
import { RECORD } from "../../testing/agent-record.ts";
import { fakeModel, type FakeModel, type Say } from "../../testing/fake-model.ts";
import { workspacesByRoot } from "../../tasks/workspace-source.ts";
import { ModelLoop } from "../model-loop.ts";
import { taskTool } from "./task-tool.ts";

let runtime: Runtime | undefined;
afterEach(() => runtime?.close());

const price = defineTask({
  name: "price",
  description: "The price of a thing.",
  input: z.strictObject({ thing: z.string() }),
  effect: "read",
  run: ({ thing }) => ({ thing, cents: 250 }),
});
const order = defineTask({ name: "order", run: (thing: string) => `ordered ${thing}` });

interface Played {
  readonly output: unknown;
  readonly model: FakeModel;
  readonly questions: readonly string[];
}

async function play(record: Partial<AgentRecord>, replies: readonly Say[]): Promise<Played> {
  const questions: string[] = [];
  const seen = new Set<string>();
  const tracer: AgentTracer = {
    trace: (event) => {
      if (event.type !== "waiting") return;
      for (const wait of event.waits) {
        if (wait.type !== "input" || seen.has(wait.name)) continue;
        seen.add(wait.name);
        questions.push(wait.prompt);
        void runtime?.answer(event.sessionId, { approved: true }, { question: wait.id });
      }
    },
  };
  const model = fakeModel(replies);
  const loop = new ModelLoop({
    model,
    workspace: workspacesByRoot(),
    root: tmpdir(),
    tools: [taskTool(price), taskTool(order)],
  });
  const agent = loop.agent({ ...RECORD, ...record });
  runtime = createRuntime({ storage: new MemoryStorage(), tracer, agents: [agent] });
  return { output: await (await runtime.start(agent, "go")).result(), model, questions };
}

const resultsIn = ({ requests }: FakeModel): readonly string[] =>
  (requests.at(-1)?.messages ?? []).flatMap(({ role, content }) =>
    role === "tool" ? [(content as ToolContent).text] : [],
  );

test("a task is a tool with its schema, and only a task that reads runs without permission", async () => {
  const { model, questions } = await play({}, [
    { calls: [["task__price", { thing: 5 }]] },
    { calls: [["task__price", { thing: "tea" }]] },
    { calls: [["task__order", { input: "tea" }]] },
    { text: "done" },
  ]);
  const [wrong, right, ordered] = resultsIn(model);
  expect(wrong).toContain("the arguments of task__price");
  expect(right).toBe('{"thing":"tea","cents":250}');
  expect(ordered).toBe("ordered tea");
  expect(questions).toHaveLength(1);
  expect(questions[0]).toContain("task__order");
  const offered = model.requests[0]?.tools.find(({ name }) => name === "task__price");
  expect(offered).toMatchObject({
    description: "The price of a thing.",
    inputSchema: { type: "object", required: ["thing"] },
  });
});

test("a tool with a condition is refused until the other tool has succeeded, and the list of tools stays the same", async () => {
  const { model } = await play({ when: { task__order: { after: ["task__price"] } } }, [
    { calls: [["task__order", { input: "tea" }]] },
    { calls: [["task__price", { thing: 5 }]] },
    { calls: [["task__order", { input: "tea" }]] },
    { calls: [["task__price", { thing: "tea" }]] },
    { calls: [["task__order", { input: "tea" }]] },
    { text: "done" },
  ]);
  const refusal = "task__order is not possible yet: first a call of task__price must succeed.";
  const results = resultsIn(model);
  expect([results[0], results[2]]).toEqual([refusal, refusal]);
  expect(results[3]).toContain("(task__order can be called now.)");
  expect(results[4]).toBe("ordered tea");
  const lists = model.requests.map(({ tools, system }) => JSON.stringify([tools, system]));
  expect(new Set(lists).size).toBe(1);
  expect(lists[0]).toContain("It can be called only after a successful call of task__price.");
});

test("an agent that asks for help ten times for one request waits until a person lets it continue", async () => {
  const asks = Array.from({ length: 10 }, (_, at): Say => ({
    calls: [["ask_user", { question: `q${at}` }]],
  }));
  const { questions, output } = await play({}, [...asks, { text: "done" }]);
  expect(output).toBe("done");
  expect(questions).toHaveLength(11);
  expect(questions.at(-1)).toContain("it has asked for help 10 times for this request");
});

test("a task whose name no tool can have is an error of the programmer", () => {
  const task = defineTask({ name: "a".repeat(70), run: () => 1 });
  expect(() => taskTool(task)).toThrow(/cannot be a tool/);
});
