// The entries that a task finds in the place of a conversation.

import { expect, test } from "vitest";

import { defineAgent, defineTask, local } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";

test("a child that begins a new conversation no longer sees the shared one", async () => {
  const read = defineTask({ name: "read", run: (entries: { content: unknown }[]) => entries });
  const reader = defineAgent({
    name: "reader",
    tasks: [read],
    run: async (ctx) => {
      const seen: unknown[] = [];
      for (const parentId of [undefined, null]) {
        ctx.appendEntry({ role: "user", content: "own", ...(parentId === null ? { parentId } : {}) });
        const entries = await ctx.scheduleTask(read, ctx.conversation() as never);
        seen.push(entries.map(({ content }) => content));
      }
      return seen;
    },
  });
  const parent = defineAgent({
    name: "parent",
    agents: [reader],
    run: async (ctx) => {
      ctx.appendEntry({ role: "user", content: "shared" });
      return ctx.waitForChild(ctx.spawnAgent(local(reader), undefined, { shared: "conversation" }));
    },
  });
  const runtime = createRuntime({ storage: new MemoryStorage(), agents: [parent] });
  try {
    expect(await (await runtime.start(parent)).result()).toEqual([["shared", "own"], ["own"]]);
  } finally {
    await runtime.close();
  }
});
