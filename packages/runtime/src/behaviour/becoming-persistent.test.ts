// A minimal session that joins a tree becomes persistent in the commit that does so.

import { HoldfastError, type AgentStorage } from "@holdfast/core";
import {
  countingRandom,
  journalOf,
  mortal,
  releaseClaim,
  storageWith,
  TestClock,
  until,
} from "@holdfast/testkit/test-runtime";
import { Readable } from "node:stream";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTask, local, type Agent, type AgentContext } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, vanishRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

const ID = "s";

/** A process on a storage that earlier ones used. `kill` ends it as a crash would, and frees its claims. */
function life(memory: MemoryStorage, agent: Agent, storage: AgentStorage = memory) {
  const fragile = mortal(storage);
  const runtime = createRuntime({
    storage: fragile.storage,
    agents: [agent],
    clock: new TestClock(),
    random: countingRandom(),
    development: false,
  });
  opened.push(runtime);
  return {
    runtime,
    fragile,
    async kill() {
      fragile.die();
      vanishRuntime(runtime);
      const all = await memory.reader.sessions({ limit: 99 });
      for (const { sessionId } of all) await releaseClaim(memory, sessionId);
    },
  };
}

const startMinimal = (runtime: Runtime, agent: Agent) =>
  runtime.start(agent, undefined, { sessionId: ID, persistence: "minimal" });

const waitsFor = (storage: AgentStorage, name: string, sessionId = ID) =>
  until(async () => {
    const waits = (await storage.reader.session(sessionId))?.waits ?? [];
    return waits.some((wait) => "name" in wait && wait.name === name);
  }, `${sessionId} waits for ${name}`);

/** Tells its parent a word for each time it is told to go on. */
const talker = defineAgent({
  name: "talker",
  run: async (ctx) => {
    ctx.signalParent("ready", 1);
    await ctx.waitForSignal("go");
    ctx.signalParent("ready", 2);
    await ctx.waitForSignal("go");
    return "done";
  },
});

/** Hears its child twice, and a person in between. */
const receiving = (spawn = async (ctx: AgentContext) => ctx.spawnAgent(local(talker))): Agent =>
  defineAgent({
    name: "hearing",
    agents: [talker],
    run: async (ctx) => {
      const child = await spawn(ctx);
      const first = await ctx.waitForChildEvent(child);
      await ctx.waitForSignal("person");
      ctx.signalChild(child, "go");
      const second = await ctx.waitForChildEvent(child);
      ctx.signalChild(child, "go");
      return [first, second, await ctx.waitForChild(child)];
    },
  });

const RECEIVED = [
  { type: "signal", name: "ready", payload: 1 },
  { type: "signal", name: "ready", payload: 2 },
  "done",
];

const workingFirst = (): Agent =>
  receiving(async (ctx) => {
    ctx.appendEntry({ role: "user", content: "begin" });
    await ctx.run("work", () => 1);
    return ctx.spawnAgent(local(talker));
  });

describe("a minimal session that asks for a child", () => {
  const spawns: readonly (readonly [string, Agent])[] = [
    ["in its first segment", receiving()],
    ["after work of its own", workingFirst()],
    [
      "inside Promise.all",
      receiving(async (ctx) => {
        const spawn = async () => {
          await ctx.run("before", () => 1);
          return ctx.spawnAgent(local(talker));
        };
        const [child] = await Promise.all([spawn(), ctx.run("beside", () => 2)]);
        return child;
      }),
    ],
    [
      "after a checkpoint",
      receiving(async (ctx) => {
        if (ctx.state === undefined) return ctx.checkpoint({ begun: true });
        return ctx.spawnAgent(local(talker));
      }),
    ],
  ];

  test.each(spawns)("%s gets every event of that child once, also after a restart", async (_, agent) => {
    const storage = new MemoryStorage();
    const before = life(storage, agent);
    await startMinimal(before.runtime, agent);
    await waitsFor(storage, "person");
    expect((await storage.reader.session(ID))?.persistence).toBeUndefined();
    await before.kill();

    const { runtime } = life(storage, agent);
    const session = await runtime.resume(ID);
    await runtime.signal(ID, "person");
    expect(await session.result()).toEqual(RECEIVED);
  });

  test("a minimal session that spawns a child stores its journal in that commit, with the cause", async () => {
    const storage = new MemoryStorage();
    const agent = workingFirst();
    const { runtime } = life(storage, agent);
    await startMinimal(runtime, agent);
    await waitsFor(storage, "person");
    const journal = await journalOf(storage, ID);
    expect(journal.slice(0, 2).map(({ type }) => type)).toEqual(["started", "append_entry"]);
    expect(journal.filter(({ type }) => type === "spawn_child")).toMatchObject([{ persists: true }]);
    expect(await storage.reader.entries(ID, 0, 9)).toHaveLength(1);
  });

  test("a minimal session that spawns a child resumes there after a crash at any commit", async () => {
    const agent = workingFirst();
    const undisturbed = new MemoryStorage();
    const whole = life(undisturbed, agent);
    await startMinimal(whole.runtime, agent);
    await waitsFor(undisturbed, "person");
    for (let commits = 1; commits <= whole.fragile.batches; commits++) {
      const storage = new MemoryStorage();
      const before = life(storage, agent);
      before.fragile.dieAfter(commits);
      startMinimal(before.runtime, agent).catch(() => {});
      await until(() => before.fragile.dead, `the process dies after commit ${commits}`);
      await before.kill();
      const { runtime } = life(storage, agent);
      const session = await runtime.resume(ID);
      await runtime.signal(ID, "person");
      expect(await session.result(), `death after commit ${commits}`).toEqual(RECEIVED);
    }
  });

  test("a minimal session restarts from scratch when the spawning commit was not stored, and has one child", async () => {
    const storage = new MemoryStorage();
    const refusing = storageWith(storage, {
      commit: async (group, now) => {
        if (group.some((change) => change.type === "commit_batch" && change.effects !== undefined))
          throw new HoldfastError("internal", "the process dies here");
        return storage.commit(group, now);
      },
    });
    const agent = workingFirst();
    const before = life(storage, agent, refusing);
    await startMinimal(before.runtime, agent);
    await before.runtime.handle(ID).settled();
    expect(await storage.reader.session(ID)).toMatchObject({ persistence: "minimal", children: 0 });
    await before.kill();

    const { runtime } = life(storage, agent);
    const session = await runtime.resume(ID);
    await runtime.signal(ID, "person");
    expect(await session.result()).toEqual(RECEIVED);
    expect(await session.session()).toMatchObject({ children: 1 });
  });

  test("a minimal session whose journal is too large for one commit is paused at its last commit", async () => {
    const storage = new MemoryStorage();
    const reason = "the batch has 9 MiB";
    const small = storageWith(storage, {
      commit: async (group, now) =>
        group.some((change) => change.type === "commit_batch" && change.records.length > 0)
          ? group.map(() => ({ status: "invalid", reason, isTooLarge: true }) as const)
          : storage.commit(group, now),
    });
    const agent = workingFirst();
    const { runtime } = life(storage, agent, small);
    await startMinimal(runtime, agent);
    await runtime.handle(ID).settled();
    expect(await storage.reader.session(ID)).toMatchObject({
      status: "paused",
      persistence: "minimal",
      error: { code: "too_large", message: expect.stringContaining(reason) },
    });
  });
});

test("a minimal session that asks its parent becomes persistent, and gets the answer after a restart", async () => {
  const asked: unknown[] = [];
  const answer = defineTask({ name: "answer", run: async (of: number) => asked.push(of) });
  const asking = defineAgent({
    name: "asking",
    run: async (ctx) => {
      const answered = await ctx.requestFromParent("answer", 1);
      await ctx.waitForSignal("person");
      return [answered, await ctx.requestFromParent("answer", 2)];
    },
  });
  const agent: Agent = defineAgent({
    name: "answering",
    agents: [asking],
    handlers: { answer },
    run: async (ctx) =>
      ctx.waitForChild(ctx.spawnAgent(local(asking), undefined, { persistence: "minimal" })),
  });
  const storage = new MemoryStorage();
  const before = life(storage, agent);
  await before.runtime.start(agent, undefined, { sessionId: ID });
  await waitsFor(storage, "person", `${ID}-0`);
  expect((await storage.reader.session(`${ID}-0`))?.persistence).toBeUndefined();
  await before.kill();

  const { runtime } = life(storage, agent);
  const session = await runtime.resume(ID);
  await runtime.signal(`${ID}-0`, "person");
  expect(await session.result()).toEqual([1, 2]);
  expect(asked).toEqual([1, 2]);
});

test("a minimal session that hands over stores its journal, with the cause", async () => {
  const successor = defineAgent({ name: "heir", run: async () => "done" });
  const agent: Agent = defineAgent({
    name: "giving",
    agents: [successor],
    run: async (ctx) => {
      await ctx.run("work", () => 1);
      return ctx.handoffToAgent(local(successor), undefined, { completion: "immediate" });
    },
  });
  const storage = new MemoryStorage();
  const { runtime } = life(storage, agent);
  const session = await startMinimal(runtime, agent);
  expect(await session.result()).toEqual({ handedOffTo: `${ID}-1` });
  expect((await journalOf(storage, ID)).map(({ type }) => type)).toContain("complete");
  const asked = (await journalOf(storage, ID)).find(({ type }) => type === "spawn_child");
  expect(asked).toMatchObject({ handOff: true, persists: true });
});

test("a session that became persistent is forked, exported and imported as any other", async () => {
  const storage = new MemoryStorage();
  const agent = workingFirst();
  const { runtime } = life(storage, agent);
  await startMinimal(runtime, agent);
  await waitsFor(storage, "person");
  const at = (await journalOf(storage, ID)).findIndex(({ type }) => type === "task_completed");
  const fork = await runtime.fork(ID, { at, sessionId: "fork" });
  await waitsFor(storage, "person", "fork");
  await runtime.signal("fork", "person");
  expect(await fork.result()).toEqual(RECEIVED);

  await runtime.signal(ID, "person");
  await runtime.handle(ID).result();
  const lines = [];
  for await (const line of runtime.export(ID)) lines.push(Buffer.from(line));
  const other = life(new MemoryStorage(), agent);
  await other.runtime.import(Readable.from(lines), { name: "a file" });
  expect(await other.runtime.handle(ID).result()).toEqual(RECEIVED);
});

describe("a minimal child", () => {
  const parentOf = (listener: Agent): Agent =>
    defineAgent({
      name: "parent",
      agents: [listener],
      run: async (ctx) => {
        const child = ctx.spawnAgent(local(listener), undefined, { persistence: "minimal" });
        ctx.signalChild(child, "word", "hello");
        return ctx.waitForChild(child);
      },
    });

  const listener = (listen: (ctx: AgentContext) => Promise<unknown>): Agent =>
    defineAgent({
      name: "listener",
      run: async (ctx) => {
        const word = await listen(ctx);
        return [word, await ctx.waitForSignal("person")];
      },
    });

  test.each<[string, (ctx: AgentContext) => Promise<unknown>]>([
    ["waits for", (ctx) => ctx.waitForSignal("word")],
    [
      "looks for",
      async (ctx) => {
        await ctx.signalReady("word");
        return ctx.takeSignal("word");
      },
    ],
    [
      "takes with all others",
      async (ctx) => {
        await ctx.signalReady("word");
        return ctx.drainSignals("word").map(({ payload }) => payload)[0];
      },
    ],
  ])(
    "a minimal child that %s the words of its parent has received them, also after a crash",
    async (_how, listen) => {
      const storage = new MemoryStorage();
      const agent = parentOf(listener(listen));
      const first = life(storage, agent);
      await first.runtime.start(agent, undefined, { sessionId: ID });
      await waitsFor(storage, "person", `${ID}-0`);
      await first.kill();

      const { runtime } = life(storage, agent);
      await runtime.recover();
      await runtime.signal(`${ID}-0`, "person", "go");
      expect(await runtime.handle(ID).result()).toEqual(["hello", "go"]);
      expect(await storage.reader.session(`${ID}-0`)).not.toHaveProperty("persistence");
    },
  );

  test("a minimal child that only works stays minimal", async () => {
    const storage = new MemoryStorage();
    const worker = defineAgent({ name: "worker", run: async (ctx) => ctx.run("work", () => 1) });
    const agent = parentOf(worker);
    const { runtime } = life(storage, agent);
    await runtime.start(agent, undefined, { sessionId: ID });
    expect(await runtime.handle(ID).result()).toBe(1);
    expect(await journalOf(storage, `${ID}-0`)).toEqual([]);
  });
});

test("a minimal session without a parent that waits for a signal stays minimal", async () => {
  const storage = new MemoryStorage();
  const agent = defineAgent({ name: "alone", run: async (ctx) => ctx.waitForSignal("word") });
  const { runtime } = life(storage, agent);
  await startMinimal(runtime, agent);
  await waitsFor(storage, "word");
  expect(await storage.reader.session(ID)).toMatchObject({ persistence: "minimal" });
});

test("an ephemeral session that asks for a child stays ephemeral, with its child", async () => {
  const storage = new MemoryStorage();
  const agent = receiving();
  const { runtime } = life(storage, agent);
  await runtime.start(agent, undefined, { sessionId: ID, persistence: "ephemeral" });
  await waitsFor(storage, "person");
  for (const sessionId of [ID, `${ID}-0`])
    expect(await storage.reader.session(sessionId)).toMatchObject({ persistence: "ephemeral" });
  expect(await journalOf(storage, ID)).toEqual([]);
});
