// K4a: no agent, task, tracer or reader can stop the other sessions of its process.

import type { AgentStorage } from "@holdfast/core";
import { UnavailableError } from "@holdfast/core";
import {
  countingRandom,
  gate,
  journalOf,
  recordingTracer,
  storageWith,
  TestClock,
  turns,
  until,
} from "@holdfast/testkit/test-runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sampled } from "@holdfast/testkit/campaign";
import { defineAgent, type Agent } from "../agents/define.ts";
import { LocalTaskExecutor } from "../tasks/local/local-task-executor.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";

const opened: Runtime[] = [];
let unhandled: unknown[] = [];
let others: ((...args: never[]) => void)[] = [];

beforeEach(() => {
  // The test runner's own listeners would end the run. Here an unhandled rejection is a failed assertion.
  unhandled = [];
  others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
  expect(process.listenerCount("unhandledRejection")).toBe(0);
  for (const listener of others) process.on("unhandledRejection", listener as never);
});

/** Unhandled rejections that no runtime took for its own are seen here. */
function watchUnhandled(): () => void {
  const listener = (reason: unknown) => void unhandled.push(reason);
  process.on("unhandledRejection", listener);
  return () => process.off("unhandledRejection", listener);
}

describe("an agent", () => {
  const bad: readonly (readonly [string, Run, string])[] = [
    ["throws at once", () => fail(new Error("at once")), "failed"],
    [
      "asks without end",
      async (ctx) => {
        for (;;) void ctx.sleep(1);
      },
      "paused",
    ],
    [
      "asks without end and swallows every error",
      async (ctx) => {
        for (let i = 0; i < 200_000; i++)
          try {
            void ctx.sleep(1);
          } catch {}
      },
      "paused",
    ],
    ["gives a timer no time", (ctx) => ctx.sleep(Number.NaN), "paused"],
    ["gives a wait no time", (ctx) => ctx.waitForSignal("s", { timeoutMs: Number.NaN }), "paused"],
    [
      "gives a task a policy that is none",
      (ctx) => ctx.run("t", () => 1, { retry: cyclicPolicy() }),
      "completed",
    ],
    [
      "asks after a macrotask",
      async (ctx) => {
        await new Promise((resolve) => setImmediate(resolve));
        await ctx.sleep(1);
      },
      "paused",
    ],
    ["returns what is no JSON", async () => new Map(), "paused"],
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- users do
    ["throws a proxy", () => Promise.reject(new Proxy({}, { get: () => fail(new Error("trap")) })), "failed"],
    [
      "leaves a rejection behind that has no text",
      async () => {
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- users do
        void Promise.reject(Object.create(null));
        return 1;
      },
      "completed",
    ],
    [
      "leaves rejections behind",
      async () => {
        void Promise.reject(new Error("left"));
        return 1;
      },
      "completed",
    ],
  ];

  test.each(sampled(bad, 2))(
    "an agent that %s does not affect other sessions",
    async (_name, run, status) => {
      const { runtime, clock } = open({ limits: { commandsPerSlice: 1_000 } });
      const go = gate();
      const good = agentOf(async (ctx) => {
        await ctx.run("before", () => go.opened);
        await ctx.sleep(50);
        return ctx.run("after", () => ctx.input);
      }, "good");
      const goodOnes = await Promise.all(Array.from({ length: 5 }, (_, i) => runtime.start(good, i)));
      const badAgent = agentOf(run, "bad");
      const badOnes = await Promise.all([1, 2, 3].map(() => runtime.start(badAgent)));
      await turns(10);
      go.open();
      await clock.advance(1_000);
      expect(await Promise.all(goodOnes.map((handle) => handle.result()))).toEqual([0, 1, 2, 3, 4]);
      expect(
        (await Promise.all(badOnes.map((handle) => handle.settled()))).map((settled) => settled.status),
      ).toEqual([status, status, status]);
    },
  );

  test("an agent that uses its context inside a task gets an error with the line", async () => {
    const { runtime } = open();
    const handle = await runtime.start(
      agentOf((ctx) =>
        ctx.run("lookup", async () => {
          await new Promise((resolve) => setTimeout(resolve, 1));
          return ctx.waitForSignal("go");
        }),
      ),
    );
    expect(await handle.settled()).toMatchObject({
      status: "paused",
      fault: {
        code: "non_durable_await",
        message: 'ctx was used inside the handler of task "lookup"',
        at: expect.stringMatching(/isolation\.test\.ts:\d+:\d+$/),
      },
    });
  });

  test.each([
    ["is refused before it is sent", "http://127.0.0.1:1/", "fetch failed"],
    ["cannot connect", "http://127.0.0.1:40999/", "fetch failed"],
  ])(
    "that awaits a fetch which %s is told of that await, with the line and the cause",
    async (_, url, why) => {
      const { runtime } = open({ development: true });
      const handle = await runtime.start(
        agentOf(async (ctx) => {
          await ctx.run("work", () => 1);
          await fetch(url);
        }),
      );
      expect(await handle.settled()).toMatchObject({
        status: "paused",
        fault: {
          code: "non_durable_await",
          at: expect.stringMatching(/isolation\.test\.ts:\d+:\d+$/),
          cause: { name: "TypeError", message: why },
        },
      });
    },
  );

  test("an agent in turn form that awaits a non-durable promise gets an error with its line", async () => {
    const { runtime } = open({ development: true });
    const agent = defineAgent({
      name: "turns",
      initial: () => 0,
      async turn() {
        await new Promise((resolve) => setTimeout(resolve, 1));
        return { state: 1 };
      },
    });
    const handle = await runtime.start(agent);
    expect(await handle.settled()).toMatchObject({
      status: "paused",
      fault: { code: "non_durable_await", at: expect.stringMatching(/isolation\.test\.ts:\d+:\d+$/) },
    });
  });

  test("an agent that is blocked on nothing durable is faulted after the limit, not before", async () => {
    const { runtime, clock } = open();
    const handle = await runtime.start(agentOf(() => new Promise(() => {})));
    const settled = handle.settled();
    await clock.advance(999);
    expect((await handle.session()).status).toBe("working");
    await clock.advance(1);
    expect(await settled).toMatchObject({ status: "paused", fault: { code: "non_durable_await" } });
    expect((await handle.session()).error?.message).toContain("not durable");
  });

  test("an unhandled rejection of an agent is a warning of its session, also from a branch after a task", async () => {
    const tracer = recordingTracer();
    const stop = watchUnhandled();
    const { runtime } = open({ tracer });
    open(); // Another runtime of the same process, that does not know the session.
    const handle = await runtime.start(
      agentOf(async (ctx) => {
        const branch = async () => {
          await ctx.run("t", () => 1);
          throw new Error("nobody looks");
        };
        void branch();
        await ctx.waitForSignal("go");
        return "fine";
      }),
    );
    await until(() => tracer.events.some(({ type }) => type === "warned"), "the warning");
    await handle.signal("go");
    expect(await handle.result()).toBe("fine");
    expect(tracer.events.filter(({ type }) => type === "warned")).toMatchObject([
      { sessionId: handle.sessionId, message: expect.stringContaining("nobody looks") },
    ]);
    stop();
  });
});

describe("code outside agents", () => {
  test("a tracer that always throws delays and breaks nothing", async () => {
    const { runtime, clock } = open({ tracer: { trace: () => fail(new Error("tracer")) } });
    const handle = await runtime.start(
      agentOf(async (ctx) => {
        ctx.appendEntry({ role: "user", content: 1 });
        await ctx.run("t", ({ attempt }) => (attempt === 1 ? fail(new Error("again")) : 1));
        await ctx.sleep(10);
        return "fine";
      }),
    );
    await clock.advance(5_000);
    expect(await handle.result()).toBe("fine");
  });

  test("a task executor that throws instead of starting abandons that session only", async () => {
    const clock = new TestClock();
    const local = new LocalTaskExecutor({ clock });
    const { runtime } = open({
      clock,
      tasks: {
        describe: (kind) => local.describe(kind),
        kinds: () => local.kinds(),
        start: (attempt, onEnd) =>
          attempt.kind === "broken" ? fail(new Error("executor")) : local.start(attempt, onEnd),
        close: () => local.close(),
      },
    });
    const [bad, good] = await Promise.all([
      runtime.start(agentOf((ctx) => ctx.waitForSignal("go").then(() => ctx.run("broken", () => 1)), "bad")),
      runtime.start(agentOf((ctx) => ctx.run("whole", () => 2), "good")),
    ]);
    const left = bad.settled();
    await turns(5);
    await bad.signal("go");
    expect(await good.result()).toBe(2);
    expect((await left).status).toBe("released");
  });

  test("a storage that cannot say what is due is asked again, and the process does not end", async () => {
    let failures = 2;
    const memory = new MemoryStorage();
    const storage = storageWith(memory, {
      due: (query) =>
        failures-- > 0
          ? Promise.reject(new UnavailableError("storage_unavailable", "away"))
          : memory.due(query),
    });
    const stop = watchUnhandled();
    const { runtime, clock } = open({ storage, warmMs: 100 });
    const handle = await runtime.start(agentOf((ctx) => ctx.sleep(60_000).then(() => "slept")));
    await clock.advance(1_000);
    expect(runtime.live).toBe(0);
    await clock.advance(60_000);
    expect(await handle.result()).toBe("slept");
    expect(unhandled).toEqual([]);
    stop();
  });

  test("a storage whose reads fail for a moment releases the session, and its time still comes", async () => {
    let failing = false;
    const memory = new MemoryStorage();
    const storage = storageWith(memory, {
      arrivals: (sessionId, after) =>
        failing
          ? Promise.reject(new UnavailableError("storage_unavailable", "away"))
          : memory.arrivals(sessionId, after),
    });
    const { runtime, clock } = open({ storage });
    const handle = await runtime.start(agentOf((ctx) => ctx.waitForSignal("go")));
    await turns(10);
    failing = true;
    expect(await handle.signal("go", "there")).toEqual({ status: "stored" });
    await turns(20);
    failing = false;
    await clock.advance(10_000);
    expect((await handle.session()).status).toBe("completed");
  });

  test("rejections that belong to no session are left to others, however many runtimes listen", async () => {
    const stop = watchUnhandled();
    open();
    open();
    void Promise.reject(new Error("foreign"));
    await turns(5);
    expect(unhandled).toMatchObject([{ message: "foreign" }]);
    stop();
    // Without other listeners, two runtimes must not hide a rejection for which Node would end the process.
    const uncaught: unknown[] = [];
    const before = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    process.on("uncaughtException", (error) => uncaught.push(error));
    try {
      void Promise.reject(new Error("nobody's"));
      await turns(5);
    } finally {
      process.removeAllListeners("uncaughtException");
      for (const listener of before) process.on("uncaughtException", listener);
    }
    expect(uncaught).toMatchObject([{ message: "nobody's" }]);
  });
});

describe("tasks of one session", () => {
  test("tasks that end inside another session's slice are delivered all the same", async () => {
    const { runtime } = open();
    const shared = gate<string>();
    const waiting = await runtime.start(agentOf((ctx) => ctx.run("shared", () => shared.opened), "waiting"));
    await turns(10);
    const opening = await runtime.start(
      agentOf(async (ctx) => {
        await ctx.waitForSignal("open");
        shared.open("from an agent's slice");
        await ctx.waitForSignal("never");
      }, "opening"),
    );
    await opening.signal("open");
    expect(await waiting.result()).toBe("from an agent's slice");
  });

  test("a hundred failing sessions beside a hundred good ones: each ends as its own code says", async () => {
    const { runtime, storage } = open({ clock: new TestClock() });
    const handles = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        runtime.start(
          agentOf(async (ctx) => {
            await ctx.run("a", () => i);
            if (i % 2 === 1) throw new Error(`session ${i}`);
            return i;
          }, `agent ${i}`),
        ),
      ),
    );
    const settled = await Promise.all(handles.map((handle) => handle.settled()));
    settled.forEach((each, i) =>
      expect(each).toMatchObject(
        i % 2 === 1
          ? { status: "failed", error: { message: `session ${i}` } }
          : { status: "completed", output: i },
      ),
    );
    for (const { sessionId } of handles.slice(0, 5))
      expect((await journalOf(storage, sessionId)).length).toBe(4);
  });
});

function open(options: Partial<RuntimeOptions> & { storage?: AgentStorage; clock?: TestClock } = {}) {
  const storage = options.storage ?? new MemoryStorage();
  const clock = options.clock ?? new TestClock();
  const runtime = createRuntime({
    random: countingRandom(opened.length + 1),
    development: false,
    owner: "test",
    ...options,
    storage,
    clock,
  });
  opened.push(runtime);
  return { runtime, clock, storage };
}

type Run = (ctx: Parameters<Agent["main"]>[0]) => Promise<unknown>;

function agentOf(run: Run, name = "subject"): Agent {
  return defineAgent({ name, run });
}

/**
 * A value that a caller without types might pass: it has more members than a policy, and none of them is
 * JSON.
 */
function cyclicPolicy() {
  const policy: Record<string, unknown> = { maxAttempts: 1, payload: 1, onRetry: () => 1 };
  policy["self"] = policy;
  return policy as { maxAttempts: number };
}

function fail(error: Error): never {
  throw error;
}

test("a fault outside a slice waits for the batch in flight without a turn of its own, and parks the session after it", async () => {
  const memory = new MemoryStorage();
  const held = gate();
  let isHeld = false;
  const storage = storageWith(memory, {
    async commit(group, now) {
      if (isHeld) await held.opened;
      return memory.commit(group, now);
    },
  });
  let asked = 0;
  const immediate = (callback: () => void): void => {
    asked++;
    setImmediate(callback);
  };
  const stray = gate();
  const agent = defineAgent({
    name: "stray",
    run: async (ctx) => {
      void stray.opened.then(() => ctx.now()).catch(() => {});
      await ctx.waitForSignal("go");
      ctx.appendEntry({ role: "user", content: "kept" });
      await ctx.waitForSignal("never");
    },
  });
  const runtime = createRuntime({ storage, immediate, development: false });
  const session = await runtime.start(agent);
  await turns(5);
  const signalled = session.signal("go");
  await until(
    async () => (await memory.reader.pendingSignals(session.sessionId)).length === 1,
    "it is stored",
  );
  isHeld = true;
  await signalled;
  await turns(5);
  const before = asked;
  stray.open();
  await turns(200);
  expect(asked - before).toBeLessThan(20);
  isHeld = false;
  held.open();
  expect(await session.settled()).toMatchObject({ status: "paused", fault: { code: "non_durable_await" } });
  expect((await session.session()).entryCount).toBe(1);
  await runtime.close();
});
