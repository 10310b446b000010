// Messages between the children of one lead. Each child is a session of its own, so a message that only lives
// in memory would be lost.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";

import type { AgentRecord } from "../../record/agent-record.ts";
import { siblingsCapability } from "./sibling-messages.ts";
import type { ModelRequest } from "../../models/model-provider.ts";
import { workspacesByRoot } from "../../tasks/workspace-source.ts";
import { RECORD } from "../../testing/agent-record.ts";
import { fakeModel, type Say } from "../../testing/fake-model.ts";
import { ModelLoop } from "../model-loop.ts";

/** Model calls of the agent that waits for a message. */
const CALLS_MAX = 40;

let folder: string;
let storage: MemoryStorage;
let runtime: Runtime;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "siblings-"));
  storage = new MemoryStorage();
  runtime = createRuntime({ storage });
});

afterEach(async () => {
  await runtime.close();
  await rm(folder, { recursive: true, force: true });
});

const lead = (more: Partial<AgentRecord>): AgentRecord => ({
  ...RECORD,
  name: "lead",
  prompt: "You lead.",
  ...more,
});

/** Two agents at work: `asker` sends a message to `to`, and `listener` works until it has one. */
async function run(record: AgentRecord, to: string) {
  const sent = Promise.withResolvers<void>();
  const offered: (readonly string[])[] = [];
  const play = async (request: ModelRequest, number: number): Promise<Say> => {
    const received = JSON.stringify(request.messages);
    if (request.system.includes("You lead."))
      return number > 0
        ? { text: received }
        : {
            calls: [
              ["delegate", { agent: "asker", input: "Ask." }],
              ["delegate", { agent: "listener", input: "Listen." }],
            ],
          };
    const isAsker = request.system.includes("You ask.");
    if (isAsker && number === 0) {
      offered.push(request.tools?.map(({ name }) => name) ?? []);
      return { calls: [["message_agent", { agent: to, message: "the port is 8080" }]] };
    }
    if (isAsker) sent.resolve();
    else await sent.promise;
    // Each works until it has read something that was said to it.
    const isReceived =
      received.includes("the port is 8080)") || /A message of|was not passed on/.test(received);
    if (isReceived || number >= CALLS_MAX || offered[0]?.includes("message_agent") !== true)
      return { text: received.match(/\((A message|Your message)[^"]*/)?.[0] ?? "nothing" };
    if (isAsker && to === "listener") return { text: "asked" };
    return { calls: [["todo", { todos: [{ text: `step ${number}`, status: "done" }] }]] };
  };
  const model = fakeModel(play);
  const loop = new ModelLoop({
    model,
    workspace: workspacesByRoot(),
    root: folder,
    capabilities: [siblingsCapability()],
  });
  const children = [
    { ...RECORD, name: "asker", prompt: "You ask.", budget: { maxTokens: 100_000 }, ttlMs: 600_000 },
    { ...RECORD, name: "listener", prompt: "You listen." },
  ].map((child) => loop.agent(child));
  const handle = await runtime.start(loop.agent(record, children), "Go.");
  return { text: JSON.stringify(await handle.result()), offered: offered[0] ?? [], handle };
}

test("an agent sends a message to another one at work, where the file of their lead permits it", async () => {
  const { text } = await run(lead({ relaysMessages: true }), "listener");
  expect(text).toContain("A message of the agent asker, which works beside you:");
  expect(text).toContain("the port is 8080");
});

test("a message for an agent that is not at work is returned with the names of those that are", async () => {
  const { text } = await run(lead({ relaysMessages: true }), "asker");
  expect(text).toContain("Your message to asker was not passed on: at work are");
});

test("without the permission there is no such tool, and a child has the budget and the time of its file", async () => {
  const { offered, handle } = await run(lead({}), "listener");
  expect(offered).toContain("todo");
  expect(offered).not.toContain("message_agent");
  const children = await storage.reader.sessions({ parent: handle.sessionId, limit: 9 });
  const asker = children.find(({ agent }) => agent.name === "asker");
  expect(asker?.account).toMatchObject({ limits: { maxTokens: 100_000 } });
  expect(asker?.deadlineAt).toBeGreaterThan(0);
});
