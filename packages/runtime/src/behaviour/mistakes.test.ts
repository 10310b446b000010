// Mistakes of agents: each is named with its place, and no work is lost by it.

import { gate, recordingTracer, TestClock, turns, until } from "@holdfast/testkit/test-runtime";
import { afterEach, expect, test } from "vitest";
import { defineAgent, type Agent, type TaskContext } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(() => Promise.all(opened.splice(0).map((runtime) => runtime.close())).then(() => {}));

function open(options: Partial<RuntimeOptions> = {}): { runtime: Runtime; clock: TestClock } {
  const clock = new TestClock();
  const runtime = createRuntime({ storage: new MemoryStorage(), clock, development: true, ...options });
  opened.push(runtime);
  return { runtime, clock };
}

const agentOf = (run: (ctx: Parameters<Agent["main"]>[0]) => Promise<unknown>, name = "subject"): Agent =>
  defineAgent({ name, run });

function fail(error: Error): never {
  throw error;
}

test.each([
  ["gives frames", (_: Error, frames: readonly unknown[]) => frames, /mistakes\.test\.ts:\d+:\d+$/],
  ["gives an object", (error: Error) => ({ text: error.message }), undefined],
  ["throws", () => fail(new Error("no stacks here")), undefined],
])(
  "an agent that makes a mistake is paused for it where Error.prepareStackTrace %s, and the process goes on",
  async (_, prepareStackTrace, line) => {
    const { runtime, clock } = open();
    const before = Error.prepareStackTrace;
    Error.prepareStackTrace = prepareStackTrace;
    try {
      const stray = agentOf(async (ctx) => {
        await new Promise((resolve) => setImmediate(resolve));
        await ctx.sleep(Date.now());
      }, "stray");
      const twice = agentOf((ctx) => Promise.all([ctx.waitForSignal("s"), ctx.waitForSignal("s")]), "twice");
      const once = { retry: { maxAttempts: 1 } };
      const throws = agentOf((ctx) => ctx.run("t", () => fail(new Error("boom")), once), "throws");
      const handles = await Promise.all([stray, twice, throws].map((agent) => runtime.start(agent)));
      const settled = await Promise.all(handles.map((handle) => handle.settled()));
      const place = line === undefined ? {} : { at: expect.stringMatching(line) };
      expect(settled).toMatchObject([
        { status: "paused", fault: { code: "non_durable_await", ...place } },
        { status: "paused", fault: { code: "usage", ...place } },
        { status: "failed", error: { cause: { message: "boom", ...place } } },
      ]);
      await clock.advance(1_000);
    } finally {
      Error.prepareStackTrace = before!;
    }
  },
);

test("an agent that gives a consuming wait to Promise.race is paused for it, and goes on with ctx.race", async () => {
  const raced = { by: "Promise" as "Promise" | "ctx", works: 0 };
  const agent = agentOf(async (ctx) => {
    for (let n = 0; n < 3; n++) {
      await ctx.run("work", () => raced.works++);
      const items = [ctx.waitForSignal("stop"), ctx.sleep(1).then(() => "slept")] as const;
      // An agent that catches everything cannot hide its mistake, and loses no work by it.
      const first = await (raced.by === "ctx" ? ctx.race(items) : Promise.race(items)).catch(() => "caught");
      if (first !== "slept") return [first, n];
    }
    return "never";
  });
  const { runtime, clock } = open();
  const handle = await runtime.start(agent, undefined, { sessionId: "racer" });
  const settled = handle.settled();
  await turns(20);
  expect(await settled).toMatchObject({
    status: "paused",
    fault: { code: "usage", at: expect.stringMatching(/mistakes\.test\.ts:\d+:\d+$/) },
  });
  raced.by = "ctx";
  const resumed = await runtime.resume("racer");
  await clock.advance(1);
  await handle.signal("stop", "stopped");
  expect([await resumed.result(), raced.works]).toEqual([["stopped", 1], 2]);
});

test.each([
  ["at once", false],
  ["after a signal", true],
])(
  "tasks that wait for sessions of their own runtime, which ask for tasks %s, are named",
  async (_, waits) => {
    const tracer = recordingTracer();
    const { runtime } = open({ tracer, concurrency: 2 });
    const warned: string[] = [];
    const onWarning = ({ message }: Error): void => void warned.push(message);
    process.on("warning", onWarning);
    const free = gate();
    const child = agentOf(async (ctx) => {
      if (waits) await ctx.waitForSignal("go");
      return ctx.run("work", () => free.opened);
    }, "child");
    const ask = async ({ sessionId }: TaskContext): Promise<unknown> =>
      (await runtime.start(child, undefined, { sessionId: `${sessionId}.child` })).result();
    const parent = agentOf((ctx) => ctx.run("fan out", ask), "parent");
    const start = async (sessionId: string): Promise<void> => {
      await runtime.start(parent, undefined, { sessionId });
      await turns(20);
      if (waits) await runtime.signal(`${sessionId}.child`, "go");
      await turns(20);
    };
    await start("p1");
    // The work of the child has the other slot. A third task waits for one, and will get it.
    await runtime.start(agentOf((ctx) => ctx.run("other", () => 1), "other"));
    await turns(20);
    const named = (): unknown[] => tracer.events.filter(({ type }) => type === "warned");
    expect(named()).toEqual([]);
    free.open();
    expect(await runtime.handle("p1").settled()).toMatchObject({ status: "completed" });
    await Promise.all(["p2", "p3"].map((sessionId) => runtime.start(parent, undefined, { sessionId })));
    await turns(20);
    if (waits) await runtime.signal("p2.child", "go");
    await until(() => warned.length > 0, "the warning of the process");
    expect(warned).toEqual([
      expect.stringMatching(/"fan out" of session p2 waits .* as all 2 tasks do .*ctx\.waitForChild/),
    ]);
    expect(named()).toMatchObject([
      { sessionId: "p2", message: expect.stringContaining("waits for session p2.child of the same runtime") },
      { sessionId: "p3", message: expect.stringContaining("waits for session p3.child of the same runtime") },
    ]);
    process.off("warning", onWarning);
  },
);
