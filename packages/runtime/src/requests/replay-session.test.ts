// replaySession: a replay of a recorded turn runs no task, and reports the first divergence of the code.

import { journalOf, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTask, type Agent, type AgentContext } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { ownerOfTurn, replaySession, type ReplayStep } from "./replay-session.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

let runtime: Runtime | undefined;
afterEach(() => runtime?.close());

let ran = 0;
const work = (ctx: AgentContext): Promise<number> => ctx.run("work", () => ++ran);

async function recorded(agent: Agent) {
  const storage = new MemoryStorage();
  runtime = createRuntime({ storage, development: false });
  const handle = await runtime.start(agent);
  await handle.result();
  return { session: await handle.session(), records: await journalOf(storage, handle.sessionId), storage };
}

async function replayed(options: Omit<Parameters<typeof replaySession>[0], "onStep">) {
  const steps: ReplayStep[] = [];
  const stand = await replaySession({ ...options, onStep: (step) => steps.push(step) });
  return {
    stand,
    steps: steps.map(({ event, commands }) => [event.type, ...commands.map(({ type }) => type)]),
  };
}

const twice = defineAgent({
  name: "twice",
  run: async (ctx) => {
    ctx.appendEntry({ role: "user", content: "hello" });
    const first = await work(ctx);
    return first + (await work(ctx));
  },
});

describe("a replayed turn", () => {
  test("a replayed turn needs no handlers, even for guarded tasks that only the runtime knew", async () => {
    const storage = new MemoryStorage();
    const look = defineTask({ name: "look", guardRepeats: true, timeoutMs: 5_000, run: () => "nothing" });
    const free = defineTask({ name: "free", run: () => "nothing" });
    runtime = createRuntime({ storage, tasks: [look, free], development: false });
    const agent = defineAgent({
      name: "stranger",
      run: async (ctx) => {
        for (let n = 0; n < 12; n++) await ctx.scheduleTask({ name: "free" }, n % 1);
        for (let n = 0; n < 12; n++) await ctx.scheduleTask({ name: "look" }, "x");
        return "done";
      },
    });
    const handle = await runtime.start(agent);
    await until(async () => (await handle.session()).status === "input_required", "it asks");
    await handle.answer({ approved: true });
    expect(await handle.result()).toBe("done");
    const records = await journalOf(storage, handle.sessionId);
    const { stand } = await replayed({ agent, session: await handle.session(), records });
    expect(stand).toMatchObject({ fault: undefined, isOver: true, nextSeq: records.length });
  });

  test("a replayed turn shows each delivery with its commands, and runs no task", async () => {
    const { session, records, storage } = await recorded(twice);
    const before = ran;
    const { stand, steps } = await replayed({ agent: twice, session, records });
    expect(steps).toEqual([
      ["started", "append_entry", "schedule_task"],
      ["task_completed", "schedule_task"],
      ["task_completed", "complete"],
    ]);
    expect(stand).toMatchObject({
      turn: 0,
      nextSeq: records.length,
      isOver: true,
      fault: undefined,
      entryCount: 1,
    });
    expect(ran).toBe(before);
    expect(await journalOf(storage, session.sessionId)).toEqual(records);
  });

  test("a replayed turn stops after the slice of a position, and gives the open tasks there", async () => {
    const { session, records } = await recorded(twice);
    const { stand, steps } = await replayed({ agent: twice, session, records, stopAt: 1 });
    expect(steps).toHaveLength(1);
    expect(stand).toMatchObject({
      nextSeq: 3,
      isOver: false,
      tasks: [{ kind: "work", attempt: 1 }],
      waits: [],
    });
  });

  test("an earlier turn is replayed from its checkpoint to the next", async () => {
    const agent = defineAgent({
      name: "turns",
      initial: () => 0,
      turn: async (ctx, n: number) => (await work(ctx), n === 2 ? { done: n } : { state: n + 1 }),
    });
    const { session, records } = await recorded(agent);
    const cuts = records.flatMap(({ type, seq }) => (type === "checkpoint" ? seq : []));
    const { stand, steps } = await replayed({
      agent,
      session,
      records: records.slice(cuts[0], cuts[1]! + 1),
    });
    expect(steps).toEqual([
      ["started", "schedule_task"],
      ["task_completed", "checkpoint"],
    ]);
    expect(stand).toMatchObject({ turn: 1, isOver: true, fault: undefined });
  });
});

describe("a turn of a fork of a fork", () => {
  const rolls = defineAgent({
    name: "rolls",
    tasks: [defineTask({ name: "say", run: (said: unknown) => said })],
    initial: () => 0,
    turn: async (ctx, n: number) => {
      await ctx.scheduleTask("say", [ctx.sessionId, ctx.input, ctx.random()]);
      return n === 3 ? { done: n } : { state: n + 1 };
    },
  });

  test("a turn of a fork of a fork is replayed with the id, input and seed of the session that did it", async () => {
    const storage = new MemoryStorage();
    runtime = createRuntime({ storage, development: false });
    await (await runtime.start(rolls, "first", { sessionId: "one" })).result();
    let origin = "one";
    for (const [sessionId, turn] of [
      ["two", 1],
      ["three", 2],
    ] as const) {
      const cut = (await journalOf(storage, origin)).filter(({ type }) => type === "checkpoint")[turn];
      await runtime.fork(origin, { sessionId, at: cut!.seq, input: `of ${sessionId}` });
      await runtime.handle(sessionId).result();
      origin = sessionId;
    }
    const session = await runtime.handle("three").session();
    const records = await journalOf(storage, "three");
    const cuts = records.flatMap(({ type, seq }) => (type === "checkpoint" ? seq : []));
    const turns = [0, ...cuts].map((from, i) => records.slice(from, (cuts[i] ?? records.length) + 1));
    const owners: string[] = [];
    for (const turn of turns) {
      const owner = await ownerOfTurn(storage.reader, session, turn);
      owners.push(owner.sessionId);
      const { stand } = await replayed({ agent: rolls, session: owner, records: turn });
      expect(stand).toMatchObject({ fault: undefined, isOver: true });
    }
    expect(owners).toEqual(["one", "one", "two", "three"]);
  });

  test("a turn whose origin is deleted is replayed as the nearest remaining session's", async () => {
    const { session, records, storage } = await recorded(twice);
    const fork = { origins: ["gone", "longer"], at: records.length, seed: 1, tasks: "rerun" } as const;
    const left = { ...session, fork };
    expect(await ownerOfTurn(storage.reader, left, records)).toBe(left);
  });
});

describe("code that does something else", () => {
  const other = (name: string, run: (ctx: AgentContext) => Promise<unknown>): Agent =>
    defineAgent({ name, run });

  test("a replay of other code stops at the divergence, with both sides", async () => {
    const { session, records } = await recorded(twice);
    const agent = other("twice", async (ctx) => {
      ctx.appendEntry({ role: "user", content: "hello" });
      await work(ctx);
      return ctx.run("play", () => ++ran);
    });
    const before = ran;
    const { stand } = await replayed({ agent, session, records });
    expect(stand.fault).toMatchObject({ code: "nondeterminism", seq: 4 });
    expect(stand.fault?.expected).toContain('task "work"');
    expect(stand.fault?.got).toContain('task "play"');
    expect(stand.isOver).toBe(false);
    expect(ran).toBe(before);
  });

  test("a replay finds code with fewer commands, or with a non-durable await", async () => {
    const { session, records } = await recorded(twice);
    const fewer = other("twice", async (ctx) => void ctx.appendEntry({ role: "user", content: "hello" }));
    expect((await replayed({ agent: fewer, session, records })).stand.fault).toMatchObject({
      code: "nondeterminism",
    });
    const timer = other("twice", async (ctx) => {
      ctx.appendEntry({ role: "user", content: "hello" });
      await new Promise((resolve) => setTimeout(resolve, 1));
      return work(ctx);
    });
    expect((await replayed({ agent: timer, session, records })).stand.fault).toMatchObject({
      code: "nondeterminism",
    });
  });

  test("a replay with accepted drift continues, and lists the positions", async () => {
    const { session, records } = await recorded(twice);
    const agent = other("twice", async (ctx) => {
      ctx.appendEntry({ role: "user", content: "good morning" });
      const first = await work(ctx);
      return first + (await work(ctx));
    });
    expect((await replayed({ agent, session, records })).stand.fault).toMatchObject({ seq: 1 });
    expect((await replayed({ agent, session, records, acceptDrift: true })).stand).toMatchObject({
      fault: undefined,
      drift: [1],
      isOver: true,
    });
  });
});
