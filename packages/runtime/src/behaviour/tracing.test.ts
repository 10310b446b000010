// Trace events are complete, true and in order. A tracer cannot harm a session, and costs nothing when there
// is none.

import { type AgentStorage, defined, type ShownDraft, type TraceEvent } from "@holdfast/core";
import { afterEach, describe, expect, test } from "vitest";
import {
  countingRandom,
  gate,
  recordingTracer,
  storageWith,
  TestClock,
  turns,
  until,
} from "@holdfast/testkit/test-runtime";
import { defineAgent, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { silentTracer } from "../node/node-ports.ts";
import { createRuntime, vanishRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

describe("the order of what is traced", () => {
  test("a wait is traced after its commit, never before", async () => {
    const tracer = recordingTracer();
    const memory = new MemoryStorage();
    const answered = gate();
    const storage = storageWith(memory, {
      commit: async (group, now) => {
        const results = await memory.commit(group, now);
        await answered.opened;
        return results;
      },
    });
    const { runtime } = open({ storage, tracer });
    const starting = runtime.start(agentOf((ctx) => ctx.waitForSignal("go")));
    await turns(50);
    expect(typesOf(tracer.events)).toEqual(["session_started", "turn_started"]);
    answered.open();
    await starting;
    expect(typesOf(tracer.events)).toEqual(["session_started", "turn_started", "committed", "waiting"]);
  });

  test("every traced start of a session has its end, in its place", async () => {
    const tracer = recordingTracer();
    const { runtime, clock } = open({ tracer });
    const handle = await runtime.start(
      defineAgent({
        name: "turns",
        version: "7",
        initial: () => ({ n: 0 }),
        turn: async (ctx, { n }: { n: number }) => {
          ctx.appendEntry({ role: "assistant", content: "hello" });
          await ctx.run("work", (task) => {
            task.reportUsage({ model: "m", inputTokens: 3, outputTokens: 4, costMicroUsd: 5 });
            return task.attempt === 1 && n === 1 ? fail(new Error("again")) : n;
          });
          return n === 1 ? { done: "done" } : { state: { n: n + 1 } };
        },
      }),
      undefined,
      { timeoutMs: 3_600_000 },
    );
    await clock.advance(5_000);
    expect(await handle.result()).toBe("done");
    expect(tracer.events.map(said)).toEqual([
      "session_started turns 7 new",
      "turn_started 0",
      "committed",
      "entry_appended assistant",
      "task_started 1",
      "task_delta 1 usage 3/4/5",
      "task_ended 1 completed",
      "committed",
      "turn_ended 0 checkpointed",
      "turn_started 1",
      "committed",
      "entry_appended assistant",
      "task_started 1",
      "task_delta 1 usage 3/4/5",
      "task_ended 1 retrying",
      "committed",
      "task_started 2",
      "task_delta 2 usage 3/4/5",
      "task_ended 2 completed",
      "committed",
      "turn_ended 1 completed",
      "session_ended completed",
    ]);
  });

  test("a failed session is traced with its error", async () => {
    const tracer = recordingTracer();
    const { runtime } = open({ tracer });
    const handle = await runtime.start(agentOf(() => Promise.reject(new RangeError("too far"))));
    await handle.settled();
    expect(tracer.events.slice(-2)).toMatchObject([
      { type: "turn_ended", outcome: "completed" },
      { type: "session_ended", status: "failed", error: { name: "RangeError", message: "too far" } },
    ]);
  });

  test("a fault ends the turn as interrupted and the session as paused, with the fault", async () => {
    const tracer = recordingTracer();
    const { runtime, clock } = open({ tracer });
    const handle = await runtime.start(agentOf(() => new Promise(() => {})));
    await clock.advance(1_001);
    await handle.settled();
    expect(tracer.events.slice(-2)).toMatchObject([
      { type: "turn_ended", turn: 0, outcome: "interrupted" },
      { type: "session_ended", status: "paused", error: { code: "non_durable_await" } },
    ]);
  });
});

describe("attempts that nobody waits for any more", () => {
  test("a withdrawn attempt is traced as cancelled once, whatever its handler does", async () => {
    const tracer = recordingTracer();
    const { runtime } = open({ tracer });
    const stuck = gate<string>();
    const handle = await runtime.start(
      agentOf((ctx) => ctx.race([ctx.run("slow", () => stuck.opened), ctx.run("fast", () => "fast")])),
    );
    expect(await handle.result()).toBe("fast");
    stuck.open("late");
    await turns(20);
    expect(ends(tracer.events)).toEqual(["fast completed", "slow cancelled"]);
  });

  test("closing the runtime ends attempts, turn and session as released", async () => {
    const tracer = recordingTracer();
    const { runtime } = open({ tracer });
    await runtime.start(agentOf((ctx) => ctx.run("long", () => new Promise(() => {}))));
    await until(() => typesOf(tracer.events).includes("task_started"), "the task");
    await runtime.close();
    expect(tracer.events.slice(-4).map(said)).toEqual([
      "task_ended 1 cancelled",
      "committed", // The task is handed over.
      "turn_ended 0 interrupted",
      "session_released",
    ]);
  });
});

describe("a session that comes back", () => {
  test("after the death of a process the turn continues, the lost attempt is traced, and every span has a start", async () => {
    const storage = new MemoryStorage();
    const agent = agentOf((ctx) =>
      ctx.run("task", ({ attempt }) => (attempt === 1 ? new Promise(() => {}) : "ok")),
    );
    const first = open({ storage });
    const { sessionId } = await first.runtime.start(agent);
    await turns(20);
    vanishRuntime(first.runtime);

    const tracer = recordingTracer();
    const next = open({ storage, tracer, agents: [agent] });
    const handle = await next.runtime.resume(sessionId);
    expect(await handle.result()).toBe("ok");
    expect(tracer.events.map(said)).toEqual([
      "session_started subject 1 recovered",
      "turn_started 0 recovered",
      "task_lost 1",
      "committed",
      "task_started 2",
      "task_ended 2 completed",
      "committed", // The outcome is kept first: an attempt was lost before (K6).
      "committed",
      "turn_ended 0 completed",
      "session_ended completed",
    ]);
  });

  test("a session that is loaded only to wait again is traced, and leaves memory again", async () => {
    const storage = new MemoryStorage();
    const agent = agentOf((ctx) => ctx.waitForSignal("go"));
    const first = open({ storage });
    const { sessionId } = await first.runtime.start(agent);
    await first.runtime.close();

    const tracer = recordingTracer();
    const { runtime, clock } = open({ storage, tracer, agents: [agent], warmMs: 1_000 });
    await runtime.resume(sessionId);
    await turns(20);
    await clock.advance(1_000);
    expect(tracer.events.map(said)).toEqual([
      "session_started subject 1 recovered",
      "turn_started 0 recovered",
      "waiting",
      "turn_ended 0 interrupted",
      "session_released",
    ]);
    expect(runtime.live).toBe(0);
  });
});

describe("trace context", () => {
  const CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

  test("the trace context of the start is recorded, and reaches tasks in every process", async () => {
    const storage = new MemoryStorage();
    const seen: (string | undefined)[] = [];
    const agent = agentOf(async (ctx) => {
      await ctx.run("first", (task) => void seen.push(task.traceparent));
      await ctx.waitForSignal("go");
      await ctx.run("second", (task) => void seen.push(task.traceparent));
    });
    const first = open({ storage });
    const { sessionId } = await first.runtime.start(agent, undefined, { traceparent: CALLER });
    await until(async () => (await storage.reader.session(sessionId))?.status === "waiting", "the wait");
    await first.runtime.close();
    const tracer = recordingTracer();
    const { runtime } = open({ storage, agents: [agent], tracer });
    const handle = await runtime.resume(sessionId);
    await handle.signal("go");
    await handle.result();
    expect(seen).toEqual([CALLER, CALLER]);
    expect(tracer.events[0]).toMatchObject({ type: "session_started", traceparent: CALLER });
  });

  test("a tracer's own context is recorded instead, and each attempt has one", async () => {
    const storage = new MemoryStorage();
    const tracer = {
      trace: () => {},
      traceparent: (id: string, attempt?: { taskId: string; attempt: number }) =>
        attempt === undefined ? `of ${id}` : `of ${attempt.taskId} ${attempt.attempt}`,
    };
    const { runtime } = open({ storage, tracer });
    const handle = await runtime.start(
      agentOf((ctx) => ctx.run("t", (task) => task.traceparent)),
      undefined,
      { traceparent: CALLER },
    );
    expect(await handle.result()).toBe(`of ${handle.sessionId}-0 1`);
    expect((await handle.session()).agent.traceparent).toBe(`of ${handle.sessionId}`);
  });

  test("a tracer that throws when asked for its context has none", async () => {
    const { runtime } = open({ tracer: { trace: () => {}, traceparent: () => fail(new Error("tracer")) } });
    const handle = await runtime.start(agentOf((ctx) => ctx.run("t", (task) => task.traceparent ?? "none")));
    expect(await handle.result()).toBe("none");
  });
});

test("the silent tracer costs no event and no read of the clock", async () => {
  const asked = { trace: 0 };
  const clock = new TestClock();
  const counting = {
    now: () => (asked.trace++, clock.now()),
    monotonic: () => 0,
    setTimer: clock.setTimer.bind(clock),
  };
  const agent = agentOf(async (ctx) => {
    for (let i = 0; i < 10; i++) await ctx.run("t", (task) => task.streamToken("x"));
  });
  const run = async (tracer: RuntimeOptions["tracer"], storage?: AgentStorage): Promise<number> => {
    asked.trace = 0;
    const { runtime } = open({
      clock: counting as unknown as TestClock,
      ...defined({ tracer, storage }),
    });
    await (await runtime.start(agent)).result();
    return asked.trace;
  };
  const silent = await run(silentTracer);
  expect(await run(undefined)).toBe(silent);
  // Nobody has asked to show texts, so a storage that could pass them on costs nothing either.
  expect(await run(undefined, storageWith(new MemoryStorage(), { drafts: { show: async () => [] } }))).toBe(
    silent,
  );
  const received: TraceEvent[] = [];
  const traced = await run({ trace: (event) => void received.push(event) });
  // The clock is read once for each event, and not at all without a tracer.
  expect(traced - silent).toBe(received.length);
});

test("a runtime that shows texts gives the storage what a task writes while it runs, and another one gives none", async () => {
  const shown: (readonly ShownDraft[])[] = [];
  const show = async (drafts: readonly ShownDraft[]) => {
    shown.push(drafts);
    return drafts.map(({ sessionId }) => sessionId);
  };
  for (const showsTexts of [false, true]) {
    const storage = storageWith(new MemoryStorage(), { drafts: { show } });
    const { runtime, clock } = open({ storage, showsTexts });
    const ended = gate();
    const agent = agentOf((ctx) =>
      ctx.run("write", async (task) => {
        task.streamToken("The first half");
        await ended.opened;
      }),
    );
    const session = await runtime.start(agent);
    for (let at = 0; at < 4; at++) {
      await turns(20);
      await clock.advance(1_000);
    }
    ended.open();
    await session.result();
    const texts = shown.flat().flatMap(({ draft }) => draft?.text ?? []);
    expect(texts.at(-1)).toBe(showsTexts ? "The first half" : undefined);
  }
});

test("closing waits for what a tracer holds back, and survives one that cannot let go of it", async () => {
  const flushed: string[] = [];
  const { runtime } = open({ tracer: { trace: () => {}, flush: async () => void flushed.push("yes") } });
  await runtime.close();
  expect(flushed).toEqual(["yes"]);
  const bad = open({ tracer: { trace: () => {}, flush: () => Promise.reject(new Error("disk")) } });
  await bad.runtime.close();
});

function open(options: Partial<RuntimeOptions> & { storage?: AgentStorage; clock?: TestClock } = {}) {
  const clock = options.clock ?? new TestClock();
  const storage = options.storage ?? new MemoryStorage();
  const runtime = createRuntime({
    random: countingRandom(),
    development: false,
    owner: "test",
    ...options,
    storage,
    clock,
  });
  opened.push(runtime);
  return { runtime, clock, storage };
}

function agentOf(
  run: Parameters<typeof defineAgent>[0] extends infer D ? (D extends { run: infer R } ? R : never) : never,
): Agent {
  return defineAgent({ name: "subject", run });
}

/** An event in few words, with the members that are checked. */
function said(event: TraceEvent): string {
  switch (event.type) {
    case "session_started":
      return `session_started ${event.agent} ${event.version} ${event.recovered ? "recovered" : "new"}`;
    case "turn_started":
      return `turn_started ${event.turn}${event.recovered ? " recovered" : ""}`;
    case "turn_ended":
      return `turn_ended ${event.turn} ${event.outcome}`;
    case "task_started":
    case "task_lost":
      return `${event.type} ${event.attempt}`;
    case "task_ended":
      return `task_ended ${event.attempt} ${event.outcome}`;
    case "task_delta": {
      const { delta } = event;
      const text =
        delta.type === "usage"
          ? ` ${delta.usage.inputTokens}/${delta.usage.outputTokens}/${delta.usage.costMicroUsd}`
          : "";
      return `task_delta ${event.attempt} ${delta.type}${text}`;
    }
    case "entry_appended":
      return `entry_appended ${event.role}`;
    case "session_ended":
      return `session_ended ${event.status}`;
    default:
      return event.type;
  }
}

function ends(events: readonly TraceEvent[]): string[] {
  return events
    .flatMap((event) => (event.type === "task_ended" ? `${event.kind} ${event.outcome}` : []))
    .toSorted();
}

function typesOf(events: readonly TraceEvent[]): string[] {
  return events.map(({ type }) => type);
}

function fail(error: Error): never {
  throw error;
}
