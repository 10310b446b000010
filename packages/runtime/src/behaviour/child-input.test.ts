// The input of a child is checked and completed by the schema of its agent, as the input of a start is.

import type { AgentContext, HoldfastError } from "@holdfast/core";
import { until } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { z } from "zod";
import { defineAgent, local, remote, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";

const input = z.object({ name: z.string().trim(), greeting: z.string().default("Hello") });
const greeter = defineAgent({ name: "greeter", input, run: async (_ctx, given) => given });
/** Inputs that the types refuse, as a model or a program gives them. */
const untyped = (mode: typeof local): ReturnType<typeof local<unknown, unknown>> => mode("greeter");

async function outputOf(
  run: (ctx: AgentContext) => Promise<unknown>,
  more: readonly Agent[] = [],
): Promise<unknown> {
  const runtime = createRuntime({ storage: new MemoryStorage(), agents: [greeter, ...more] });
  try {
    return await (await runtime.start(defineAgent({ name: "parent", run }))).result();
  } finally {
    await runtime.close();
  }
}

test.each([
  ["local", local],
  ["remote", remote],
])(
  "a child in the mode %s gets the defaults and conversions of its schema, and the types know them",
  async (_, mode) => {
    const output = await outputOf(async (ctx: AgentContext) =>
      ctx.waitForChild(ctx.spawnAgent(mode(greeter), { name: " Ada " })),
    );
    const runtime = createRuntime({ storage: new MemoryStorage(), agents: [greeter] });
    expect(output).toEqual(await (await runtime.start(greeter, { name: " Ada " })).result());
    expect(output).toEqual({ name: "Ada", greeting: "Hello" });
    await runtime.close();
  },
);

test("a successor gets them as well", async () => {
  const output = await outputOf(
    async (ctx: AgentContext) => ctx.waitForChild(ctx.spawnAgent(local("first"), null)),
    [
      defineAgent({
        name: "first",
        run: async (ctx) => ctx.handoffToAgent(local(greeter), { name: "Ada" }),
      }),
    ],
  );
  expect(output).toEqual({ name: "Ada", greeting: "Hello" });
});

test("an input that does not match is thrown at the ask, before and after a replay, and no child is made", async () => {
  const storage = new MemoryStorage();
  const thrown: HoldfastError[] = [];
  const parent = defineAgent({
    name: "parent",
    run: async (ctx) => {
      try {
        ctx.spawnAgent(untyped(local), { name: 7 });
      } catch (error) {
        thrown.push(error as HoldfastError);
      }
      await ctx.waitForSignal("go");
      return ctx.waitForChild(ctx.spawnAgent(untyped(local), { name: "Ada" }));
    },
  });
  const first = createRuntime({ storage, agents: [parent, greeter] });
  const { sessionId } = await first.start(parent);
  await until(async () => (await storage.reader.session(sessionId))?.waits.length === 1, "the wait");
  await first.close();
  const second = createRuntime({ storage, agents: [parent, greeter] });
  const handle = await second.resume(sessionId);
  await second.signal(sessionId, "go");
  expect(await handle.result()).toEqual({ name: "Ada", greeting: "Hello" });
  expect(thrown.map(({ code, message }) => [code, message])).toEqual(
    Array.from({ length: 2 }, () => ["invalid_input", expect.stringContaining('input of agent "greeter"')]),
  );
  expect((await storage.reader.session(sessionId))?.children).toBe(1);
  await second.close();
});

test("a child that was asked for before its schema was changed is found again", async () => {
  const storage = new MemoryStorage();
  const asks = defineAgent({
    name: "parent",
    run: async (ctx) => {
      const child = ctx.spawnAgent(untyped(local), { name: "Ada" });
      await ctx.waitForSignal("go");
      return ctx.waitForChild(child);
    },
  });
  const first = createRuntime({ storage, agents: [asks, greeter] });
  const { sessionId } = await first.start(asks);
  await until(async () => (await storage.reader.session(sessionId))?.waits.length === 1, "the wait");
  await first.close();
  const stricter = defineAgent({
    name: "greeter",
    input: z.object({ age: z.number() }),
    run: async (_ctx, given) => given,
  });
  const second = createRuntime({ storage, agents: [asks, stricter] });
  const handle = await second.resume(sessionId);
  await second.signal(sessionId, "go");
  expect(await handle.result()).toEqual({ name: "Ada", greeting: "Hello" });
  await second.close();
});
