// K11, the dial: what of a session survives its process, and how it is turned up while it runs.

import {
  countingRandom,
  gate,
  journalOf,
  mortal,
  releaseClaim,
  TestClock,
  turns,
  until,
} from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, type Agent } from "./define.ts";
import { MemoryStorage } from "./memory-storage.ts";
import { createRuntime, vanishRuntime, type Runtime } from "./runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

const ID = "s";

/** A process over what others left; `kill` ends it as a crash would, and frees its claim. */
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
      await releaseClaim(storage, ID);
    },
  };
}

/** Says how far it is, reads a signal, works, and waits for another one. */
function worker() {
  const ran: string[] = [];
  const told: unknown[] = [];
  const agent = defineAgent({
    name: "worker",
    run: async (ctx) => {
      told.push(ctx.resumedFrom ?? null);
      ctx.appendEntry({ role: "user", content: "begin" });
      const first = await ctx.waitForSignal("first");
      ctx.reportProgress({ read: first });
      await ctx.run("work", () => void ran.push("work"));
      const second = await ctx.waitForSignal("second");
      return [ctx.resumedFrom ?? null, first, second];
    },
  });
  return { agent: agent as Agent, ran, told };
}

describe("minimal", () => {
  test("stores the row and what has arrived, and no journal; its result can be read afterwards", async () => {
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

  test("waits as others do, so that who looks sees for what", async () => {
    const storage = new MemoryStorage();
    const { agent } = worker();
    const { runtime } = life(storage, agent);
    const handle = await runtime.start(agent, undefined, { sessionId: ID, persistence: "minimal" });
    await until(async () => (await handle.session()).status === "waiting", "it waits");
    expect((await handle.session()).waits).toMatchObject([{ type: "signal", name: "first" }]);
  });

  test("after a crash it starts over, with unread signals and what it had said of its progress", async () => {
    const storage = new MemoryStorage();
    const { agent, ran, told } = worker();
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
    expect(told).toEqual([null, { read: 1 }]);
    expect(ran).toEqual(["work", "work"]);
    expect(await journalOf(storage, ID)).toEqual([]);
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

  test("stores all there is in one commit, and goes on as any other", async () => {
    const { storage, agent, ran, ready } = rising(new MemoryStorage());
    const { runtime, fragile } = life(storage, agent);
    const handle = await runtime.start(agent, undefined, { sessionId: ID, persistence: "minimal" });
    await until(() => ran.length === 1, "it works");
    await turns(20);
    expect(await journalOf(storage, ID)).toEqual([]);
    const commits = fragile.batches;
    ready();
    await until(() => fragile.batches === commits + 1, "all of it is stored");
    const types = (await journalOf(storage, ID)).map(({ type }) => type);
    expect(types.slice(0, 2)).toEqual(["started", "append_entry"]);
    expect(types).toContain("enable_persistence");
    expect(await storage.reader.entries(ID, 0, 9)).toHaveLength(2);
    expect((await handle.session()).persistence).toBeUndefined();
    await handle.signal("word", "go");
    expect(await handle.result()).toEqual([null, 1, "go"]);
  });

  test("a crash before it starts over; one right after it goes on exactly there", async () => {
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
    // What it was told of the first try is what it was told, whatever has been said since.
    expect(await handle.result()).toEqual(["tried 1", 2, "go"]);
    expect(ran).toEqual(["before", "before", "after"]);
    expect(new Set(drawn).size).toBe(1);
  });

  test("again, or in a session of which all survives, changes nothing", async () => {
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
