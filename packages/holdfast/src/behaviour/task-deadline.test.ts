// The deadline of a task: over all attempts, back-offs and processes (H8a).

import type { AgentStorage, Session, TaskAttempt, TaskExecutor } from "@holdfast/core";
import {
  createRuntime,
  defineAgent,
  defineTask,
  MemoryStorage,
  type Agent,
  type Runtime,
  type RuntimeOptions,
} from "@holdfast/runtime";
import { vanishRuntime } from "@holdfast/runtime/internal";
import { openSqliteStorage } from "@holdfast/storage/sqlite";
import {
  countingRandom,
  gate,
  journalOf,
  mortal,
  recordingTracer,
  storageWith,
  TestClock,
  turns,
  until,
} from "@holdfast/testkit/test-runtime";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";

const opened: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

const HOUR = 3_600_000;

describe("a task with a deadline", () => {
  test("a task is aborted at its deadline in the middle of an attempt, and fails with task_timeout", async () => {
    const tracer = recordingTracer();
    const { runtime, clock, storage } = open({ tracer });
    const began = clock.now();
    const reasons: string[] = [];
    const handle = await runtime.start(
      failing((ctx) =>
        ctx.run(
          "stuck",
          ({ signal }) => {
            const stopped = Promise.withResolvers<void>();
            signal.addEventListener("abort", () => {
              reasons.push((signal.reason as Error).message);
              stopped.resolve(); // Closing waits for it.
            });
            return stopped.promise;
          },
          { deadlineMs: 1_000 },
        ),
      ),
    );
    await clock.advance(999);
    expect(reasons).toEqual([]);
    await clock.advance(1);
    expect(await handle.result()).toEqual({ code: "task_failed", attempts: 1, cause: "task_timeout" });
    const message = "did not end within its 1000 ms, all attempts counted together";
    expect(reasons).toEqual([`the task was aborted: its task ${message}`]);
    const journal = await journalOf(storage, handle.sessionId);
    expect(journal[1]).toMatchObject({ type: "schedule_task", deadlineAt: began + 1_000 });
    expect(tracer.events.filter(({ type }) => type === "task_ended")).toMatchObject([
      { outcome: "failed", error: { code: "task_timeout" } },
    ]);
  });

  test("a task has one deadline for all its attempts, and does not wait for an attempt that could not begin in time", async () => {
    const { runtime, clock } = open();
    let ran = 0;
    const handle = await runtime.start(
      failing((ctx) =>
        ctx.run(
          "flaky",
          () => {
            ran++;
            throw Object.assign(new Error("not yet"), { code: "E_NOT_YET", retryAfterMs: 400 });
          },
          { deadlineMs: 1_000, retry: { maxAttempts: 100, initialDelayMs: 1 } },
        ),
      ),
    );
    await clock.advance(800);
    expect(await handle.result()).toEqual({ code: "task_failed", attempts: 3, cause: "E_NOT_YET" });
    expect(ran).toBe(3);
  });

  test("times out while it waits for a slot, and never begins", async () => {
    const { runtime, clock } = open({ concurrency: 1 });
    let ran = 0;
    await runtime.start(
      defineAgent({ name: "busy", run: (ctx) => ctx.run("busy", () => new Promise(() => {})) }),
    );
    const handle = await runtime.start(failing((ctx) => ctx.run("late", () => ran++, { deadlineMs: 10 })));
    await clock.advance(10);
    expect(await handle.result()).toMatchObject({ cause: "task_timeout" });
    expect(ran).toBe(0);
  });

  test("a task takes its deadline from its definition, unless the call has another", async () => {
    const { runtime, clock } = open();
    const stuck = defineTask({ name: "stuck", deadlineMs: 50, run: () => new Promise<never>(() => {}) });
    const agent = defineAgent({
      name: "subject",
      tasks: [stuck],
      run: async (ctx) => {
        const ended: string[] = [];
        const asks = {
          own: ctx.scheduleTask(stuck, undefined, { deadlineMs: 80 }),
          defined: ctx.scheduleTask(stuck, undefined),
        };
        await Promise.all(
          Object.entries(asks).map(([name, task]) => task.catch(() => void ended.push(name))),
        );
        return ended;
      },
    });
    const handle = await runtime.start(agent);
    await clock.advance(80);
    expect(await handle.result()).toEqual(["defined", "own"]);
  });

  test("a task keeps an outcome that came in time, and its session is not woken at the deadline", async () => {
    const { runtime, clock, storage } = open();
    const handle = await runtime.start(
      failing(async (ctx) => {
        const done = await ctx.run("quick", () => "done", { deadlineMs: 10 });
        await ctx.waitForSignal("go");
        return done;
      }),
    );
    const row = (): Promise<Session | undefined> => storage.reader.session(handle.sessionId);
    await until(async () => (await row())?.status === "waiting", "the wait");
    expect((await row())?.wakeAt).toBeUndefined();
    await clock.advance(1_000);
    await runtime.signal(handle.sessionId, "go");
    expect(await handle.result()).toBe("done");
  });

  test("never begins when its deadline passes before its ask is committed", async () => {
    const inner = new MemoryStorage();
    const asked = gate();
    const mayAnswer = gate();
    const storage = storageWith(inner, {
      async commit(...given) {
        const results = await inner.commit(...given);
        if (JSON.stringify(given).includes("schedule_task")) {
          asked.open();
          await mayAnswer.opened;
        }
        return results;
      },
    });
    const { runtime, clock } = open({ storage });
    let ran = 0;
    const starting = runtime.start(failing((ctx) => ctx.run("late", () => ran++, { deadlineMs: 10 })));
    await asked.opened;
    await clock.advance(10);
    mayAnswer.open();
    const handle = await starting;
    expect(await handle.result()).toMatchObject({ cause: "task_timeout" });
    expect(ran).toBe(0);
  });

  test("a fork starts the task again, with its full time", async () => {
    const { runtime, clock } = open();
    let ran = 0;
    const agent = failing((ctx) =>
      ctx.run("stuck", () => (ran++, new Promise(() => {})), { deadlineMs: 1_000 }),
    );
    const origin = await runtime.start(agent);
    await clock.advance(HOUR);
    expect(await origin.result()).toMatchObject({ cause: "task_timeout" });
    const fork = await runtime.fork(origin.sessionId, { at: 2 });
    await until(() => ran === 2, "the attempt of the fork");
    await clock.advance(1_000);
    expect(await fork.result()).toMatchObject({ cause: "task_timeout" });
  });
});

describe.each([
  ["memory", () => new MemoryStorage()],
  [
    "SQLite",
    () => openSqliteStorage({ path: join(mkdtempSync(join(tmpdir(), "holdfast-deadline-")), "sessions.db") }),
  ],
] as const)("over a restart with storage in %s, a task with a deadline", (_name, openStorage) => {
  test("a task fails at once when its deadline passed meanwhile, and its handler is not called again", async () => {
    const storage: AgentStorage = await openStorage();
    const clock = new TestClock();
    let ran = 0;
    const lost: unknown[] = [];
    const stuck = defineTask({
      name: "stuck",
      run: () => (ran++, new Promise<never>(() => {})),
      endLost: async (input) => void lost.push(input),
    });
    const agent = failing((ctx) => ctx.scheduleTask(stuck, "a", { deadlineMs: HOUR }), [stuck]);
    const first = open({ storage, clock });
    const { sessionId } = await first.runtime.start(agent);
    await until(() => ran === 1, "the first attempt");
    first.mortalStorage.die();
    vanishRuntime(first.runtime);
    await clock.advance(2 * HOUR);

    const second = open({ storage, clock, agents: [agent] });
    const handle = await second.runtime.resume(sessionId);
    expect(await handle.result()).toEqual({ code: "task_failed", attempts: 1, cause: "task_timeout" });
    expect(ran).toBe(1);
    expect(lost).toEqual(["a"]);
    expect((await journalOf(storage, sessionId)).map(({ type }) => type)).toEqual([
      "started",
      "schedule_task",
      "task_failed",
      "complete",
    ]);
    await second.runtime.close();
    await storage.close();
  });

  test("that dies again and again with its process times out, and a changed program does not move its deadline", async () => {
    const storage: AgentStorage = await openStorage();
    const clock = new TestClock();
    const began = clock.now();
    let ran = 0;
    let sessionId: string | undefined;
    for (let life = 1; life <= 3; life++) {
      const agent = deadly(life * HOUR);
      const { runtime, mortalStorage } = open({ storage, clock, agents: [agent] });
      if (sessionId === undefined) ({ sessionId } = await runtime.start(agent));
      else await runtime.resume(sessionId);
      await until(() => ran === life, `attempt ${life}`);
      mortalStorage.die();
      vanishRuntime(runtime);
      await clock.advance(HOUR / 4);
    }
    const last = open({ storage, clock, agents: [deadly(99 * HOUR)] });
    const result = (await last.runtime.resume(sessionId!)).result();
    await until(() => ran === 4, "attempt 4");
    await clock.advance(began + HOUR - clock.now());
    expect(await result).toEqual({ code: "task_failed", attempts: 4, cause: "task_timeout" });
    await last.runtime.close();
    await storage.close();

    function deadly(deadlineMs: number): Agent {
      return failing((ctx) => ctx.run("deadly", () => (ran++, new Promise(() => {})), { deadlineMs }));
    }
  });

  test("a task is not tried again when its deadline passed during its back-off", async () => {
    const storage: AgentStorage = await openStorage();
    const clock = new TestClock();
    let ran = 0;
    const agent = failing((ctx) =>
      ctx.run("flaky", () => Promise.reject(new Error(`attempt ${++ran}`)), {
        deadlineMs: HOUR,
        retry: { initialDelayMs: 60_000, maxDelayMs: 60_000, maxAttempts: 9 },
      }),
    );
    const first = open({ storage, clock });
    const { sessionId } = await first.runtime.start(agent);
    await until(async () => {
      const journal = await journalOf(storage, sessionId);
      return journal.some(({ type }) => type === "attempt_failed");
    }, "the failure");
    first.mortalStorage.die();
    vanishRuntime(first.runtime);
    await clock.advance(HOUR);

    const second = open({ storage, clock, agents: [agent] });
    expect(await (await second.runtime.resume(sessionId)).result()).toMatchObject({ cause: "task_timeout" });
    expect(ran).toBe(1);
    await second.runtime.close();
    await storage.close();
  });
});

describe("a queued task with a deadline", () => {
  test("a queued task is aborted at its deadline, and withdrawn by a process that resumes its session after that", async () => {
    const storage = new MemoryStorage();
    const clock = new TestClock();
    const agent = failing((ctx) => ctx.scheduleTask("elsewhere", 1, { deadlineMs: 1_000 }));
    const first = queueOf();
    const before = open({ storage, clock, queue: first.queue });
    const { sessionId } = await before.runtime.start(agent);
    await until(() => first.started.length === 1, "the attempt");
    expect(first.started[0]?.deadlineAt).toBe(clock.now() + 1_000);
    before.mortalStorage.die();
    vanishRuntime(before.runtime);
    await clock.advance(1_000);

    const second = queueOf();
    const after = open({ storage, clock, agents: [agent], queue: second.queue });
    const handle = await after.runtime.resume(sessionId);
    expect(await handle.result()).toMatchObject({ cause: "task_timeout" });
    expect(second).toMatchObject({ started: [], aborted: [], withdrawn: [`${sessionId}-0 1`] });

    const next = await after.runtime.start(agent);
    await until(() => second.started.length === 1, "the attempt of another session");
    await clock.advance(1_000);
    expect(await next.result()).toMatchObject({ cause: "task_timeout" });
    expect(second.aborted).toHaveLength(1);
  });

  test("a queued task is withdrawn at its deadline, also while it is unknown whether it still runs elsewhere", async () => {
    const storage = new MemoryStorage();
    const clock = new TestClock();
    const agent = failing((ctx) => ctx.scheduleTask("elsewhere", 1, { deadlineMs: 1_000 }));
    const first = queueOf();
    const before = open({ storage, clock, queue: first.queue });
    const { sessionId } = await before.runtime.start(agent);
    await until(() => first.started.length === 1, "the attempt");
    before.mortalStorage.die();
    vanishRuntime(before.runtime);

    const second = queueOf(new Promise(() => {}));
    const after = open({ storage, clock, agents: [agent], queue: second.queue });
    const handle = await after.runtime.resume(sessionId);
    await turns(5);
    expect(second.withdrawn).toEqual([]);
    await clock.advance(1_000);
    expect(await handle.result()).toMatchObject({ cause: "task_timeout" });
    expect(second).toMatchObject({ started: [], withdrawn: [`${sessionId}-0 1`] });
  });

  function queueOf(isRunning = Promise.resolve(true)) {
    const started: TaskAttempt[] = [];
    const aborted: string[] = [];
    const withdrawn: string[] = [];
    const queue: TaskExecutor = {
      describe: () => ({}),
      kinds: () => [],
      start: (attempt) => (started.push(attempt), { abort: (why) => void aborted.push(why), leave() {} }),
      isRunning: () => isRunning,
      withdraw: async ({ taskId, attempt }) => void withdrawn.push(`${taskId} ${attempt}`),
      close: async () => {},
    };
    return { queue, started, aborted, withdrawn };
  }
});

function open(options: Partial<RuntimeOptions> & { storage?: AgentStorage; clock?: TestClock } = {}) {
  const storage = options.storage ?? new MemoryStorage();
  const clock = options.clock ?? new TestClock();
  const mortalStorage = mortal(storage);
  const runtime: Runtime = createRuntime({
    random: countingRandom(),
    development: false,
    owner: "test",
    ...options,
    storage: mortalStorage.storage,
    clock,
  });
  opened.push(runtime);
  return { runtime, clock, storage, mortalStorage };
}

/** An agent whose output says how what it asked for failed. */
function failing(
  run: Parameters<typeof defineAgent>[0] extends infer D ? (D extends { run: infer R } ? R : never) : never,
  tasks: Agent["tasks"] = [],
): Agent {
  return defineAgent({
    name: "subject",
    tasks,
    run: async (ctx, input) => {
      try {
        return await run(ctx, input);
      } catch (error) {
        const { code, attempts, cause } = error as {
          code: string;
          attempts: number;
          cause: { code: string };
        };
        return { code, attempts, cause: cause.code };
      }
    },
  });
}
