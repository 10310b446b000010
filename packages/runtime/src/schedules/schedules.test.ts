// Schedules and their keeper: each time of a schedule fires, and fires once (ST34 is storage's part).

import {
  BEHAVIOUR_FLAGS,
  UnavailableError,
  type AgentRef,
  type AgentStorage,
  type Schedule,
} from "@holdfast/core";
import { countingRandom, gate, storageWith, TestClock, turns, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { defineAgent, local, type Agent } from "../agents/define.ts";
import { vanishRuntime } from "../internal.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import type { Firing, Runtime, RuntimeOptions } from "../api/runtime-api.ts";
import { createRuntime } from "../runtime.ts";

const HOUR_MS = 3_600_000;
const opened: Runtime[] = [];
const clocks = new Set<TestClock>();
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
  for (const clock of clocks) expect(clock.armed, "timers left armed").toBe(0);
  clocks.clear();
});

describe("a schedule", () => {
  test("a schedule starts a session at each of its times, and the session runs here", async () => {
    const { runtime, clock, storage, fired } = open("2026-11-21T08:59:30Z");
    const schedule = await runtime.schedule({ ...everyMinute, id: "tick", start: { agent: echo, input: 7 } });
    expect(schedule).toMatchObject({ scheduleId: "tick", nextAt: Date.parse("2026-11-21T09:00:00Z") });
    await clock.advance(29_999);
    expect(await sessionIds(storage)).toEqual([]);
    await clock.advance(1);
    expect(await sessionIds(storage)).toEqual(["tick-20261121T090000Z"]);
    expect(await runtime.handle("tick-20261121T090000Z").result()).toBe(7);
    await clock.advance(120_000);
    expect(await sessionIds(storage)).toEqual([
      "tick-20261121T090000Z",
      "tick-20261121T090100Z",
      "tick-20261121T090200Z",
    ]);
    expect(fired.map(({ dueAt, nextAt }) => nextAt - dueAt)).toEqual([60_000, 60_000, 60_000]);
    expect(await runtime.schedules()).toMatchObject([
      { lastAt: Date.parse("2026-11-21T09:02:00Z"), nextAt: Date.parse("2026-11-21T09:03:00Z") },
    ]);
  });

  test("a schedule sends a signal at each of its times, and continues after the session has ended", async () => {
    const { runtime, clock } = open("2026-11-21T08:59:30Z");
    const twice = defineAgent({
      name: "twice",
      run: async (ctx) => [await ctx.waitForSignal("go"), await ctx.waitForSignal("go")],
    });
    const handle = await runtime.start(twice, undefined, { sessionId: "desk" });
    await runtime.schedule({
      ...everyMinute,
      id: "poke",
      signal: { sessionId: "desk", name: "go", payload: { n: 1 } },
    });
    await clock.advance(120_000);
    expect(await handle.result()).toEqual([{ n: 1 }, { n: 1 }]);
    await clock.advance(60_000);
    expect(await runtime.schedules()).toMatchObject([{ nextAt: Date.parse("2026-11-21T09:03:00Z") }]);
  });

  test("a schedule leaves at most one signal unread", async () => {
    const { runtime, clock, storage } = open("2026-11-21T08:59:30Z");
    const counting = defineAgent({
      name: "counting",
      run: async (ctx) => {
        await ctx.waitForSignal("begin");
        await ctx.waitForSignal("go");
        return [await ctx.waitForSignal("go"), ctx.drainSignals("go").length];
      },
    });
    const handle = await runtime.start(counting, undefined, { sessionId: "desk" });
    const poke = { ...everyMinute, id: "poke", signal: { sessionId: "desk", name: "go", payload: 1 } };
    await runtime.schedule(poke);
    await clock.advance(300_000);
    expect(await storage.reader.pendingSignals("desk")).toHaveLength(1);
    await runtime.schedule(poke); // Put again, as a program does when it starts.
    await clock.advance(60_000);
    expect(await storage.reader.pendingSignals("desk")).toHaveLength(1);
    await handle.signal("begin");
    await until(async () => (await handle.session()).waits[0]?.id === 2, "it waits for the next");
    await clock.advance(60_000);
    expect(await handle.result()).toEqual([1, 0]);
  });

  test("a schedule starts sessions with its budget and time to live, and with the current flags", async () => {
    const { runtime, clock, storage } = open("2026-11-21T08:59:30Z");
    const idle = defineAgent({ name: "idle", run: async (ctx) => ctx.waitForSignal("never") });
    const budget = { maxTokens: 500, ttlMs: 90_000 };
    await runtime.schedule({ ...everyMinute, id: "tick", start: { agent: idle, budget } });
    await clock.advance(30_000);
    const [sessionId] = await sessionIds(storage);
    expect(await storage.reader.session(sessionId!)).toMatchObject({
      account: { limits: budget },
      deadlineAt: Date.parse("2026-11-21T09:01:30Z"),
      flags: BEHAVIOUR_FLAGS,
    });
    await clock.advance(110_000);
    expect(await runtime.handle(sessionId!).settled()).toMatchObject({ status: "cancelled" });
    const wrong = { ...everyMinute, start: { agent: idle, budget: { maxTokens: 0 } } };
    await expect(runtime.schedule(wrong)).rejects.toThrow("maxTokens is 0");
  });

  test("a schedule that is removed fires no more", async () => {
    const { runtime, clock, fired } = open();
    await runtime.schedule({ ...everyMinute, id: "tick", start: { agent: echo } });
    await clock.advance(60_000);
    expect(await runtime.unschedule("tick")).toBe(true);
    expect(await runtime.unschedule("tick")).toBe(false);
    await clock.advance(300_000);
    expect(fired).toHaveLength(1);
  });

  test("a schedule is not fired by a runtime without the option", async () => {
    const { runtime, clock, storage } = open(undefined, { schedules: false });
    await runtime.schedule({ ...everyMinute, start: { agent: echo } });
    await clock.advance(300_000);
    expect(await sessionIds(storage)).toEqual([]);
  });

  test("a schedule that is put again keeps its next time, unless its line or zone is another", async () => {
    const { runtime, clock } = open("2026-11-21T08:59:30Z", { schedules: false });
    const again = (cron: string, timeZone = "UTC") =>
      runtime.schedule({ id: "tick", cron, timeZone, start: { agent: echo, input: cron } });
    const first = await again("0 9 * * *");
    await clock.advance(HOUR_MS);
    expect(await again("0 9 * * *")).toEqual(first);
    expect(await again("0 9 * * *", "Asia/Tokyo")).toMatchObject({
      nextAt: Date.parse("2026-11-22T00:00:00Z"),
      createdAt: first.createdAt,
    });
    expect(await again("0 10 * * *")).toMatchObject({ nextAt: Date.parse("2026-11-21T10:00:00Z") });
    expect(await runtime.schedules()).toHaveLength(1);
  });

  test("a schedule whose agent takes long to load delays no other schedule", async () => {
    const loading = gate<Agent>();
    const asked: string[] = [];
    const { runtime, clock, storage } = open(undefined, {
      schedules: {
        findAgent({ name }) {
          asked.push(name);
          return name === "slow" ? loading.opened : Promise.resolve(echo);
        },
      },
    });
    await storage.commit([put("a", "slow"), put("b", "echo")], 0);
    await clock.advance(30_000);
    const started = await sessionIds(storage);
    expect(started.map((id) => id.charAt(0))).toEqual(["b", "b"]);
    expect(asked.sort(), "it is asked for once").toEqual(["echo", "slow"]);
    loading.open(echoAs("slow"));
    await until(async () => (await sessionIds(storage)).length === 3, "the slow one");
    const [slow] = (await sessionIds(storage)).filter((id) => id.startsWith("a"));
    expect(await runtime.handle(slow!).result()).toBeUndefined();
  });
});

describe("times that pass while no runtime fires", () => {
  test("times that were missed fire once as the first of them, and the next one fires as usual", async () => {
    const storage = new MemoryStorage();
    const before = open("2026-11-21T08:59:30Z", { storage });
    await before.runtime.schedule({ ...everyMinute, id: "tick", start: { agent: echo } });
    await before.runtime.close();
    const after = open("2026-11-21T12:10:20Z", { storage });
    await turns(20);
    await after.clock.advance(39_000);
    expect(await sessionIds(storage)).toEqual(["tick-20261121T090000Z"]);
    await after.clock.advance(1_000);
    expect(await sessionIds(storage)).toEqual(["tick-20261121T090000Z", "tick-20261121T121100Z"]);
  });
});

describe("each time once", () => {
  test("each time fires once however many processes see it, and its session runs once", async () => {
    const storage = new MemoryStorage();
    const clock = new TestClock(Date.parse("2026-11-21T08:59:30Z"));
    let ran = 0;
    const agent = defineAgent({ name: "echo", run: (ctx) => ctx.run("work", () => ++ran) });
    const all = [1, 2, 3].map((n) =>
      open(undefined, { storage, clock, agents: [agent], owner: `process ${n}` }),
    );
    await all[0]!.runtime.schedule({ ...everyMinute, id: "tick", start: { agent } });
    await clock.advance(10 * 60_000);
    expect(await sessionIds(storage)).toHaveLength(10);
    expect(all.flatMap(({ fired }) => fired)).toHaveLength(10);
    await until(() => ran === 10, "all of them");
    expect(all.flatMap(({ warned }) => warned)).toEqual([]);
  });

  test("each time fires once when the answer is lost, and the process that fired it runs its session", async () => {
    const memory = new MemoryStorage();
    let lost = 0;
    const storage = storageWith(memory, {
      async commit(group, now) {
        const results = await memory.commit(group, now);
        if (group.some(({ type }) => type === "fire_schedule") && lost++ === 0)
          throw new UnavailableError("storage_unavailable", "the answer was lost");
        return results;
      },
    });
    const { runtime, clock } = open("2026-11-21T08:59:30Z", { storage, adopt: false });
    await runtime.schedule({ ...everyMinute, id: "tick", start: { agent: echo, input: 1 } });
    await clock.advance(31_000);
    expect(await runtime.handle("tick-20261121T090000Z").result()).toBe(1);
    expect(await sessionIds(memory)).toHaveLength(1);
    expect(lost).toBe(2);
  });

  test("a session runs in the next process when the one that fired its schedule dies", async () => {
    const memory = new MemoryStorage();
    const clock = new TestClock(Date.parse("2026-11-21T08:59:30Z"));
    const storage = storageWith(memory, {
      async commit(group, now) {
        const results = await memory.commit(group, now);
        return group.some(({ type }) => type === "fire_schedule") ? new Promise(() => {}) : results;
      },
      subscribe: () => () => {},
    });
    const dying = open(undefined, { storage, clock });
    await dying.runtime.schedule({ ...everyMinute, id: "tick", start: { agent: echo, input: 1 } });
    await clock.advance(30_000);
    vanishRuntime(dying.runtime);
    expect(await sessionIds(memory)).toEqual(["tick-20261121T090000Z"]);
    const next = open(undefined, { storage: memory, clock, agents: [echo] });
    expect(await next.runtime.recover()).toEqual(["tick-20261121T090000Z"]);
    await clock.advance(29_000);
    expect(await next.runtime.handle("tick-20261121T090000Z").result()).toBe(1);
    expect(next.fired).toEqual([]);
  });

  test("each time fires once when an earlier state of its schedule is put again", async () => {
    const { runtime, clock, storage } = open("2026-11-21T08:59:30Z");
    const signalled = defineAgent({
      name: "told",
      run: async (ctx) => {
        await ctx.waitForSignal("go");
        return ctx.waitForSignal("go", { timeoutMs: 1_000 }).catch(() => "once");
      },
    });
    const handle = await runtime.start(signalled);
    const { sessionId } = handle;
    const started = await runtime.schedule({ ...everyMinute, id: "tick", start: { agent: echo } });
    const poked = await runtime.schedule({ ...everyMinute, id: "poke", signal: { sessionId, name: "go" } });
    await clock.advance(30_000);
    await storage.commit(
      [started, poked].map((schedule) => ({ type: "put_schedule", schedule })),
      0,
    );
    await clock.advance(1_000);
    expect(await handle.result()).toBe("once");
    expect((await sessionIds(storage)).filter((id) => id.startsWith("tick"))).toHaveLength(1);
    expect(await runtime.schedules()).toMatchObject([{ nextAt: Date.parse("2026-11-21T09:01:00Z") }, {}]);
  });
});

describe("a clock that jumps", () => {
  test("a clock that jumps forward an hour and back fires no time twice and skips none", async () => {
    const { runtime, clock, fired } = open("2026-11-21T08:59:30Z");
    await runtime.schedule({ ...everyMinute, id: "tick", start: { agent: echo } });
    await clock.advance(30_000);
    clock.jump(HOUR_MS);
    await clock.advance(1_000);
    expect(dueTimes(fired), "what it jumped over fires once, within a second").toEqual(["09:00", "09:01"]);
    clock.jump(-HOUR_MS);
    await clock.advance(HOUR_MS - 2_000);
    expect(dueTimes(fired), "what the clock shows again has fired").toEqual(["09:00", "09:01"]);
    await clock.advance(61_000);
    expect(dueTimes(fired)).toEqual(["09:00", "09:01", "10:01"]);
  });

  test("a schedule that is put after the clock jumped back an hour fires at its time", async () => {
    const { runtime, clock, fired } = open("2026-11-21T08:59:30Z");
    clock.jump(-HOUR_MS);
    await runtime.schedule({ ...everyMinute, id: "tick", start: { agent: echo } });
    await clock.advance(60_000);
    expect(dueTimes(fired)).toEqual(["08:00"]);
  });

  test("a time that a zone shows twice fires once", ofCampaign, async () => {
    const { runtime, clock, fired } = open("2026-10-24T23:59:00Z");
    await runtime.schedule({
      id: "night",
      cron: "30 2 * * *",
      timeZone: "Europe/Berlin",
      start: { agent: echo },
    });
    await clock.advance(3 * HOUR_MS);
    expect(dueTimes(fired)).toEqual(["00:30"]);
  });

  test("a time that a zone skips fires after the gap", ofCampaign, async () => {
    const { runtime, clock, fired } = open("2026-03-29T00:00:00Z");
    await runtime.schedule({
      id: "night",
      cron: "30 2 * * *",
      timeZone: "Europe/Berlin",
      start: { agent: echo },
    });
    await clock.advance(3 * HOUR_MS);
    expect(dueTimes(fired)).toEqual(["01:00"]);
  });
});

describe("agents of schedules", () => {
  test("agents of schedules are found by their file, and run in the version that is there now", async () => {
    const asked: AgentRef[] = [];
    const { runtime, clock, storage } = open("2026-11-21T08:59:30Z", {
      schedules: {
        findAgent: (ref) => {
          asked.push(ref);
          return Promise.resolve(defineAgent({ name: "echo", version: "2", run: async () => "new" }));
        },
      },
    });
    const putter = open("2026-11-21T08:59:30Z", { storage, schedules: false });
    await putter.runtime.schedule({ ...everyMinute, id: "tick", start: { agent: echo, file: "/echo.ts" } });
    await clock.advance(90_000);
    expect(asked).toEqual([{ name: "echo", version: "1", file: "/echo.ts" }]);
    expect(await runtime.handle("tick-20261121T090000Z").result()).toBe("new");
    expect(await storage.reader.session("tick-20261121T090100Z")).toMatchObject({
      agent: { name: "echo", version: "2", file: "/echo.ts" },
    });
  });

  test("agents of the sessions that are signalled are found too", async () => {
    const desk = defineAgent({ name: "desk", run: (ctx) => ctx.waitForSignal("go") });
    const storage = new MemoryStorage();
    const before = open("2026-11-21T08:59:30Z", { storage });
    await before.runtime.start(desk, undefined, { sessionId: "desk", file: "/desk.ts" });
    await before.runtime.schedule({ ...everyMinute, signal: { sessionId: "desk", name: "go", payload: 5 } });
    await before.runtime.close();
    const after = open("2026-11-21T08:59:30Z", {
      storage,
      schedules: { findAgent: ({ file }) => Promise.resolve(file === "/desk.ts" ? desk : undefined) },
    });
    await after.clock.advance(30_000);
    expect(await after.runtime.handle("desk").result()).toBe(5);
  });

  test("a schedule's signal resumes the successor when the target session has handed over", async () => {
    const successor = defineAgent({ name: "heir", run: (ctx) => ctx.waitForSignal("go") });
    const desk = defineAgent({
      name: "desk",
      agents: [successor],
      run: (ctx) => ctx.handoffToAgent(local(successor), undefined, { completion: "immediate" }),
    });
    const storage = new MemoryStorage();
    const before = open("2026-11-21T08:59:30Z", { storage });
    await before.runtime.start(desk, undefined, { sessionId: "desk" });
    await before.runtime.schedule({ ...everyMinute, signal: { sessionId: "desk", name: "go", payload: 5 } });
    const successorId = (await storage.reader.session("desk"))?.handedOffTo ?? "";
    await until(async () => (await storage.reader.session(successorId))?.status === "waiting", "it waits");
    await before.runtime.close();
    const after = open("2026-11-21T08:59:30Z", {
      storage,
      agents: [],
      adopt: false,
      schedules: { findAgent: async ({ name }) => (name === "heir" ? successor : undefined) },
    });
    await after.clock.advance(30_000);
    expect(await storage.reader.session(successorId)).toMatchObject({ status: "completed", output: "5" });
  });

  test("a session whose agent cannot be found is left to other processes, with a warning", async () => {
    const storage = new MemoryStorage();
    const { clock, warned } = open("2026-11-21T08:59:30Z", {
      storage,
      schedules: { findAgent: () => Promise.reject(new Error("the file is gone")) },
    });
    await storage.commit([put("tick", "echo")], 0);
    await clock.advance(30_000);
    const [id] = await sessionIds(storage);
    expect(await storage.reader.session(id!)).toMatchObject({ status: "submitted" });
    expect(warned.map(({ message }) => message)).toContain("the file is gone");
    const knowing = open("2026-11-21T09:00:00Z", { storage, agents: [echo], schedules: false });
    expect(await knowing.runtime.recover()).toContain(id);
  });
});

describe("storage that cannot be asked", () => {
  test("storage that was unavailable is asked again, and times that were due meanwhile fire once", async () => {
    const memory = new MemoryStorage();
    let isAway = false;
    const storage = storageWith(memory, {
      due: (query) =>
        isAway ? Promise.reject(new UnavailableError("storage_unavailable", "away")) : memory.due(query),
    });
    const { runtime, clock, fired } = open("2026-11-21T08:59:30Z", { storage });
    await runtime.schedule({ ...everyMinute, id: "tick", start: { agent: echo } });
    isAway = true;
    await clock.advance(3 * 60_000);
    isAway = false;
    await clock.advance(1_000);
    expect(dueTimes(fired)).toEqual(["09:00"]);
  });
});

describe("a schedule that cannot be", () => {
  const wrong = async (more: object): Promise<unknown> => {
    const { runtime } = open(undefined, { schedules: false });
    const refused = await runtime
      .schedule({ ...everyMinute, start: { agent: echo }, ...more })
      .catch((error: unknown) => error);
    expect(await runtime.schedules()).toEqual([]);
    return refused;
  };

  test("an invalid schedule is refused with the name of the wrong field, and is not stored", async () => {
    expect(await wrong({ cron: "61 * * * *" })).toMatchObject({ code: "usage", at: "cron" });
    expect(await wrong({ timeZone: "Mars/Olympus" })).toMatchObject({ code: "usage", at: "timeZone" });
    expect(await wrong({ id: "a b" })).toMatchObject({ code: "usage", at: "id" });
    expect(await wrong({ id: "a".repeat(65) })).toMatchObject({ code: "usage", at: "id" });
    expect(await wrong({ start: undefined, signal: { sessionId: "a", name: "answer:1" } })).toMatchObject({
      code: "usage",
    });
    expect(await wrong({ start: { agent: echo, input: 1n } })).toMatchObject({ code: "not_json" });
  });

  test("an invalid schedule that is stored is reported once, and delays no other", async () => {
    const { clock, storage, warned, fired } = open("2026-11-21T08:59:30Z", { agents: [echo] });
    const { schedule } = put("broken", "echo");
    await storage.commit(
      [
        { type: "put_schedule", schedule: { ...schedule, cron: "from another version" } },
        { type: "put_schedule", schedule: { ...schedule, scheduleId: "broken too", nextAt: -9e15 } },
        put("tick", "echo"),
      ],
      0,
    );
    await clock.advance(150_000);
    expect(fired.map(({ scheduleId }) => scheduleId)).toEqual(["tick", "tick", "tick", "tick"]);
    for (const broken of ["broken", "broken too"])
      expect(
        warned.filter(({ message }) => message.includes(`schedule ${broken} could not fire`)),
      ).toHaveLength(1);
  });
});

// ---- what they share ---------------------------------------------------------------------------------------------

const everyMinute = { cron: "* * * * *", timeZone: "UTC" };
const echo = echoAs("echo");

function echoAs(name: string): Agent {
  return defineAgent({ name, run: async (ctx) => ctx.input });
}

function put(scheduleId: string, agent: string) {
  const schedule: Schedule = {
    scheduleId,
    ...everyMinute,
    action: { type: "start", agent: { name: agent, version: "1" }, input: undefined },
    nextAt: 60_000,
    createdAt: 0,
  };
  return { type: "put_schedule", schedule } as const;
}

function dueTimes(fired: readonly Firing[]): string[] {
  return fired.map(({ dueAt }) => new Date(dueAt).toISOString().slice(11, 16));
}

async function sessionIds(storage: AgentStorage): Promise<string[]> {
  const sessions = await storage.reader.sessions({ limit: 1_000 });
  return sessions.map(({ sessionId }) => sessionId).sort();
}

function open(
  now = "2026-11-21T08:59:30Z",
  { schedules = true, ...options }: Partial<RuntimeOptions> & { clock?: TestClock } = {},
) {
  const storage = options.storage ?? new MemoryStorage();
  const clock = options.clock ?? new TestClock(Date.parse(now));
  const fired: Firing[] = [];
  const warned: { readonly sessionId: string; readonly message: string }[] = [];
  const onFired = (firing: Firing): void => void fired.push(firing);
  const runtime = createRuntime({
    random: countingRandom(opened.length + 1),
    development: false,
    owner: "test",
    tracer: { trace: (event) => void (event.type === "warned" && warned.push(event)) },
    ...options,
    schedules: schedules === false ? false : { onFired, ...(schedules === true ? {} : schedules) },
    storage,
    clock,
  });
  opened.push(runtime);
  clocks.add(clock);
  return { runtime, clock, storage, fired, warned };
}
