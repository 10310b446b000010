// Agents that a development server loads again, under the name and version that they had before.

import { turns, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTask, local, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

function open(options: Partial<RuntimeOptions> = {}): Runtime {
  const storage = new MemoryStorage();
  const runtime = createRuntime({ storage, replaceAgents: true, development: false, ...options });
  opened.push(runtime);
  return runtime;
}

/** An edited file: other objects of the same names. `asks` is its name for the step before the wait. */
function edition(text: string, asks = "read"): Agent {
  const say = defineTask({ name: "say", run: (name: string) => `${text}, ${name}` });
  return defineAgent({
    name: "greeter",
    tasks: [say],
    run: async (ctx) => {
      await ctx.run(asks, () => 1);
      const name = await ctx.waitForSignal<string>("name");
      return ctx.scheduleTask(say, name);
    },
  });
}

async function waiting(runtime: Runtime, agent: Agent): Promise<string> {
  const { sessionId } = await runtime.start(agent);
  await until(async () => (await runtime.handle(sessionId).session()).status === "waiting", "it waits");
  return sessionId;
}

describe.each([
  ["adopts sessions", true],
  ["runs only its own", false],
])("a runtime that %s", (_, adopt) => {
  test("an edited agent takes the place of the one before, for new sessions and for those that wait", async () => {
    const runtime = open({ adopt });
    const before = await waiting(runtime, edition("hello"));
    const after = await waiting(runtime, edition("good day"));
    const ends = [before, after].map(async (sessionId) => {
      await runtime.signal(sessionId, "name", "Ada");
      return runtime.handle(sessionId).result();
    });
    expect(await Promise.all(ends)).toEqual(["good day, Ada", "good day, Ada"]);
  });

  test("a session whose edited agent asks for something else is paused, as after a restart", async () => {
    const runtime = open({ adopt });
    const sessionId = await waiting(runtime, edition("hello"));
    await runtime.start(edition("hello", "look up"));
    const refused = runtime.handle(sessionId).result();
    await expect(refused).rejects.toMatchObject({ code: "nondeterminism" });
    expect((await runtime.handle(sessionId).session()).status).toBe("paused");
    await runtime.start(edition("hi"));
    await runtime.resume(sessionId);
    await runtime.signal(sessionId, "name", "Eve");
    expect(await runtime.handle(sessionId).result()).toBe("hi, Eve");
  });
});

test("a step that runs ends with the code that it began with, and its session waits with the new code", async () => {
  const runtime = open();
  const { promise: gate, resolve: release } = Promise.withResolvers<void>();
  const slow = (text: string): Agent =>
    defineAgent({
      name: "slow",
      run: async (ctx) => {
        const read = await ctx.run("read", async () => (await gate, text));
        return `${read}, ${text}, ${await ctx.waitForSignal<string>("name")}`;
      },
    });
  const { sessionId } = await runtime.start(slow("old"));
  await runtime.start(slow("new"));
  release();
  await until(async () => (await runtime.handle(sessionId).session()).status === "waiting", "it waits");
  await turns(10);
  await runtime.signal(sessionId, "name", "Ada");
  expect(await runtime.handle(sessionId).result()).toBe("old, new, Ada");
});

test("an edited child and its tasks are replaced with the agent that starts it", async () => {
  const runtime = open();
  const family = (text: string): Agent => {
    const task = defineTask({ name: "task", run: () => text });
    const child = defineAgent({
      name: "child",
      tasks: [task],
      run: async (ctx) => ctx.scheduleTask(task, undefined),
    });
    return defineAgent({
      name: "parent",
      agents: [child],
      run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(child))),
    });
  };
  expect(await (await runtime.start(family("old"))).result()).toBe("old");
  expect(await (await runtime.start(family("new"))).result()).toBe("new");
});

test("two agents or two tasks of one name that are given together are refused all the same", async () => {
  const twins = [edition("a"), edition("b")];
  expect(() => open({ agents: twins })).toThrow(/two different agents/);
  const parent = defineAgent({ name: "parent", agents: twins, run: async () => 0 });
  await expect(open().start(parent)).rejects.toThrow(/two different agents/);
  const tasks = [1, 2].map((n) => defineTask({ name: "same", run: () => n }));
  const agent = defineAgent({ name: "agent", tasks, run: async () => 0 });
  await expect(open().start(agent)).rejects.toThrow(/two different tasks/);
});

test("without the option the error names it, and the option cures it", async () => {
  for (const replaceAgents of [false, true]) {
    const runtime = open({ replaceAgents });
    await runtime.start(edition("hello"));
    const again = runtime.start(edition("hi"));
    if (replaceAgents) await expect(again).resolves.toBeDefined();
    else
      await expect(again).rejects.toMatchObject({
        fix: expect.stringContaining("createRuntime({ replaceAgents: true })") as unknown,
      });
  }
});
