// A session with all sessions below it as one file: written as it stood at one moment, stored all or not at
// all.

import { createHash } from "node:crypto";
import { BEHAVIOUR_FLAGS, JOURNAL_FORMAT, type AgentStorage, type StorageReader } from "@holdfast/core";
import { gate, journalOf, storageWith, TestClock, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTask, local, type Agent } from "../agents/define.ts";
import type { RuntimeOptions } from "../api/runtime-api.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

function open(agents: readonly Agent[], options: Partial<RuntimeOptions> = {}) {
  const storage: AgentStorage = options.storage ?? new MemoryStorage();
  const clock = new TestClock();
  const runtime = createRuntime({ agents, clock, adopt: false, development: false, ...options, storage });
  opened.push(runtime);
  return { runtime, storage };
}

async function textOf(lines: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const line of lines) text += line;
  return text;
}

async function* bytes(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

/** The file with another text in it, and the checksum of that. */
function changed(text: string, is: string | RegExp, becomes: string): string {
  const lines = text.slice(0, text.lastIndexOf("{")).replace(is, becomes);
  expect(lines).not.toBe(text.slice(0, text.lastIndexOf("{")));
  return `${lines}${JSON.stringify({ sha256: createHash("sha256").update(lines).digest("hex") })}\n`;
}

/**
 * A root that waits for a person and for its child. The child runs a task. The child's own child waits for a
 * signal, and has an unread one.
 */
function family(work: () => Promise<void>) {
  const costing = defineTask({
    name: "costing",
    cost: () => ({ maxTokens: 30 }),
    run: async (_: number, task) => {
      await work();
      task.reportUsage({ model: "m", inputTokens: 30, outputTokens: 0 });
    },
  });
  const leaf = defineAgent({
    name: "leaf",
    run: async (ctx) => [await ctx.waitForSignal<string>("first"), await ctx.waitForSignal<string>("later")],
  });
  const child = defineAgent({
    name: "child",
    agents: [leaf],
    tasks: [costing],
    run: async (ctx) => {
      const below = ctx.spawnAgent(local(leaf));
      await ctx.scheduleTask(costing, 1);
      return ctx.waitForChild(below);
    },
  });
  const root = defineAgent({
    name: "root",
    agents: [child],
    run: async (ctx) => {
      const below = ctx.spawnAgent(local(child), undefined, { budget: { maxTokens: 70 } });
      return [await ctx.requestInput("Go on?"), await ctx.waitForChild(below)];
    },
  });
  return [root, child, leaf] as const;
}

const IDS = ["s", "s-0", "s-0-0"] as const;

async function waiting(options: Partial<RuntimeOptions> = {}) {
  const { opened: never } = gate();
  let ran = 0;
  const work = async (): Promise<void> => {
    ran++;
    await never;
  };
  const agents = family(work);
  const here = open(agents, options);
  await here.runtime.start(agents[0], undefined, { sessionId: "s", budget: { maxTokens: 100, maxSteps: 9 } });
  await until(
    async () => (await here.storage.reader.session("s-0-0"))?.status === "waiting",
    "the leaf waits",
  );
  await until(
    async () => (await here.storage.reader.session("s"))?.status === "input_required",
    "the root asks",
  );
  await until(() => ran === 1, "the task runs");
  await here.runtime.signal("s-0-0", "later", "unread");
  return here;
}

const tree = { tree: true } as const;
const rowsOf = (storage: AgentStorage) => Promise.all(IDS.map((id) => storage.reader.session(id)));

describe("a tree of sessions", () => {
  test("an imported tree keeps its waits, its unread signals and its budgets, and runs to its end", async () => {
    const { runtime, storage } = await waiting();
    const before = await rowsOf(storage);
    expect(before[0]?.account?.reserved.tokens).toBe(30);
    const text = await textOf(runtime.export("s", tree));
    const agents = family(async () => {});
    const there = open(agents);
    const imported = await there.runtime.import(bytes(text));
    expect(imported).toMatchObject({ sessionId: "s", created: true });
    for (const [i, row] of (await rowsOf(there.storage)).entries()) {
      const { account, ...rest } = before[i]!;
      expect(row).toEqual({
        ...rest,
        updatedAt: expect.any(Number) as number,
        ...(account === undefined
          ? {}
          : { account: { ...account, reserved: { tokens: 0, costMicroUsd: 0, steps: 0, turns: 0 } } }),
      });
      expect(await journalOf(there.storage, IDS[i]!)).toEqual(await journalOf(storage, IDS[i]!));
    }

    for (const id of IDS) await there.runtime.resume(id);
    await there.runtime.signal("s-0-0", "first", "read");
    await there.runtime.answer("s", { approved: true });
    expect(await imported.result()).toEqual([{ approved: true }, ["read", "unread"]]);
    expect((await imported.session()).account).toMatchObject({
      spent: { tokens: 30, steps: 2 }, // The task ran in both databases.
      reserved: { tokens: 0 },
    });
  });

  test("a part of a tree is detached from what is above it, and its share of the budget pays for all below", async () => {
    const { runtime, storage } = await waiting();
    await runtime.setBudget("s", { maxTokens: 60 });
    const there = open(family(async () => {}));
    await there.runtime.import(bytes(await textOf(runtime.export("s-0", tree))));
    const [root, child, leaf] = await rowsOf(there.storage);
    expect(root).toBeUndefined();
    // The root has 30 of its 60 tokens left, and the child itself has reserved the others.
    expect(child).toMatchObject({
      detachedFrom: { sessionId: "s" },
      payers: ["s-0"],
      account: { limits: { maxTokens: 60 }, reserved: { tokens: 0 } },
    });
    expect(leaf).toMatchObject({ parent: { sessionId: "s-0" }, payers: ["s-0"] });
    expect((await rowsOf(storage))[2]?.payers).toEqual(["s-0", "s"]);
    for (const id of ["s-0", "s-0-0"]) await there.runtime.resume(id);
    await there.runtime.signal("s-0-0", "first", "read");
    expect(await there.runtime.handle("s-0").result()).toEqual(["read", "unread"]);
  });

  test("a successor and its children are in the file of the session that handed over", async () => {
    const leaf = defineAgent({ name: "leaf", run: (ctx) => ctx.waitForSignal<number>("go") });
    const next = defineAgent({
      name: "next",
      agents: [leaf],
      run: (ctx) => ctx.waitForChild(ctx.spawnAgent(local(leaf))),
    });
    const first = defineAgent({
      name: "first",
      agents: [next],
      run: async (ctx) => ctx.handoffToAgent(local(next), undefined, { completion: "immediate" }),
    });
    const agents = [first, next, leaf];
    const here = open(agents);
    await here.runtime.start(first, undefined, {
      sessionId: "s",
      budget: { maxTokens: 9 },
    });
    await until(
      async () => (await here.storage.reader.session("s-0-0"))?.status === "waiting",
      "the leaf waits",
    );
    const text = await textOf(here.runtime.export("s", tree));
    const there = open(agents);
    await there.runtime.import(bytes(text));
    expect(await rowsOf(there.storage)).toMatchObject([
      { status: "completed", handedOffTo: "s-0" },
      { payers: ["s"] },
      { parent: { sessionId: "s-0" }, payers: ["s"] },
    ]);
    for (const id of ["s-0", "s-0-0"]) await there.runtime.resume(id);
    await there.runtime.signal("s-0-0", "go", 7);
    expect(await there.runtime.handle("s-0").result()).toBe(7);
  });

  test("the sessions of a file belong to one moment, although they change while they are read", async () => {
    const leaf = defineAgent({ name: "leaf", run: (ctx) => ctx.waitForSignal<number>("go") });
    const root = defineAgent({
      name: "root",
      agents: [leaf],
      run: (ctx) => ctx.waitForChild(ctx.spawnAgent(local(leaf))),
    });
    const memory = new MemoryStorage();
    const here = open([root, leaf], { storage: memory });
    const handle = await here.runtime.start(root, undefined, { sessionId: "s" });
    await until(async () => (await memory.reader.session("s-0"))?.status === "waiting", "the leaf waits");
    let isFirst = true;
    const { reader } = memory;
    const changing: StorageReader = {
      ...readerOf(reader),
      // The leaf ends between the reading of its parent and its own.
      async pendingSignals(id) {
        const signals = await reader.pendingSignals(id);
        if (isFirst) {
          isFirst = false;
          await here.runtime.signal("s-0", "go", 7);
          await handle.result();
        }
        return signals;
      },
    };
    const exporting = open([], { storage: storageWith(memory, { reader: changing }) });
    const there = open([]);
    await there.runtime.import(bytes(await textOf(exporting.runtime.export("s", tree))));
    expect((await there.storage.reader.session("s-0"))?.status).toBe("completed");
    expect(await there.runtime.handle("s").result()).toBe(7);
  });

  test("sessions that change at each reading are not exported, and the error says to pause them", async () => {
    const memory = new MemoryStorage();
    const leaf = defineAgent({ name: "leaf", run: (ctx) => ctx.waitForSignal("go") });
    const here = open([leaf], { storage: memory });
    await here.runtime.start(leaf, undefined, { sessionId: "s" });
    let sent = 0;
    const { reader } = memory;
    const changing: StorageReader = {
      ...readerOf(reader),
      async pendingSignals(id) {
        await here.runtime.signal(id, "other", ++sent);
        return reader.pendingSignals(id);
      },
    };
    const exporting = open([], { storage: storageWith(memory, { reader: changing }) });
    await expect(textOf(exporting.runtime.export("s", tree))).rejects.toMatchObject({
      code: "conflict",
      fix: expect.stringContaining("holdfast pause") as string,
    });
    await expect(textOf(exporting.runtime.export("nobody", tree))).rejects.toMatchObject({
      code: "session_not_found",
    });
  });
});

describe("the import of a tree", () => {
  test("a file that was imported before changes nothing", async () => {
    const { runtime, storage } = await waiting();
    const text = await textOf(runtime.export("s", tree));
    const there = open([]);
    await there.runtime.import(bytes(text));
    await there.runtime.signal("s", "other", 1);
    const before = await rowsOf(there.storage);
    expect(await there.runtime.import(bytes(text))).toMatchObject({ sessionId: "s", created: false });
    expect(await rowsOf(there.storage)).toEqual(before);
    const original = await rowsOf(storage);
    expect(await runtime.import(bytes(text))).toMatchObject({ created: false });
    expect(await rowsOf(storage)).toEqual(original);
  });

  test("another session with an id of the tree refuses the import by its id, and nothing is stored", async () => {
    const text = await textOf((await waiting()).runtime.export("s", tree));
    const leaf = defineAgent({ name: "leaf", run: (ctx) => ctx.waitForSignal("go") });
    const there = open([leaf]);
    await there.runtime.start(leaf, undefined, { sessionId: "s-0-0" });
    await expect(there.runtime.import(bytes(text))).rejects.toMatchObject({
      code: "session_exists",
      message: expect.stringContaining("s-0-0") as string,
    });
    expect(await rowsOf(there.storage)).toMatchObject([undefined, undefined, { agent: { name: "leaf" } }]);
  });

  test("a tree of which a part is there already is refused, and the error names a missing session", async () => {
    const { runtime } = await waiting();
    const there = open([]);
    await there.runtime.import(bytes(await textOf(runtime.export("s-0"))));
    await expect(there.runtime.import(bytes(await textOf(runtime.export("s", tree))))).rejects.toMatchObject({
      code: "session_exists",
      got: "no session s (2 of 3 are missing)",
    });
    expect(await rowsOf(there.storage)).toMatchObject([undefined, { sessionId: "s-0" }, undefined]);
  });

  test("a tree with more text than the limit is neither exported nor imported, and the error has both sizes", async () => {
    const { runtime, storage } = await waiting();
    const text = await textOf(runtime.export("s", tree));
    const chars = text.lastIndexOf("{");
    const tooLarge = {
      code: "too_large",
      got: `3 sessions with ${chars} characters`,
      expected: `at most the limit "batchChars" (${chars - 1})`,
    };
    const limits = { batchChars: chars - 1 };
    const small = open([], { storage, limits });
    const lines: string[] = [];
    const exporting = async (): Promise<void> => {
      for await (const line of small.runtime.export("s", tree)) lines.push(line);
    };
    await expect(exporting()).rejects.toMatchObject(tooLarge);
    expect(lines).toEqual([]);
    const there = open([], { limits });
    await expect(there.runtime.import(bytes(text))).rejects.toMatchObject({ ...tooLarge, at: "the file" });
    expect(await there.storage.reader.sessions({ limit: 9 })).toEqual([]);
    // One session alone has no such limit.
    expect(await textOf(small.runtime.export("s-0"))).toContain('"format":1');
    const exact = open([], { limits: { batchChars: chars } });
    expect(await exact.runtime.import(bytes(text))).toMatchObject({ created: true });
  });

  test("a tree keeps its ids, and a file that is newer or damaged in any session is refused", async () => {
    const { runtime } = await waiting();
    const text = await textOf(runtime.export("s", tree));
    const there = open([]);
    await expect(there.runtime.import(bytes(text), { sessionId: "t" })).rejects.toMatchObject({
      code: "usage",
      got: "t",
    });
    const second = /(?<="tree":true[^]*"session",)"format":1/;
    for (const [is, becomes, code] of [
      ['"session","format":1', '"session","format":2', "version_unsupported"],
      [second, '"format":2', "version_unsupported"],
      [/(?<="tree":true[^]*"session","format":1,)"tree":true,/, "", "corrupt_record"],
      ['"tree":true', '"tree":7', "corrupt_record"],
      [/"flags":\d+(?=[^]*$)/, `"flags":${BEHAVIOUR_FLAGS + 1}`, "version_unsupported"],
      [/(?<="flags":\d+,)"format":1/, `"format":${JOURNAL_FORMAT + 1}`, "version_unsupported"],
      ['"parent":{"sessionId":"s-0"', '"parent":{"sessionId":"x"', "corrupt_record"],
      ['"sessionId":"s-0-0"', '"sessionId":7', "corrupt_record"],
    ] as const)
      await expect(there.runtime.import(bytes(changed(text, is, becomes))), becomes).rejects.toMatchObject({
        code,
      });
    await expect(there.runtime.import(bytes(text.slice(0, -200)))).rejects.toMatchObject({
      code: "corrupt_record",
    });
    expect(await there.storage.reader.sessions({ limit: 9 })).toEqual([]);
  });
});

function readerOf(reader: StorageReader): StorageReader {
  const methods = [
    "sessions",
    "session",
    "journal",
    "entries",
    "pendingSignals",
    "seenSignals",
    "schedules",
    "document",
    "documents",
    "audit",
  ] as const;
  return Object.fromEntries(
    methods.map((name) => [name, (reader[name] as (...args: unknown[]) => unknown).bind(reader)]),
  ) as unknown as StorageReader;
}
