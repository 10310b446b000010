// Tasks of MCP servers by the extension: their polls, questions, ends and cancels, and the next process of a
// session.
//
// The sessions have other ids than those of the neighbouring tests, because a process ends what an earlier
// one of its session has left.

import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { startMcpHttpServer, type McpHttpServer, type McpMessage } from "@holdfast/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";

import { McpServers } from "@holdfast/mcp";
import { ModelLoop } from "../model-loop/model-loop.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { RECORD } from "../testing/agent-record.ts";
import { fakeModel } from "../testing/fake-model.ts";
import { mcpCapability } from "./mcp-capability.ts";

let folder: string;
let runtime: Runtime;
let servers: McpServers;
let storage: MemoryStorage;
let http: McpHttpServer;
/** The task of the server. `undefined` means that the server does not know it. */
let task: Record<string, unknown> | undefined;
/** Answers that the server got. */
let answers: unknown[];

const DONE = { resultType: "complete", content: [{ type: "text", text: "built" }] };

beforeEach(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-mcp-task-")));
  storage = new MemoryStorage();
  answers = [];
  task = { status: "working" };
  const facts = { taskId: "t-1", createdAt: "", lastUpdatedAt: "", ttlMs: null, pollIntervalMs: 100 };
  const ofTask = ({ method, params }: McpMessage): object => {
    if (task === undefined || params.taskId !== "t-1")
      return { error: { code: -32_602, message: "there is no such task" } };
    if (method === "tasks/update") {
      answers.push(params.inputResponses);
      task = { status: "completed", result: DONE };
    }
    if (method === "tasks/cancel") task = { status: "cancelled" };
    return { result: { resultType: "complete", ...(method === "tasks/get" ? { ...facts, ...task } : {}) } };
  };
  http = await startMcpHttpServer({
    call: () => ({ result: { resultType: "task", ...facts, status: "working" } }),
    task: ofTask,
  });
});

afterEach(async () => {
  await runtime.close();
  await servers.close();
  await http.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A process with a loop; a second call is the next process of the same sessions. */
function open(tool: string) {
  servers = new McpServers({ variable: () => undefined });
  const model = fakeModel((_request, number) =>
    number === 0 ? { calls: [[`mcp__test__${tool}`, {}]] } : { text: "Done." },
  );
  const loop = new ModelLoop({
    model,
    workspace: workspacesByRoot(),
    root: folder,
    capabilities: [mcpCapability(servers)],
  });
  const agent = loop.agent({
    ...RECORD,
    mcpServers: { test: { type: "http", url: http.url, headers: {} } },
    permissions: [{ decision: "allow", tool: "mcp__*", pattern: null }],
  });
  runtime = createRuntime({ storage, agents: [agent] });
  const text = (): string =>
    (model.requests.at(-1)?.messages ?? []).flatMap(({ role, content }) =>
      role === "tool" ? [(content as { text: string }).text] : [],
    )[0] ?? "";
  return { agent, text };
}

const count = (line: string): number => http.log.filter((one) => one === line).length;
const polled = (times: number) =>
  expect.poll(() => count("tasks/get"), { timeout: 30_000 }).toBeGreaterThanOrEqual(times);

test("a task is polled until its end, and its result is that of the call", async () => {
  const { agent, text } = open("count");
  const handle = await runtime.start(agent, "hi", { sessionId: "task-1" });
  await polled(2);
  task = { status: "completed", result: DONE };
  await handle.result();
  expect(text()).toBe("built");
  expect(count("tools/call count")).toBe(1);
});

test("the next process of a session goes on with the task, and begins no second one", async () => {
  const first = open("count");
  await runtime.start(first.agent, "hi", { sessionId: "task-1" });
  await polled(1);
  await runtime.close();
  await servers.close();
  const second = open("count");
  task = { status: "completed", result: DONE };
  await (await runtime.resume("task-1")).result();
  expect(second.text()).toBe("built");
  expect(count("tools/call count")).toBe(1);
});

test("a question of a task is asked once, also by the next process, and the task gets the answer", async () => {
  task = {
    status: "input_required",
    inputRequests: {
      size: {
        method: "elicitation/create",
        params: {
          message: "Which size?",
          requestedSchema: { type: "object", properties: { size: { type: "string" } }, required: ["size"] },
        },
      },
    },
  };
  const first = open("count");
  await runtime.start(first.agent, "hi", { sessionId: "task-1" });
  const prompt = async (): Promise<string> => {
    const session = await storage.reader.session("task-1");
    return session?.waits.find((wait) => wait.type === "input")?.prompt ?? "";
  };
  await expect.poll(prompt, { timeout: 30_000 }).toContain("Which size?");
  await runtime.close();
  await servers.close();
  const second = open("count");
  await runtime.answer("task-1", { size: "large" });
  await (await runtime.resume("task-1")).result();
  expect(second.text()).toBe("built");
  expect(answers).toEqual([{ size: { action: "accept", content: { size: "large" } } }]);
});

test("a cancelled session cancels its task", async () => {
  const { agent } = open("count");
  const handle = await runtime.start(agent, "hi", { sessionId: "task-1" });
  await polled(1);
  await runtime.cancel("task-1");
  await expect(handle.result()).rejects.toThrow();
  expect(count("tasks/cancel")).toBe(1);
});

test("a session that is cancelled while no process runs it cancels its task on its next drive", async () => {
  const first = open("count");
  await runtime.start(first.agent, "hi", { sessionId: "task-1" });
  await polled(1);
  await runtime.close();
  await servers.close();
  open("count");
  await runtime.cancel("task-1");
  await expect((await runtime.resume("task-1")).result()).rejects.toThrow();
  expect(count("tasks/cancel")).toBe(1);
});

test.each([
  ["count", 1, /there is no such task\. The call was sent, and nobody knows whether it took effect/],
  ["greet", 3, /there is no such task/],
])(
  "a task of %s that its server has forgotten begins again as its effect allows",
  async (tool, calls, says) => {
    task = undefined;
    const { agent, text } = open(tool);
    await (await runtime.start(agent, "hi", { sessionId: "task-1" })).result();
    expect(text()).toMatch(says);
    expect(count(`tools/call ${tool}`)).toBe(calls);
  },
);

test.each([
  [
    { status: "failed", error: { code: -1, message: "out of disk" } },
    /ended the task of count as failed: out of disk/,
  ],
  [
    { status: "cancelled", statusMessage: "by its owner" },
    /ended the task of count as cancelled: by its owner/,
  ],
  [{ status: "completed", result: { ...DONE, isError: true } }, /^built$/],
  [{ status: "asleep" }, /answered with a task that is none/],
])("a task that ends as %j is a result that the model reads", async (end, says) => {
  task = end;
  const { agent, text } = open("count");
  await (await runtime.start(agent, "hi", { sessionId: "task-1" })).result();
  expect(text()).toMatch(says);
});
