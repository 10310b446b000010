// Attempts: a task is retried when that helps, never too often, and never after its outcome is recorded.

import type { TaskExecutor } from "@holdfast/core";
import {
  countingRandom,
  gate,
  journalOf,
  mortal,
  recordingTracer,
  TestClock,
  turns,
  until,
} from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { defineAgent, defineTask, NonRetryableError, type Agent } from "../agents/define.ts";
import { vanishRuntime } from "../internal.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

describe("an attempt that fails", () => {
  test("a failed attempt is retried after its back-off, and the agent gets only the last outcome", async () => {
    const { runtime, clock, storage } = open({ random: { u32: () => 0 } }); // Half of the back-off: 100, then 200 ms.
    const attempts: number[] = [];
    const handle = await runtime.start(
      agentOf(async (ctx) =>
        ctx.run("flaky", ({ attempt }) => {
          attempts.push(attempt);
          if (attempt < 3) throw new Error(`attempt ${attempt}`);
          return "third";
        }),
      ),
    );
    await turns(20);
    expect(attempts).toEqual([1]);
    await clock.advance(99);
    expect(attempts).toEqual([1]);
    await clock.advance(1);
    expect(attempts).toEqual([1, 2]);
    await clock.advance(199);
    expect(attempts).toEqual([1, 2]);
    await clock.advance(1);
    expect(attempts).toEqual([1, 2, 3]);
    expect(await handle.result()).toBe("third");
    expect(typesOf(await journalOf(storage, handle.sessionId))).toEqual([
      "started",
      "schedule_task",
      "attempt_failed",
      "attempt_failed",
      "task_completed",
      "complete",
    ]);
  });

  test("a failed attempt is the last if the policy or the error says so", async () => {
    const cases: readonly (readonly [string, Parameters<typeof defineTask>[0], number])[] = [
      ["default", { name: "t", run: () => fail(new Error("x")) }, 3],
      ["once", { name: "t", retry: { maxAttempts: 1 }, run: () => fail(new Error("x")) }, 1],
      ["five", { name: "t", retry: { maxAttempts: 5 }, run: () => fail(new Error("x")) }, 5],
      ["final error", { name: "t", run: () => fail(new NonRetryableError("x")) }, 1],
      [
        "listed name",
        { name: "t", retry: { nonRetryable: ["RangeError"] }, run: () => fail(new RangeError("x")) },
        1,
      ],
      [
        "listed code",
        {
          name: "t",
          retry: { nonRetryable: ["E_NO"] },
          run: () => fail(Object.assign(new Error("x"), { code: "E_NO" })),
        },
        1,
      ],
      ["an output that is no JSON", { name: "t", run: () => new Map() }, 1],
      ["an input that does not match", { name: "t", input: refusing, run: () => 1 }, 1],
      ["an output that does not match", { name: "t", output: refusing, run: () => 1 }, 1],
    ];
    for (const [name, task, expected] of cases) {
      const { runtime, clock } = open();
      let attempts = 0;
      const counted = defineTask({ ...task, run: (input, ctx) => (attempts++, task.run(input, ctx)) });
      const handle = await runtime.start(
        defineAgent({
          name: "subject",
          tasks: [counted],
          run: (ctx) =>
            ctx.scheduleTask("t").catch((error: { code: string; attempts: number }) => ({
              code: error.code,
              attempts: error.attempts,
            })),
        }),
      );
      await clock.advance(600_000);
      expect(await handle.result(), name).toEqual({ code: "task_failed", attempts: expected });
      if (!name.includes("input")) expect(attempts, name).toBe(expected);
    }
  });

  test("an attempt that throws any kind of value ends, and its slot is free", ofCampaign, async () => {
    const strange: unknown[] = [
      undefined,
      null,
      Symbol("s"),
      new Proxy({}, { get: () => fail(new Error("trap")) }),
      Object.defineProperty(new Error("m"), "retryAfterMs", { get: () => fail(new Error("getter")) }),
      Object.assign(new Error("later"), { retryAfterMs: Infinity }),
      Object.assign(new Error("later"), { retryAfterMs: 1e300 }),
    ];
    for (const [i, thrown] of strange.entries()) {
      const { runtime, clock } = open({ concurrency: 1 });
      const handle = await runtime.start(
        agentOf(async (ctx) => {
          // oxlint-disable-next-line typescript/only-throw-error -- users do
          const code = await ctx
            .run(
              "strange",
              () => {
                throw thrown;
              },
              { retry: { maxAttempts: 2 } },
            )
            .catch((error: { code: string }) => error.code);
          return [code, await ctx.run("next", () => "ran")];
        }),
      );
      await clock.advance(2 * 86_400_000);
      expect(await handle.result(), String(i)).toEqual(["task_failed", "ran"]);
    }
  });

  test("a retry waits at least as long as the failure asks for", async () => {
    const { runtime, clock } = open();
    let attempts = 0;
    const handle = await runtime.start(
      agentOf((ctx) =>
        ctx.run("busy", () =>
          ++attempts === 1 ? fail(Object.assign(new Error("429"), { retryAfterMs: 5_000 })) : "ok",
        ),
      ),
    );
    await clock.advance(4_999);
    expect(attempts).toBe(1);
    await clock.advance(2);
    expect(await handle.result()).toBe("ok");
  });
});

describe("time-outs and limits", () => {
  test("an attempt that never ends is timed out, aborted, tried again, and its slot is free", async () => {
    const { runtime, clock } = open({ concurrency: 1 });
    const stuck = gate();
    const reasons: string[] = [];
    const handle = await runtime.start(
      agentOf((ctx) =>
        ctx
          .run(
            "stuck",
            ({ signal }) => {
              signal.addEventListener("abort", () => reasons.push((signal.reason as Error).message));
              return stuck.opened;
            },
            { timeoutMs: 1_000, retry: { maxAttempts: 2 } },
          )
          .catch((error: { cause: { code: string } }) => error.cause.code),
      ),
    );
    const other = await runtime.start(agentOf((ctx) => ctx.run("waiting", () => "ran"), "other"));
    await clock.advance(999);
    expect(reasons).toEqual([]);
    await clock.advance(20_000);
    expect(await handle.result()).toBe("task_timeout");
    expect(await other.result()).toBe("ran");
    expect(reasons).toEqual([
      "the task was aborted: timed out after 1000 ms",
      "the task was aborted: timed out after 1000 ms",
    ]);
    stuck.open(); // Closing would wait for it without end, as the clock does not advance.
  });

  test("a result that a handler returns after its time-out is ignored", async () => {
    const { runtime, clock } = open();
    const late = gate<string>();
    const handle = await runtime.start(
      agentOf((ctx) =>
        ctx.run("late", ({ attempt }) => (attempt === 1 ? late.opened : "second"), { timeoutMs: 100 }),
      ),
    );
    await clock.advance(100);
    late.open("first, too late");
    await clock.advance(1_000);
    expect(await handle.result()).toBe("second");
  });

  test("at most `concurrency` attempts run at once, in order, and one that is aborted while it waits never starts", async () => {
    const { runtime } = open({ concurrency: 2 });
    const started: number[] = [];
    const gates = Array.from({ length: 5 }, () => gate());
    const handle = await runtime.start(
      agentOf(async (ctx) => {
        const tasks = gates.map((each, i) =>
          ctx.run(`t${i}`, async () => {
            started.push(i);
            await each.opened;
          }),
        );
        await ctx.waitForSignal("drop");
        tasks[3]!.cancel();
        return Promise.allSettled(tasks).then((all) => all.map(({ status }) => status));
      }),
    );
    await until(() => started.length === 2, "two to start");
    await turns(20);
    expect(started).toEqual([0, 1]);
    await handle.signal("drop");
    await turns(20);
    gates[1]!.open();
    await until(() => started.length === 3, "the third");
    expect(started).toEqual([0, 1, 2]);
    for (const { open: release } of gates) release();
    expect(await handle.result()).toEqual(["fulfilled", "fulfilled", "fulfilled", "rejected", "fulfilled"]);
    expect(started).toEqual([0, 1, 2, 4]);
  });
});

describe("an attempt that died with its process", () => {
  test("a lost attempt is followed by the next one, and tasks with a recorded outcome never run again", async () => {
    const storage = new MemoryStorage();
    const ran: string[] = [];
    const stuck = gate();
    const agent = agentOf(async (ctx) => {
      const first = await ctx.run("first", ({ attempt }) => void ran.push(`first ${attempt}`));
      await ctx.run("second", async ({ attempt, idempotencyKey }) => {
        ran.push(`second ${attempt} ${idempotencyKey.replace(/^.*-/, "#")}`);
        if (attempt === 1) await stuck.opened;
      });
      return first ?? "done";
    });
    const { runtime, mortalStorage } = open({ storage });
    const { sessionId } = await runtime.start(agent);
    await until(() => ran.length === 2, "the second task");
    mortalStorage.die();
    vanishRuntime(runtime);
    const next = open({ storage, agents: [agent] });
    expect(await (await next.runtime.resume(sessionId)).result()).toBe("done");
    expect(ran).toEqual(["first 1", "second 1 #1", "second 2 #1"]);
    expect(typesOf(await journalOf(storage, sessionId))).toEqual([
      "started",
      "schedule_task",
      "task_completed",
      "schedule_task",
      "attempt_lost",
      "outcome_kept",
      "task_completed",
      "complete",
    ]);
  });

  test("a lost attempt is not retried with maxAttempts 1, and the agent gets an unknown outcome", async () => {
    const storage = new MemoryStorage();
    let ran = 0;
    const agent = agentOf((ctx) =>
      ctx
        .run("charge", () => (ran++, new Promise(() => {})), { retry: { maxAttempts: 1 } })
        .catch((error: { message: string }) => error.message),
    );
    const { runtime, mortalStorage } = open({ storage });
    const { sessionId } = await runtime.start(agent);
    await until(() => ran === 1, "the charge");
    mortalStorage.die();
    vanishRuntime(runtime);
    const next = open({ storage, agents: [agent] });
    expect(await (await next.runtime.resume(sessionId)).result()).toContain("its outcome is unknown");
    expect(ran).toBe(1);
  });

  test("a lost attempt reaches the agent even if endLost throws at once", async () => {
    const storage = new MemoryStorage();
    const shell = defineTask({
      name: "shell",
      retry: { maxAttempts: 1 },
      run: () => new Promise(() => {}),
      endLost: () => {
        throw new Error("nobody is hurt by this");
      },
    });
    const agent = agentOf((ctx) =>
      ctx.scheduleTask(shell, {}).catch((error: { message: string }) => error.message),
    );
    const { runtime, mortalStorage } = open({ storage, tasks: [shell] });
    const { sessionId } = await runtime.start(agent);
    await turns(20);
    mortalStorage.die();
    vanishRuntime(runtime);
    const next = open({ storage, agents: [agent], tasks: [shell] });
    expect(await (await next.runtime.resume(sessionId)).result()).toContain("its outcome is unknown");
  });

  test("a lost attempt with maxAttempts 1 reaches the agent after endLost has ended", async () => {
    const storage = new MemoryStorage();
    const ended = gate();
    const asked: unknown[] = [];
    const shell = defineTask({
      name: "shell",
      retry: { maxAttempts: 1 },
      run: () => new Promise(() => {}),
      endLost: async (input, key) => {
        asked.push([input, key]);
        await ended.opened;
        throw new Error("nobody is hurt by this");
      },
    });
    const agent = agentOf((ctx) =>
      ctx.scheduleTask(shell, { command: "sleep" }).catch((error: { message: string }) => error.message),
    );
    const { runtime, mortalStorage } = open({ storage, tasks: [shell] });
    const { sessionId } = await runtime.start(agent);
    await turns(20);
    mortalStorage.die();
    vanishRuntime(runtime);
    const next = open({ storage, agents: [agent], tasks: [shell] });
    const handle = await next.runtime.resume(sessionId);
    await turns(20);
    expect(asked).toEqual([[{ command: "sleep" }, expect.stringContaining(`${sessionId}-`)]]);
    expect((await handle.session()).status).toBe("working");
    ended.open();
    expect(await handle.result()).toContain("its outcome is unknown");
  });

  // Decision 0003: a person who restarts the machine three times has not asked for the work to be given up.
  test("a lost attempt does not count toward the default limit of three failed attempts", async () => {
    const storage = new MemoryStorage();
    let ran = 0;
    const agent = agentOf((ctx) =>
      ctx.run("flaky", () => {
        if (++ran <= 2) return new Promise<never>(() => {}); // Lost with their process.
        if (ran <= 4) throw new Error(`error ${ran - 2}`);
        return ran;
      }),
    );
    const first = open({ storage });
    const { sessionId } = await first.runtime.start(agent);
    await until(() => ran === 1, "the first attempt");
    first.mortalStorage.die();
    vanishRuntime(first.runtime);
    const second = open({ storage, agents: [agent] });
    await second.runtime.resume(sessionId);
    await until(() => ran === 2, "the second attempt");
    second.mortalStorage.die();
    vanishRuntime(second.runtime);
    const third = open({ storage, agents: [agent] });
    const result = (await third.runtime.resume(sessionId)).result();
    await third.clock.advance(60_000);
    expect(await result).toBe(5);
  });

  // The outcome is stored, and then the process dies once more, before the outcome is delivered.
  test("a lost attempt is not repeated once the outcome of the next attempt is stored (H7)", async () => {
    const storage = new MemoryStorage();
    let ran = 0;
    const agent = agentOf((ctx) =>
      ctx.run("charge", () => (++ran === 1 ? new Promise<number>(() => {}) : ran)),
    );
    const first = open({ storage });
    const { sessionId } = await first.runtime.start(agent);
    await until(() => ran === 1, "the first attempt");
    first.mortalStorage.die();
    vanishRuntime(first.runtime);

    const second = open({ storage, agents: [agent] });
    second.mortalStorage.dieAfter(2); // `attempt_lost`, then `outcome_kept`.
    await second.runtime.resume(sessionId);
    await until(() => second.mortalStorage.dead, "the commit that keeps the outcome");
    vanishRuntime(second.runtime);
    expect(typesOf(await journalOf(storage, sessionId)).at(-1)).toBe("outcome_kept");

    const third = open({ storage, agents: [agent] });
    expect(await (await third.runtime.resume(sessionId)).result()).toBe(2);
    expect(ran).toBe(2);
  });

  test("the first task of a turn is a first attempt when the process died right after the checkpoint", async () => {
    const storage = new MemoryStorage();
    let ran = 0;
    const agent = agentOf(async (ctx) => {
      if (ctx.state === undefined) await ctx.checkpoint({ turn: 1 });
      return ctx.run("charge", ({ attempt }) => (ran++, attempt), { retry: { maxAttempts: 1 } });
    });
    const { runtime, mortalStorage } = open({ storage });
    mortalStorage.dieAfter(1);
    const sessionId = "charged";
    void runtime.start(agent, undefined, { sessionId }).catch(() => {}); // Its answer is lost with the process.
    await until(() => mortalStorage.dead, "the checkpoint's commit");
    vanishRuntime(runtime);
    expect(typesOf(await journalOf(storage, sessionId))).toEqual(["started", "checkpoint"]);
    const next = open({ storage, agents: [agent] });
    expect(await (await next.runtime.resume(sessionId)).result()).toBe(1);
    expect(ran).toBe(1);
    expect(typesOf(await journalOf(storage, sessionId))).not.toContain("attempt_lost");
  });

  test("lost attempts count over processes, never more than maxAttempts in all", async () => {
    const storage = new MemoryStorage();
    let ran = 0;
    const agent = agentOf((ctx) =>
      ctx
        .run("deadly", () => (ran++, new Promise(() => {})), { retry: { maxAttempts: 3 } })
        .catch((error: { attempts: number }) => error.attempts),
    );
    let sessionId = "";
    for (let life = 1; life <= 3; life++) {
      const { runtime, mortalStorage } = open({ storage, agents: [agent] });
      if (sessionId === "") ({ sessionId } = await runtime.start(agent));
      else await runtime.resume(sessionId);
      await until(() => ran === life, `attempt ${life}`);
      mortalStorage.die();
      vanishRuntime(runtime);
    }
    const last = open({ storage, agents: [agent] });
    expect(await (await last.runtime.resume(sessionId)).result()).toBe(3);
    expect(ran).toBe(3);
  });

  test("a retry in its back-off is not started early by the next process", async () => {
    const storage = new MemoryStorage();
    const clock = new TestClock();
    const attempts: number[] = [];
    const agent = agentOf((ctx) =>
      ctx.run(
        "flaky",
        ({ attempt }) => (attempts.push(attempt), attempt === 1 ? fail(new Error("x")) : "ok"),
        { retry: { initialDelayMs: 10_000, maxAttempts: 2 } },
      ),
    );
    const { runtime, mortalStorage } = open({ storage, clock });
    const { sessionId } = await runtime.start(agent);
    await until(
      async () => typesOf(await journalOf(storage, sessionId)).includes("attempt_failed"),
      "the failure",
    );
    mortalStorage.die();
    vanishRuntime(runtime);
    await clock.advance(1_000);
    const next = open({ storage, clock, agents: [agent] });
    const handle = await next.runtime.resume(sessionId);
    await clock.advance(3_000);
    expect(attempts).toEqual([1]);
    await clock.advance(10_000);
    expect(await handle.result()).toBe("ok");
    expect(attempts).toEqual([1, 2]);
  });
});

describe("an attempt that another process left with the queue", () => {
  /** A queue whose attempts never end, and which answers whether one still runs when a test says so. */
  const queueOf = (answer: Promise<boolean>) => {
    const withdrawn: string[] = [];
    const queue: TaskExecutor = {
      describe: () => ({}),
      kinds: () => [],
      start: () => ({ abort() {}, leave() {} }),
      isRunning: () => answer,
      withdraw: async ({ taskId, attempt }) => void withdrawn.push(`${taskId} ${attempt}`),
      close: async () => {},
    };
    return { queue, withdrawn };
  };

  /** A second process asks the queue whether the attempt still runs. */
  async function ask() {
    const storage = new MemoryStorage();
    const agent = agentOf(async (ctx) =>
      ctx.race([ctx.scheduleTask("elsewhere"), ctx.waitForSignal("enough")]),
    );
    const first = open({ storage, queue: queueOf(Promise.resolve(true)).queue });
    const { sessionId } = await first.runtime.start(agent);
    first.mortalStorage.die();
    vanishRuntime(first.runtime);
    const answer = Promise.withResolvers<boolean>();
    const { queue, withdrawn } = queueOf(answer.promise);
    const { runtime } = open({ storage, queue, agents: [agent] });
    const handle = await runtime.resume(sessionId);
    await turns(20);
    return { runtime, handle, answer, withdrawn, sessionId };
  }

  test("a queued attempt is withdrawn when its task is no longer needed before the queue has answered", async () => {
    const { handle, answer, withdrawn, sessionId } = await ask();
    await handle.signal("enough", "over");
    expect(await handle.result()).toBe("over");
    answer.resolve(true);
    await turns(5);
    expect(withdrawn).toEqual([`${sessionId}-0 1`]);
  });

  test("a queued attempt is left to the next process when this one ends before the queue has answered", async () => {
    const { runtime, answer, withdrawn } = await ask();
    await runtime.close();
    answer.resolve(true);
    await turns(5);
    expect(withdrawn).toEqual([]);
  });
});

describe("tracing of attempts", () => {
  test("a tracer gets each start and end of an attempt, and tokens numbered by attempt", async () => {
    const tracer = recordingTracer();
    const { runtime, clock } = open({ tracer });
    const handle = await runtime.start(
      agentOf((ctx) =>
        ctx.run("model", (task) => {
          task.streamToken("a");
          task.streamToken("b");
          return task.attempt === 1 ? fail(new Error("cut")) : "ab";
        }),
      ),
    );
    await clock.advance(1_000);
    await handle.result();
    const endings = tracer.events.flatMap((event) =>
      event.type === "task_started"
        ? `start ${event.attempt}`
        : event.type === "task_ended"
          ? `${event.outcome} ${event.attempt}`
          : event.type === "task_delta"
            ? `delta ${event.attempt}.${event.offset}`
            : [],
    );
    expect(endings).toEqual([
      "start 1",
      "delta 1.0",
      "delta 1.1",
      "retrying 1",
      "start 2",
      "delta 2.0",
      "delta 2.1",
      "completed 2",
    ]);
  });
});

function open(options: Partial<RuntimeOptions> & { storage?: MemoryStorage; clock?: TestClock } = {}) {
  const storage = options.storage ?? new MemoryStorage();
  const clock = options.clock ?? new TestClock();
  const mortalStorage = mortal(storage);
  const runtime = createRuntime({
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

function agentOf(
  run: Parameters<typeof defineAgent>[0] extends infer D ? (D extends { run: infer R } ? R : never) : never,
  name = "subject",
): Agent {
  return defineAgent({ name, run });
}

const refusing = {
  "~standard": { version: 1, vendor: "test", validate: () => ({ issues: [{ message: "never right" }] }) },
} as const;

function fail(error: Error): never {
  throw error;
}

function typesOf(journal: readonly { readonly type: string }[]): string[] {
  return journal.map(({ type }) => type);
}
