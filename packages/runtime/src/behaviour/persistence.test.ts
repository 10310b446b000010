// K11, persistence: how much of a session survives its process, and how an agent raises it at run time.

import { UnavailableError, type Persistence } from "@holdfast/core";
import {
  countingRandom,
  gate,
  journalOf,
  mortal,
  releaseClaim,
  storageWith,
  TestClock,
  turns,
  until,
} from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTask, local, type Agent, type AgentContext } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, vanishRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

const ID = "s";

/** A process on a storage that earlier ones used. `kill` ends it as a crash would, and frees its claim. */
function life(storage: MemoryStorage, agent: Agent) {
  const fragile = mortal(storage);
  const runtime = createRuntime({
    storage: fragile.storage,
    agents: [agent],
    clock: new TestClock(),
    random: countingRandom(),
    development: false,
    owner: "the process",
  });
  opened.push(runtime);
  return {
    runtime,
    fragile,
    async kill() {
      fragile.die();
      vanishRuntime(runtime);
      const all = await storage.reader.sessions({ limit: 99 });
      for (const { sessionId } of all) await releaseClaim(storage, sessionId);
    },
  };
}

/** Reports progress, reads a signal, works, and waits for another signal. */
function worker() {
  const ran: string[] = [];
  const notified: unknown[] = [];
  const agent = defineAgent({
    name: "worker",
    run: async (ctx) => {
      notified.push(ctx.resumedFrom ?? null);
      ctx.appendEntry({ role: "user", content: "begin" });
      const first = await ctx.waitForSignal("first");
      ctx.reportProgress({ read: first });
      await ctx.run("work", () => void ran.push("work"));
      const second = await ctx.waitForSignal("second");
      return [ctx.resumedFrom ?? null, first, second];
    },
  });
  return { agent: agent as Agent, ran, notified };
}

describe("minimal", () => {
  test("a minimal session stores its row and arrivals but no journal, and its result can be read afterwards", async () => {
    const storage = new MemoryStorage();
    const { agent } = worker();
    const { runtime } = life(storage, agent);
    const handle = await runtime.start(agent, undefined, { sessionId: ID, persistence: "minimal" });
    await handle.signal("first", 1);
    await handle.signal("second", 2);
    expect(await handle.result()).toEqual([null, 1, 2]);
    expect(await journalOf(storage, ID)).toEqual([]);
    expect(await storage.reader.entries(ID, 0, 9)).toEqual([]);
    const later = life(storage, agent);
    expect(await later.runtime.handle(ID).result()).toEqual([null, 1, 2]);
  });

  test("a minimal session shows its waits in its row", async () => {
    const storage = new MemoryStorage();
    const { agent } = worker();
    const { runtime } = life(storage, agent);
    const handle = await runtime.start(agent, undefined, { sessionId: ID, persistence: "minimal" });
    await until(async () => (await handle.session()).status === "waiting", "it waits");
    expect((await handle.session()).waits).toMatchObject([{ type: "signal", name: "first" }]);
  });

  test("a minimal session that is paused and resumed at once continues where it was", async () => {
    const storage = new MemoryStorage();
    const { agent, ran } = worker();
    const { runtime } = life(storage, agent);
    const handle = await runtime.start(agent, undefined, { sessionId: ID, persistence: "minimal" });
    await handle.signal("first", 1);
    await until(async () => (await handle.session()).waits[0]?.id === 3, "it waits for the second");
    await handle.pause();
    await handle.unpause();
    await handle.signal("second", 2);
    expect(await handle.result()).toEqual([null, 1, 2]);
    expect(ran).toEqual(["work"]);
  });

  test("a minimal session starts over after a crash with its unread signals and its last progress", async () => {
    const storage = new MemoryStorage();
    const { agent, ran, notified } = worker();
    const before = life(storage, agent);
    const handle = await before.runtime.start(agent, undefined, { sessionId: ID, persistence: "minimal" });
    await handle.signal("first", 1);
    await until(() => ran.length === 1, "it has read the first and works");
    await turns(20);
    await handle.signal("first", "again");
    await before.kill();

    const after = life(storage, agent);
    const resumed = await after.runtime.resume(ID);
    await resumed.signal("second", 2);
    expect(await resumed.result()).toEqual([{ read: 1 }, "again", 2]);
    expect(notified).toEqual([null, { read: 1 }]);
    expect(ran).toEqual(["work", "work"]);
    expect(await journalOf(storage, ID)).toEqual([]);
  });
});

describe("ephemeral", () => {
  /** A parent whose child reports progress, works, spawns children if asked to, and waits for a word. */
  function family(maxAttempts = 1, below?: (ctx: AgentContext, grandchild: Agent) => void) {
    const ran: string[] = [];
    const grandchild = defineAgent({ name: "grandchild", run: async (ctx) => ctx.waitForSignal("never") });
    const child = defineAgent({
      name: "child",
      agents: [grandchild],
      run: async (ctx) => {
        ctx.appendEntry({ role: "user", content: "begin" });
        const from = ctx.resumedFrom ?? null;
        const times = await ctx.run("work", () => ran.push("work"));
        ctx.reportProgress(`tried ${times}`);
        below?.(ctx, grandchild);
        return [from, await ctx.waitForSignal("word")];
      },
    });
    const agent: Agent = defineAgent({
      name: "parent",
      agents: [child],
      run: async (ctx) => {
        const options = { persistence: "ephemeral", respawn: { maxAttempts } } as const;
        return ctx
          .waitForChild(ctx.spawnAgent(local(child), undefined, options))
          .catch((error: { cause: { code: string } }) => error.cause.code);
      },
    });
    return { agent, ran };
  }

  const waits = (runtime: Runtime, id: string) =>
    until(async () => (await rowOf(runtime, id))?.status === "waiting", `${id} waits`);
  const rowOf = async (runtime: Runtime, id: string) =>
    runtime
      .handle(id)
      .session()
      .catch(() => undefined);

  test("an ephemeral child keeps no journal, and its parent gets its end", async () => {
    const storage = new MemoryStorage();
    const { agent } = family();
    const { runtime } = life(storage, agent);
    const handle = await runtime.start(agent, undefined, { sessionId: ID });
    await waits(runtime, `${ID}-0`);
    await runtime.signal(`${ID}-0`, "word", "go");
    expect(await handle.result()).toEqual([null, "go"]);
    expect(await journalOf(storage, `${ID}-0`)).toEqual([]);
    expect(await storage.reader.entries(`${ID}-0`, 0, 9)).toEqual([]);
  });

  test("an ephemeral child is lost by a crash: its parent is notified once, and no work is repeated", async () => {
    const storage = new MemoryStorage();
    const { agent, ran } = family();
    const before = life(storage, agent);
    await before.runtime.start(agent, undefined, { sessionId: ID });
    await waits(before.runtime, `${ID}-0`);
    await before.kill();

    const after = life(storage, agent);
    const handle = await after.runtime.resume(ID);
    expect(await handle.result()).toBe("session_lost");
    expect(ran).toEqual(["work"]);
    expect(await rowOf(after.runtime, `${ID}-0`)).toMatchObject({ status: "failed" });
  });

  test("a recovery after a crash finds all lost sessions and notifies their parents", async () => {
    const storage = new MemoryStorage();
    const { agent } = family();
    const before = life(storage, agent);
    await before.runtime.start(agent, undefined, { sessionId: ID });
    await waits(before.runtime, `${ID}-0`);
    await before.kill();

    const after = life(storage, agent);
    expect(await after.runtime.recover()).toEqual([`${ID}-0`]);
    expect(await after.runtime.handle(ID).result()).toBe("session_lost");
  });

  test("a parent that asked for it gets a lost child spawned again with its progress", async () => {
    const storage = new MemoryStorage();
    const { agent, ran } = family(2);
    const before = life(storage, agent);
    await before.runtime.start(agent, undefined, { sessionId: ID });
    await waits(before.runtime, `${ID}-0`);
    await before.kill();

    const after = life(storage, agent);
    const handle = await after.runtime.resume(ID);
    const again = `${ID}-2`;
    await waits(after.runtime, again);
    await after.runtime.signal(again, "word", "go");
    expect(await handle.result()).toEqual(["tried 1", "go"]);
    expect(ran).toEqual(["work", "work"]);
  });

  test("an ephemeral session that never began starts after a crash", async () => {
    const storage = new MemoryStorage();
    const { agent, ran } = family();
    const before = life(storage, agent);
    before.fragile.dieAfter(1); // The batch that asks for it.
    void before.runtime.start(agent, undefined, { sessionId: ID });
    await until(() => before.fragile.dead, "it is asked for");
    await before.kill();

    const after = life(storage, agent);
    const handle = await after.runtime.resume(ID);
    await waits(after.runtime, `${ID}-0`);
    await after.runtime.signal(`${ID}-0`, "word", "go");
    expect(await handle.result()).toEqual([null, "go"]);
    expect(ran).toEqual(["work"]);
  });

  test("a child of an ephemeral session is ephemeral by default, and cancelled when its parent is lost", async () => {
    const storage = new MemoryStorage();
    const { agent } = family(1, (ctx, grandchild) => {
      ctx.spawnAgent(local(grandchild));
      ctx.spawnAgent(local(grandchild), undefined, { persistence: "full" });
    });
    const before = life(storage, agent);
    await before.runtime.start(agent, undefined, { sessionId: ID });
    const [one, other] = [`${ID}-0-3`, `${ID}-0-4`] as const;
    await waits(before.runtime, one);
    await waits(before.runtime, other);
    expect(await rowOf(before.runtime, one)).toMatchObject({ persistence: "ephemeral" });
    expect((await rowOf(before.runtime, other))?.persistence).toBeUndefined();
    await before.kill();

    const after = life(storage, agent);
    expect(await (await after.runtime.resume(ID)).result()).toBe("session_lost");
    for (const id of [one, other])
      await until(async () => (await rowOf(after.runtime, id))?.endedAt !== undefined, `${id} ends`);
    expect(await rowOf(after.runtime, other)).toMatchObject({ cancel: { cause: "parent" } });
  });

  test("an ephemeral session that enables persistence or is paused resumes after a crash", async () => {
    for (const how of ["enabled", "paused"]) {
      const storage = new MemoryStorage();
      const { agent, ran } = family(1, (ctx, grandchild) => {
        if (how === "enabled") ctx.enablePersistence();
        ctx.spawnAgent(local(grandchild), undefined, { onParentEnd: "cancel" });
      });
      const before = life(storage, agent);
      await before.runtime.start(agent, undefined, { sessionId: ID });
      const child = `${ID}-0`;
      await waits(before.runtime, child);
      if (how === "paused") {
        await before.runtime.pause(child);
        await before.runtime.handle(child).settled();
        await before.runtime.unpause(child);
        await waits(before.runtime, child);
      } else {
        expect((await rowOf(before.runtime, `${child}-4`))?.persistence).toBeUndefined();
      }
      await before.kill();

      const after = life(storage, agent);
      const handle = await after.runtime.resume(ID);
      await after.runtime.recover();
      await after.runtime.signal(child, "word", "go");
      expect(await handle.result(), how).toEqual([null, "go"]);
      expect(ran, how).toEqual(["work"]);
      expect(await storage.reader.entries(child, 0, 9)).toHaveLength(1);
    }
  });

  test("an ephemeral session that is cancelled after its process has died ends as cancelled", async () => {
    const storage = new MemoryStorage();
    const agent = worker().agent;
    const before = life(storage, agent);
    await before.runtime.start(agent, undefined, { sessionId: ID, persistence: "ephemeral" });
    await waits(before.runtime, ID);
    await before.kill();
    const cancel = { mode: "graceful", graceMs: 1_000 } as const;
    await storage.commit([{ type: "request_cancel", sessionId: ID, ...cancel }], 0);
    const after = life(storage, agent);
    expect(await (await after.runtime.resume(ID)).settled()).toMatchObject({ status: "cancelled" });
  });
});

describe("enablePersistence", () => {
  /** Works twice and waits, with everything surviving from `ready` on. */
  function rising(storage: MemoryStorage) {
    const ran: string[] = [];
    const drawn: number[] = [];
    const { opened: isReady, open: ready } = gate();
    const agent = defineAgent({
      name: "rising",
      run: async (ctx) => {
        ctx.appendEntry({ role: "user", content: "begin" });
        const from = ctx.resumedFrom ?? null;
        const before = await ctx.run("before", async () => ran.push("before"));
        drawn.push(ctx.random());
        ctx.reportProgress(`tried ${ran.length}`);
        await ctx.run("ready", () => isReady);
        ctx.enablePersistence();
        ctx.appendEntry({ role: "user", content: "from here on" });
        await ctx.run("after", () => void ran.push("after"));
        const word = await ctx.waitForSignal("word");
        return [from, before, word];
      },
    }) as Agent;
    return { storage, agent, ran, drawn, ready };
  }

  test("enablePersistence stores the whole journal in one commit, and the session continues", async () => {
    const { storage, agent, ran, ready } = rising(new MemoryStorage());
    const { runtime, fragile } = life(storage, agent);
    const handle = await runtime.start(agent, undefined, { sessionId: ID, persistence: "minimal" });
    await until(() => ran.length === 1, "it works");
    await turns(20);
    expect(await journalOf(storage, ID)).toEqual([]);
    const commits = fragile.batches;
    ready();
    await until(() => fragile.batches > commits, "all of it is stored");
    const types = (await journalOf(storage, ID)).map(({ type }) => type);
    expect(types.slice(0, 2)).toEqual(["started", "append_entry"]);
    expect(types).toContain("enable_persistence");
    expect(await storage.reader.entries(ID, 0, 9)).toHaveLength(2);
    expect((await handle.session()).persistence).toBeUndefined();
    await handle.signal("word", "go");
    expect(await handle.result()).toEqual([null, 1, "go"]);
  });

  test("a session starts over after a crash before enablePersistence, and resumes after a crash behind it", async () => {
    const { storage, agent, ran, drawn, ready } = rising(new MemoryStorage());
    const first = life(storage, agent);
    await first.runtime.start(agent, undefined, { sessionId: ID, persistence: "minimal" });
    await until(() => drawn.length === 1, "it works");
    await turns(20);
    await first.kill();

    const second = life(storage, agent);
    await second.runtime.resume(ID);
    await until(() => drawn.length === 2, "it works again");
    await turns(20);
    second.fragile.dieAfter(second.fragile.batches + 1);
    ready();
    await until(() => second.fragile.dead, "all of it is stored, and the process ends");
    expect(ran).toEqual(["before", "before"]);
    await second.kill();

    const third = life(storage, agent);
    const handle = await third.runtime.resume(ID);
    await handle.signal("word", "go");
    // A replay gives the progress of the first try as it was, whatever was reported since.
    expect(await handle.result()).toEqual(["tried 1", 2, "go"]);
    expect(ran).toEqual(["before", "before", "after"]);
    expect(new Set(drawn).size).toBe(1);
  });

  test("enablePersistence changes nothing when it is repeated or the session is persistent", async () => {
    const storage = new MemoryStorage();
    const agent = defineAgent({
      name: "twice",
      run: async (ctx) => {
        ctx.enablePersistence();
        await ctx.run("a", () => 1);
        ctx.enablePersistence();
        return ctx.run("b", () => 2);
      },
    }) as Agent;
    for (const persistence of ["full", "minimal"] as const) {
      const { runtime } = life(storage, agent);
      const handle = await runtime.start(agent, undefined, { sessionId: persistence, persistence });
      expect(await handle.result()).toBe(2);
    }
    expect((await journalOf(storage, "minimal")).map(({ type }) => type)).toEqual(
      (await journalOf(storage, "full")).map(({ type }) => type),
    );
  });
});

test.each(["minimal", "ephemeral"] as const)(
  "%s: after a lost answer of a commit, read signals stay read and the session continues",
  async (persistence) => {
    const memory = new MemoryStorage();
    let isLost = false;
    const storage = storageWith(memory, {
      async commit(group, now) {
        const results = await memory.commit(group, now);
        if (!isLost || !group.some(({ type }) => type === "commit_batch")) return results;
        isLost = false;
        throw new UnavailableError("storage_unavailable", "the answer was lost");
      },
    });
    const clock = new TestClock();
    const agent = defineAgent({
      name: "two",
      run: async (ctx) => [await ctx.waitForSignal("one"), await ctx.waitForSignal("two")],
    });
    const runtime = createRuntime({ storage, clock, development: false });
    opened.push(runtime);
    const session = await runtime.start(agent, undefined, { persistence });
    await until(async () => (await session.session()).waits.length === 1, "it waits");
    isLost = true;
    await session.signal("one", 1);
    await clock.advance(1_000);
    expect(isLost).toBe(false);
    await session.signal("two", 2);
    expect(await session.result()).toEqual([1, 2]);
  },
);

test("ephemeral: a start whose answer was lost is no crash either", async () => {
  const memory = new MemoryStorage();
  let isLost = true;
  const storage = storageWith(memory, {
    async commit(group, now) {
      const results = await memory.commit(group, now);
      if (!isLost) return results;
      isLost = false;
      throw new UnavailableError("storage_unavailable", "the answer was lost");
    },
  });
  const clock = new TestClock();
  const agent = defineAgent({ name: "one", run: async (ctx) => [await ctx.run("work", () => 1)] });
  const runtime = createRuntime({ storage, clock, development: false });
  opened.push(runtime);
  const starting = runtime.start(agent, undefined, { sessionId: ID, persistence: "ephemeral" });
  await until(() => !isLost, "the answer was lost");
  await clock.advance(1_000);
  expect(await (await starting).result()).toEqual([1]);
});

test("minimal: the usage of a task is charged once, also when the answer to its commit was lost", async () => {
  const memory = new MemoryStorage();
  let isLost = false;
  const storage = storageWith(memory, {
    async commit(group, now) {
      const results = await memory.commit(group, now);
      const isSettled = group.some(
        (change) =>
          change.type === "commit_batch" && change.charges?.some(({ type }) => type === "settle") === true,
      );
      if (isLost || !isSettled) return results;
      isLost = true;
      throw new UnavailableError("storage_unavailable", "the answer was lost");
    },
  });
  const clock = new TestClock();
  const work = defineTask({
    name: "work",
    cost: () => ({ maxTokens: 10 }),
    run: (_: unknown, task) => {
      task.reportUsage({ model: "m", inputTokens: 3, outputTokens: 4 });
      return 1;
    },
  });
  const agent = defineAgent({
    name: "one",
    tasks: [work],
    run: async (ctx) => [await ctx.scheduleTask(work, {}), await ctx.waitForSignal("go")],
  });
  const runtime = createRuntime({ storage, clock, development: false });
  opened.push(runtime);
  const session = await runtime.start(agent, undefined, {
    persistence: "minimal",
    budget: { maxTokens: 100 },
  });
  await until(() => isLost, "the answer was lost");
  await clock.advance(1_000);
  await until(async () => (await session.session()).waits.length === 1, "it waits");
  expect((await session.session()).account?.spent).toMatchObject({ tokens: 7, steps: 1 });
  expect((await session.session()).account?.reserved).toMatchObject({ tokens: 0 });
});

test("minimal: the holds of an earlier life are charged, and do not count for the next life", async () => {
  const storage = new MemoryStorage();
  const ran: number[] = [];
  const { opened: isReady, open: ready } = gate();
  const work = defineTask({
    name: "work",
    cost: ({ tokens }: { tokens: number }) => ({ maxTokens: tokens }),
    run: async ({ tokens }, task) => {
      if (ran.push(tokens) === 1) await isReady;
      task.reportUsage({ model: "m", inputTokens: tokens, outputTokens: 0 });
    },
  });
  let lives = 0;
  const agent = defineAgent({
    name: "one",
    tasks: [work],
    run: async (ctx) => {
      const tokens = await ctx.run("life", () => (++lives === 1 ? 10 : 95));
      await ctx.scheduleTask(work, { tokens });
    },
  }) as Agent;
  const before = life(storage, agent);
  const budget = { maxTokens: 100 };
  await before.runtime.start(agent, undefined, { sessionId: ID, persistence: "minimal", budget });
  await until(() => ran.length === 1, "it works");
  await before.kill();
  ready();

  const { runtime } = life(storage, agent);
  const session = await runtime.resume(ID);
  expect(await session.settled()).toMatchObject({ status: "paused" });
  expect(ran).toEqual([10]);
  expect((await session.session()).account).toMatchObject({ spent: { tokens: 10 }, reserved: { tokens: 0 } });
  await session.setBudget({ maxTokens: 105 });
  await until(async () => (await session.session()).status === "completed", "it ends");
  expect((await session.session()).account?.spent.tokens).toBe(105);
});

describe("a conversation that is shared is seen whole by the child", () => {
  const read = defineTask({
    name: "read",
    run: async ({ chat }: { chat: unknown }) => (chat as { content: string }[]).map(({ content }) => content),
  });
  const child = defineAgent({
    name: "child",
    tasks: [read],
    run: async (ctx) => {
      const before = await ctx.scheduleTask(read, { chat: ctx.conversation() });
      ctx.appendEntry({ role: "user", content: "mine" });
      return [before, await ctx.scheduleTask(read, { chat: ctx.conversation() })];
    },
  });
  const all: readonly Persistence[] = ["full", "minimal", "ephemeral"];

  test.each(all.flatMap((above) => all.map((below) => [above, below] as const)))(
    "a %s parent shares its whole conversation with a %s child",
    async (above, below) => {
      const parent = defineAgent({
        name: "parent",
        agents: [child],
        run: async (ctx) => {
          ctx.appendEntry({ role: "user", content: "first" });
          ctx.appendEntry({ role: "user", content: "second" });
          const options = { shared: "conversation", persistence: below } as const;
          return ctx.waitForChild(ctx.spawnAgent(local(child), undefined, options));
        },
      });
      const { runtime } = life(new MemoryStorage(), parent);
      const session = await runtime.start(parent, undefined, { persistence: above });
      expect(await session.result()).toEqual([
        ["first", "second"],
        ["first", "second", "mine"],
      ]);
    },
  );

  test("a shared conversation that is not stored, of a session that is not here, is an error at once", async () => {
    const storage = new MemoryStorage();
    const one = {
      agent: { name: "elsewhere", version: "1" },
      input: undefined,
      seed: 1,
      flags: 0,
      format: 1,
    };
    const { runtime } = life(storage, child);
    const shared = { kind: "conversation", sessionId: "above", leaf: 0 } as const;
    await storage.commit(
      [
        { type: "create_session", sessionId: "above", ...one, persistence: "ephemeral" },
        {
          type: "create_session",
          sessionId: "below",
          ...one,
          agent: { name: "child", version: "1" },
          shared,
        },
      ],
      0,
    );
    await runtime.resume("below");
    await expect(runtime.handle("below").result()).rejects.toThrow(
      "the conversation that session above shared cannot be read here",
    );
  });
});
