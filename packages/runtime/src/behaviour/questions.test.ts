// Questions with a deadline, events shortly before and after it, and questions that are asked again.

import { TestClock, turns, until } from "@holdfast/testkit/test-runtime";
import { afterEach, expect, test } from "vitest";
import { defineAgent, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

const asks = defineAgent({
  name: "asks",
  run: async (ctx) => {
    const [first, second] = ["first?", "second?"].map((prompt) => ctx.requestInput(prompt, { ttlMs: 1_000 }));
    return [await first, await second];
  },
});

test("an unanswered question of a cancelled session causes no busy loop until the deadline", async () => {
  const clock = new TestClock();
  const runtime = createRuntime({ storage: new MemoryStorage(), clock, development: false });
  opened.push(runtime);
  const asksAtTheEnd = defineAgent({
    name: "asks-at-the-end",
    run: async (ctx) => {
      await ctx.waitForSignal("never").catch(() => {});
      return ctx.cleanup(async (c) => {
        const question = c.requestInput("keep it?", { ttlMs: 1_000 });
        return (await c.select({ question, late: c.sleep(5_000) })).key;
      });
    },
  });
  const session = await runtime.start(asksAtTheEnd);
  await turns(10);
  await session.cancel({ graceMs: 9_000 });
  await turns(10);
  let timers = 0;
  const { setTimer } = clock;
  clock.setTimer = (...timer) => {
    if (++timers > 20) throw new Error("it is called again and again");
    return setTimer.apply(clock, timer);
  };
  await clock.advance(5_000);
  expect(await session.settled()).toMatchObject({ status: "cancelled", output: "late" });
});

test.each([
  ["is heard", 2, { status: "completed", output: [{ approved: true }, { approved: true }] }],
  ["does not stand for the other one", 1, { status: "cancelled" }],
])("an answer that came in time, while nobody ran the session, %s", async (_what, answers, expected) => {
  const storage = new MemoryStorage();
  const clock = new TestClock();
  const open = (adopt: boolean): Runtime => {
    const runtime = createRuntime({ storage, clock, adopt, agents: adopt ? [asks] : [], development: false });
    opened.push(runtime);
    return runtime;
  };
  const first = open(true);
  const { sessionId } = await first.start(asks);
  await turns(10);
  await first.close();
  const other = open(false);
  for (let i = 0; i < answers; i++) await other.answer(sessionId, { approved: true });
  clock.stall(2_000);
  const second = open(true);
  await second.recover();
  expect(await second.handle(sessionId).settled()).toMatchObject(expected);
});

test("a minimal session that restarts from scratch may be answered once in each incarnation", async () => {
  const storage = new MemoryStorage();
  const open = (agents: Agent[]): Runtime => {
    const runtime = createRuntime({ storage, agents, clock: new TestClock(), development: false });
    opened.push(runtime);
    return runtime;
  };
  const agent = defineAgent({
    name: "asks",
    run: async (ctx) => {
      const { approved } = await ctx.requestInput("may I?");
      await ctx.waitForSignal("go");
      return approved;
    },
  });
  let runtime = open([]);
  await runtime.start(agent, undefined, { sessionId: "s", persistence: "minimal" });
  const stands = (status: string) =>
    until(async () => (await storage.reader.session("s"))?.status === status, `it is ${status}`);
  for (const approved of [true, false]) {
    await stands("input_required");
    const answers = [runtime.answer("s", { approved }), runtime.answer("s", { approved: !approved })];
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect(statuses).toEqual(["stored", "duplicate"]);
    await stands("waiting");
    if (!approved) break;
    await runtime.close();
    runtime = open([agent]);
    await runtime.resume("s");
  }
  await runtime.signal("s", "go");
  expect(await runtime.handle("s").result()).toBe(false);
});
