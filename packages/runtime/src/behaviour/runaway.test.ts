// Trees of sessions that grow without end stop at a limit, and the root shows the reason.

import { TestClock, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, local, type Agent, type AgentContext } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

function open(agents: readonly Agent[], limits = {}) {
  const storage = new MemoryStorage();
  const runtime = createRuntime({ storage, agents, limits, clock: new TestClock(), development: false });
  opened.push(runtime);
  return { runtime, storage };
}

describe("a chain of agents that ask for each other", () => {
  const waitForNext = async (ctx: AgentContext) => ctx.waitForChild(ctx.spawnAgent(local("link")));
  const handOver = async (ctx: AgentContext) =>
    ctx.handoffToAgent(local("link"), undefined, { completion: "wait_for_child" });

  test.each([
    ["waits for the next", waitForNext],
    ["hands over to the next", handOver],
  ])("a chain fails at its root with the limit and the path to it, where each agent %s", async (_, run) => {
    const link = defineAgent({ name: "link", run });
    const { runtime, storage } = open([link]);
    const root = await runtime.start(link, undefined, { sessionId: "root" });
    expect(await root.settled()).toMatchObject({ status: "failed" });
    const { message } = (await root.session()).error!;
    expect(message).toContain('the agent reached the limit "depth" (8)');
    for (let depth = 1; depth <= 8; depth++)
      expect(message).toContain(`child root${"-0".repeat(depth)} failed`);
    const deepest = await storage.reader.session(`root${"-0".repeat(8)}`);
    expect(deepest).toMatchObject({ status: "failed", error: { code: "limit_exceeded" } });
  });

  test("a chain fails even if an agent catches the error", async () => {
    const link = defineAgent({
      name: "link",
      run: async (ctx): Promise<unknown> => {
        try {
          return await waitForNext(ctx);
        } catch (error) {
          if (ctx.parentId === undefined) throw error;
          return ctx.spawnAgent(local("link")).sessionId;
        }
      },
    });
    const { storage, runtime } = open([link], { depth: 2 });
    await runtime.start(link, undefined, { sessionId: "root" });
    const deepest = "root-0-0";
    await until(async () => (await storage.reader.session(deepest))?.endedAt !== undefined, "it ends");
    expect(await storage.reader.session(deepest)).toMatchObject({ status: "failed" });
  });
});

test("an agent that spawns too many children is paused with the limit, and their work is kept", async () => {
  const leaf = defineAgent({ name: "leaf", run: async () => 1 });
  const wide = defineAgent({
    name: "wide",
    agents: [leaf],
    run: async (ctx) => {
      for (;;) await ctx.waitForChild(ctx.spawnAgent(local(leaf)));
    },
  });
  const { runtime } = open([wide], { children: 3 });
  const session = await runtime.start(wide);
  expect(await session.settled()).toMatchObject({ status: "paused" });
  expect(await session.session()).toMatchObject({
    children: 3,
    pauseReason: "agent_fault",
    error: { code: "limit_exceeded", message: 'the agent reached the limit "children" (3)' },
  });
});
