// The entries that a task finds in the place of a conversation.

import { Readable } from "node:stream";
import { type AgentStorage, type Entry, storageWith } from "@holdfast/core";
import { describe, expect, test } from "vitest";

import { defineAgent, defineTask, local } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";
import { KeptConversations } from "./conversation.ts";

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

test("a fork whose conversation was another session's pauses when that one is gone, and goes on with an import", async () => {
  const read = defineTask({ name: "read", run: (entries: { content: unknown }[]) => entries.length });
  const reader = defineAgent({
    name: "reader",
    tasks: [read],
    run: (ctx) => ctx.scheduleTask(read, ctx.conversation() as never),
  });
  const parent = defineAgent({
    name: "parent",
    agents: [reader],
    run: async (ctx) => {
      ctx.appendEntry({ role: "user", content: "shared" });
      return ctx.waitForChild(ctx.spawnAgent(local(reader), undefined, { shared: "conversation" }));
    },
  });
  const storage = new MemoryStorage();
  const runtime = createRuntime({ storage, agents: [parent, reader] });
  try {
    await (await runtime.start(parent, undefined, { sessionId: "parent" })).result();
    const [child] = await storage.reader.sessions({ parent: "parent", limit: 1 });
    const { sessionId: before } = await runtime.fork(child!.sessionId, { at: 0 });
    expect(await (await runtime.resume(before)).result()).toBe(1);
    const exported: Uint8Array[] = [];
    for await (const text of runtime.export("parent")) exported.push(Buffer.from(text));
    const remove = { type: "delete_session", sessionId: "parent", subtree: "delete" } as const;
    expect(await storage.commit([remove], 0)).toEqual([{ status: "deleted", sessions: 2 }]);
    const late = await runtime.fork(before, { at: 0 });
    expect(await late.settled()).toMatchObject({ status: "paused" });
    expect(await storage.reader.session(late.sessionId)).toMatchObject({
      status: "paused",
      error: {
        message: expect.stringContaining("cannot continue the conversation of session parent"),
        fix: expect.stringContaining("import parent from an export"),
      },
    });
    await runtime.import(Readable.from(exported));
    await runtime.unpause(late.sessionId);
    expect(await (await runtime.resume(late.sessionId)).result()).toBe(1);
  } finally {
    await runtime.close();
  }
});

const entry = (index: number, parent: number | undefined): Entry => ({
  index,
  id: index + 10,
  ...(parent === undefined ? {} : { parent }),
  role: "user",
  turn: 0,
  content: `"${index}"`,
  createdAt: 0,
});

/** A storage of these entries, and what it was asked for. */
function open(entries: Entry[]) {
  const asked: string[] = [];
  const memory = new MemoryStorage();
  const storage: AgentStorage = storageWith(memory, {
    conversation: async (_, leaf) => {
      asked.push(`all up to ${leaf}`);
      const branch: Entry[] = [];
      for (let wanted: number | undefined = leaf; wanted !== undefined;) {
        const found: Entry = entries.find(({ id }) => id === wanted)!;
        branch.unshift(found);
        wanted = found.parent;
      }
      return branch;
    },
    reader: Object.assign(Object.create(memory.reader), {
      entries: async (_: string, from: number, limit: number) => {
        asked.push(`from ${from}`);
        return entries.filter(({ index }) => index >= from).slice(0, limit);
      },
    }),
  });
  return { asked, kept: new KeptConversations(storage) };
}

test("conversation-2: every attempt sees the same entries, and can change none of them", async () => {
  const seen: { content: { text: string } }[][] = [];
  const read = defineTask({
    name: "read",
    run: (entries: { content: { text: string } }[]) => {
      seen.push(entries);
      entries.pop(); // The list is the attempt's own.
    },
  });
  const reader = defineAgent({
    name: "reader",
    tasks: [read],
    run: async (ctx) => {
      for (const text of ["one", "two"]) {
        ctx.appendEntry({ role: "user", content: { text } });
        await ctx.scheduleTask(read, ctx.conversation() as never);
      }
    },
  });
  const runtime = createRuntime({ storage: new MemoryStorage(), agents: [reader] });
  try {
    await (await runtime.start(reader)).result();
  } finally {
    await runtime.close();
  }
  expect(seen.map((entries) => entries.length)).toEqual([0, 1]);
  const first = seen[1]![0]!;
  expect(first.content.text).toBe("one");
  expect(() => (first.content.text = "changed")).toThrow(TypeError);
  expect(() => (first.content = { text: "changed" })).toThrow(TypeError);
});

describe("conversations that are kept between turns", () => {
  test("a conversation that has grown is read from its former end", async () => {
    const entries = [entry(0, undefined), entry(1, 10)];
    const { kept, asked } = open(entries);
    await kept.conversation("s", 11);
    entries.push(entry(2, 11), entry(3, 12));
    expect((await kept.conversation("s", 13)).map(({ id }) => id)).toEqual([10, 11, 12, 13]);
    const [first] = await kept.conversation("s", 13);
    expect((await kept.conversation("s", 13))[0]?.seen).toBe(first?.seen); // Decoded once.
    expect(asked).toEqual(["all up to 11", "from 2"]);
  });

  test.each([
    ["a branch", 12, [entry(0, undefined), entry(1, 10), entry(2, 10)], [10, 12]],
    [
      "a conversation that begins anew",
      13,
      [entry(0, undefined), entry(1, 10), entry(2, undefined), entry(3, 12)],
      [12, 13],
    ],
    ["an earlier end", 10, [entry(0, undefined), entry(1, 10)], [10]],
  ])("%s is read as a whole", async (_, leaf, entries, ids) => {
    const { kept, asked } = open(entries);
    await kept.conversation("s", 11);
    expect((await kept.conversation("s", leaf)).map(({ id }) => id)).toEqual(ids);
    expect(asked.at(-1)).toBe(`all up to ${leaf}`);
  });

  test("nothing is kept of a session that was forgotten, and of a conversation that is too long", async () => {
    const entries = [entry(0, undefined), { ...entry(1, 10), content: `"${"x".repeat(2_000_000)}"` }];
    const { kept, asked } = open(entries);
    await kept.conversation("s", 10);
    kept.forget("s");
    await kept.conversation("s", 10);
    await kept.conversation("s", 11);
    await kept.conversation("s", 11);
    expect(asked).toEqual(["all up to 10", "all up to 10", "from 1", "all up to 11"]);
  });
});
