// K1 to K4: positions of commands, when an agent may ask, when tasks start, and limits of a suspended agent.

/* oxlint-disable unicorn/no-unnecessary-await, typescript/await-thenable, unicorn/no-single-promise-in-promise-methods -- agents do */

import { readFile } from "node:fs/promises";
import { MessageChannel } from "node:worker_threads";
import { KernelStand, type StandAgent } from "@holdfast/testkit/kernel-stand";
import { describe, expect, test } from "vitest";
import type { AgentContext } from "./context.ts";

describe("K1: positions", () => {
  test("commands are numbered in the order they were asked for, in their segment", async () => {
    const stand = new KernelStand(async (ctx) => {
      const first = ctx.scheduleTask("work", { n: 1 });
      ctx.appendEntry({ role: "user", content: "hello" });
      const second = ctx.scheduleTask("work", { n: 2 });
      await Promise.all([second, first]);
      await ctx.sleep(5);
    });
    await stand.start();
    expect(stand.seal().records.map(({ type, seq }) => [seq, type])).toEqual([
      [0, "started"],
      [1, "schedule_task"],
      [2, "append_entry"],
      [3, "schedule_task"],
    ]);
    await stand.completeTask(2);
    await stand.completeTask(0);
    expect(stand.seal().records.map(({ type, seq }) => [seq, type])).toEqual([
      [4, "task_completed"],
      [5, "task_completed"],
      [6, "start_timer"],
    ]);
    expect(stand.journal.flatMap((record) => ("id" in record ? record.id : []))).toEqual([0, 1, 2, 3]);
  });

  test("two equal tasks are two tasks, run twice, with an answer each", async () => {
    const stand = new KernelStand(async (ctx) => {
      const before = await ctx.scheduleTask("test");
      await ctx.scheduleTask("edit");
      const after = await ctx.scheduleTask("test");
      return [before, after];
    });
    await stand.start();
    expect(stand.seal().newTasks.map(({ kind }) => kind)).toEqual(["test"]);
    await stand.completeTask(0, "red");
    expect(stand.seal().newTasks.map(({ kind }) => kind)).toEqual(["edit"]);
    await stand.completeTask(1);
    expect(stand.seal().newTasks.map(({ id, kind }) => [id, kind])).toEqual([[2, "test"]]);
    expect(await stand.completeTask(2, "green")).toEqual(ended(["red", "green"]));
  });

  test("tasks with one idempotency key are one task", async () => {
    const stand = new KernelStand(async (ctx) => {
      const a = ctx.scheduleTask("work", 1, { idempotencyKey: "k" });
      const b = ctx.scheduleTask("work", 1, { idempotencyKey: "k" });
      return Promise.all([a, b]);
    });
    await stand.start();
    expect(stand.seal().newTasks).toHaveLength(1);
    expect(await stand.completeTask(0, "once")).toEqual(ended(["once", "once"]));
  });

  test.each([
    ["another kind", "other", 1],
    ["another input", "work", 2],
  ])("one key for %s is a mistake, and not answered by the other task", async (_name, kind, input) => {
    const stand = new KernelStand(async (ctx) => {
      const a = ctx.scheduleTask("work", 1, { idempotencyKey: "k" });
      const b = ctx.scheduleTask(kind, input, { idempotencyKey: "k" });
      return Promise.all([a, b]);
    });
    expect(await stand.start()).toMatchObject({
      type: "faulted",
      fault: { code: "usage", message: expect.stringContaining('"k"') },
    });
  });

  test("an unknown kind is refused with the known kinds, and nothing is committed", async () => {
    const stand = new KernelStand(async (ctx) => ctx.scheduleTask("nope"));
    const stands = await stand.start();
    expect(stands).toMatchObject({
      type: "faulted",
      fault: { code: "unknown_task_kind", expected: expect.stringContaining('"work"') },
    });
    expect(() => stand.seal()).toThrow(/nope/);
    expect(stand.journal).toEqual([]);
  });
});

/** Ways to wait for something that is in no journal. */
const HOPS: readonly (readonly [string, () => Promise<unknown>])[] = [
  ["setTimeout", () => new Promise((resolve) => setTimeout(resolve, 0))],
  ["setImmediate", () => new Promise((resolve) => setImmediate(resolve))],
  ["MessageChannel", messageHop],
  ["a file", () => readFile(new URL(import.meta.url))],
  [
    "something like fetch",
    async () => new Response(new Blob(["x"]).stream()).text().then(() => messageHop()),
  ],
];

const NESTED: readonly (readonly [
  string,
  (ctx: AgentContext, hop: () => Promise<unknown>) => Promise<unknown>,
])[] = [
  ["the agent itself", (ctx, hop) => hop().then(() => ctx.scheduleTask("work"))],
  ["a function it calls", (ctx, hop) => callee(ctx, hop)],
  [
    "a function below three others",
    async (ctx, hop) => await (async () => await (async () => await callee(ctx, hop))())(),
  ],
  ["an async generator", (ctx, hop) => drain(generating(ctx, hop))],
  ["a branch of Promise.all", (ctx, hop) => Promise.all([ctx.scheduleTask("other"), callee(ctx, hop)])],
  [
    "a branch nobody awaits",
    (ctx, hop) => (void callee(ctx, hop).catch(() => {}), Promise.resolve(ctx.scheduleTask("other"))),
  ],
];

describe("K2: a command asked outside a slice is a fault, every time", () => {
  for (const [where, body] of NESTED) {
    test.each(HOPS)(`an ask in ${where}, after %s, is a fault`, async (_name, hop) => {
      for (let round = 0; round < 5; round++) {
        const stand = new KernelStand((ctx) => body(ctx, hop));
        await stand.start();
        await settledFault(stand);
        expect(stand.kernel.fault).toMatchObject({
          code: "non_durable_await",
          fix: expect.stringContaining("ctx.run"),
        });
        expect(stand.strayFaults).toBe(1);
        expect(() => stand.seal()).toThrow(/not durable/);
        expect(stand.journal).toEqual([]);
      }
    });
  }

  test("every kind of ask is caught, not only tasks", async () => {
    const asks: ((ctx: AgentContext) => unknown)[] = [
      (ctx) => ctx.run("x", () => 1),
      (ctx) => ctx.sleep(1),
      (ctx) => ctx.sleepUntil(1),
      (ctx) => ctx.sleepUntil(Number.NaN),
      (ctx) => ctx.waitForSignal("s"),
      (ctx) => ctx.signalReady("s"),
      (ctx) => ctx.takeSignal("s"),
      (ctx) => ctx.hasSignal("s"),
      (ctx) => ctx.drainSignals("**"),
      (ctx) => ctx.requestInput("?"),
      (ctx) => ctx.appendEntry({ role: "user", content: 1 }),
      (ctx) => ctx.conversation(),
      (ctx) => ctx.checkpoint(1),
      (ctx) => ctx.now(),
      (ctx) => ctx.random(),
      (ctx) => ctx.randomUuid(),
      (ctx) => ctx.isCancellationRequested(),
    ];
    for (const ask of asks) {
      const stand = new KernelStand(async (ctx) => {
        await messageHop();
        await ask(ctx);
      });
      await stand.start();
      await settledFault(stand);
      expect(stand.kernel.fault?.code, String(ask)).toBe("non_durable_await");
    }
  });

  test("a key that looks like a conversation is data, and is refused beside a conversation", async () => {
    const beside = (own: object) =>
      new KernelStand(async (ctx) => ctx.scheduleTask("work", { chat: ctx.conversation(), own })).start();
    expect(await beside({ conversation: 5 })).toEqual({ type: "open" });
    expect(await beside({ $conversation: 5 })).toMatchObject({
      type: "faulted",
      fault: { message: expect.stringContaining('a key "$conversation" of its own') },
    });
  });

  test("an end after such a hop is a fault, with an output or an error", async () => {
    for (const end of [
      () => "done",
      () => {
        throw new Error("late");
      },
    ]) {
      const stand = new KernelStand(async (ctx) => {
        await ctx.scheduleTask("work");
        await messageHop();
        return end();
      });
      await stand.start();
      stand.seal();
      await stand.completeTask(0);
      await settledFault(stand);
      expect(stand.kernel.fault?.code).toBe("non_durable_await");
    }
  });

  test("any number of ticks and microtasks is no hop", async () => {
    const stand = new KernelStand(async (ctx) => {
      for (let i = 0; i < 1_000; i++) await null;
      await new Promise<void>((resolve) => process.nextTick(resolve));
      await new Promise<void>((resolve) => queueMicrotask(() => process.nextTick(resolve)));
      for await (const _ of generating(ctx, () => Promise.resolve()))
        await Promise.all([1, Promise.resolve(2)]);
      return "there";
    });
    expect(await stand.start()).toMatchObject({ type: "open" });
    expect(await stand.completeTask(0)).toEqual(ended("there"));
  });

  test("an agent that is blocked on nothing durable is distinguished, and can be faulted", async () => {
    const stand = new KernelStand(() => new Promise(() => {}));
    expect(await stand.start()).toEqual({ type: "nothing" });
    stand.kernel.faultBlockedOnNothing();
    expect(stand.kernel.fault).toMatchObject({
      code: "non_durable_await",
      message: expect.stringContaining("nothing else"),
    });
    expect(() => stand.seal()).toThrow();
  });

  test("a slice cannot be opened twice, closed twice, sealed, or delivered to from outside", async () => {
    const stand = new KernelStand(async (ctx) => ctx.scheduleTask("work"));
    expect(() => stand.kernel.closeSlice()).toThrow(/no slice/);
    expect(() => stand.kernel.deliver({ type: "started", at: 1 })).toThrow(/outside a slice/);
    stand.kernel.openSlice();
    expect(() => stand.kernel.openSlice()).toThrow(/inside a slice/);
    expect(() => stand.kernel.seal()).toThrow(/inside a slice/);
  });
});

describe("K3: nothing starts before its batch is committed", () => {
  test("tasks are handed out by the seal, and not when they are asked for", async () => {
    let ran = 0;
    const stand = new KernelStand(async (ctx) => {
      void ctx.run("a", () => ran++);
      void ctx.run("b", () => ran++);
      await ctx.waitForSignal("go");
    });
    await stand.start();
    expect(ran).toBe(0);
    const { newTasks } = stand.seal();
    expect(newTasks.map(({ kind }) => kind)).toEqual(["a", "b"]);
    expect(ran).toBe(0);
  });

  test("a task that is asked for and cancelled in one segment never starts", async () => {
    const stand = new KernelStand(async (ctx) => {
      const task = ctx.scheduleTask("work");
      task.cancel();
      return task.catch((error: { code: string }) => error.code);
    });
    expect(await stand.start()).toEqual(ended("cancelled"));
    const segment = stand.seal();
    expect(segment.newTasks).toEqual([]);
    expect(segment.withdrawnTasks).toEqual([]);
  });

  test("a task that is cancelled later is named for its abort, and gets no answer", async () => {
    const stand = new KernelStand(async (ctx) => {
      const task = ctx.scheduleTask("work");
      await ctx.waitForSignal("stop");
      task.cancel();
      return task.catch((error: { code: string }) => error.code);
    });
    await stand.start();
    stand.seal();
    stand.send("stop");
    expect(await stand.deliverOwn()).toEqual(ended("cancelled"));
    expect(stand.seal().withdrawnTasks).toEqual([0]);
  });

  test("agents see values decoded from recorded bytes, and never the original values", async () => {
    const given = { at: new URL("file:///a"), list: [1] };
    let seen: unknown;
    const stand = new KernelStand(
      async (ctx, input) => {
        seen = input;
        (input as { list: number[] }).list.push(2); // Agents may change what they are given.
        const output = (await ctx.scheduleTask("work", given)) as Record<string, unknown>;
        given.list.push(3); // The task was asked for: this must not reach its input.
        return output;
      },
      { input: given },
    );
    await stand.start();
    given.list.push(99);
    expect(seen).toEqual({ at: "file:///a", list: [1, 2] });
    expect(stand.seal().newTasks[0]?.input).toBe('{"at":"file:///a","list":[1]}');
  });

  test("a rejection that no code awaits yet never ends the process", async () => {
    const unhandled: unknown[] = [];
    const others = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection");
    process.on("unhandledRejection", (reason) => unhandled.push(reason));
    try {
      const stand = new KernelStand(async (ctx) => {
        const doomed = ctx.scheduleTask("work");
        await ctx.scheduleTask("other");
        return doomed.catch((error: Error) => error.message);
      });
      await stand.start();
      stand.seal();
      await stand.failTask(0, new Error("early"));
      for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
      expect(await stand.completeTask(1)).toEqual(ended('task "work" failed: early'));
      expect(unhandled).toEqual([]);
    } finally {
      process.removeAllListeners("unhandledRejection");
      for (const listener of others) process.on("unhandledRejection", listener);
    }
  });

  test("the error of a task has a fixed stack, which is the same live and on replay", async () => {
    const agent: StandAgent = async (ctx) => ctx.scheduleTask("work").catch((error: Error) => error.stack);
    const live = new KernelStand(agent);
    await live.start();
    live.seal();
    const stands = await live.failTask(0, new Error("no"));
    expect(stands).toEqual(ended('TaskFailedError: task "work" failed: no'));
    live.seal();
    expect(await new KernelStand(agent, { recorded: live.journal }).replay()).toEqual(stands);
  });
});

describe("K4: a suspended agent hangs, and a swallowed fault cannot commit", () => {
  test("an unanswered wait never settles: no finally, no catch, and nothing after it runs", async () => {
    const after: string[] = [];
    const stand = new KernelStand(async (ctx) => {
      try {
        await ctx.scheduleTask("work");
        after.push("answered");
      } catch {
        after.push("caught");
      } finally {
        after.push("finally");
      }
    });
    await stand.start();
    stand.seal();
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    expect(after).toEqual([]);
    expect(stand.kernel.fault).toBeUndefined();
  });

  test.each([
    ["an unknown task", (ctx: AgentContext) => ctx.scheduleTask("nope")],
    ["an input that is no JSON", (ctx: AgentContext) => ctx.scheduleTask("work", { f: () => 1 })],
    ["an input above the limit", (ctx: AgentContext) => ctx.scheduleTask("work", "x".repeat(2_000))],
    ["a timer without a time", (ctx: AgentContext) => ctx.sleep(Number.NaN)],
    ["a timer at no date", (ctx: AgentContext) => ctx.sleepUntil(new Date(Number.NaN))],
    ["a timer at the end of time", (ctx: AgentContext) => ctx.sleepUntil(1e300)],
    [
      "a wait with a time-out that is no number",
      (ctx: AgentContext) => ctx.waitForSignal("s", { timeoutMs: Number("soon") }),
    ],
    [
      "a question with a time-out that is no number",
      (ctx: AgentContext) => ctx.requestInput("?", { timeoutMs: Number.NaN }),
    ],
    [
      "a task with a time-out that is no number",
      (ctx: AgentContext) => ctx.scheduleTask("work", 1, { timeoutMs: Number.NaN }),
    ],
    [
      "a retry policy that is none",
      (ctx: AgentContext) => ctx.scheduleTask("work", 1, { retry: { maxAttempts: Number.NaN } }),
    ],
    [
      "a retry delay that is none",
      (ctx: AgentContext) => ctx.scheduleTask("work", 1, { retry: { initialDelayMs: Infinity } }),
    ],
    [
      "an entry of another session",
      (ctx: AgentContext) => ctx.appendEntry({ role: "user", content: 1, parentId: "ses_other-0" }),
    ],
    [
      "an entry that is no entry",
      (ctx: AgentContext) => (
        void ctx.sleep(1),
        ctx.appendEntry({ role: "user", content: 1, parentId: "ses_test-1" })
      ),
    ],
    ["a second wait on a name", (ctx: AgentContext) => (void ctx.waitForSignal("s"), ctx.waitForSignal("s"))],
    ["a state that is no JSON", (ctx: AgentContext) => ctx.checkpoint(new Map())],
  ])("%s faults the segment, also when it is swallowed", async (_name, misuse) => {
    const stand = new KernelStand(
      async (ctx) => {
        ctx.appendEntry({ role: "user", content: "said before" });
        try {
          void misuse(ctx);
        } catch {
          // The agent swallows the error.
        }
        return "fine";
      },
      { limits: { payloadChars: 1_000 } },
    );
    const stands = await stand.start();
    expect(stands.type).toBe("faulted");
    expect(stand.kernel.fault?.code).toMatch(/^(usage|not_json|unknown_task_kind|limit_exceeded)$/);
    expect(() => stand.seal()).toThrow(stand.kernel.fault!.message);
  });

  test("an output that is no JSON is a mistake in the agent's code, reported with its place", async () => {
    const stand = new KernelStand(async () => ({ deep: [1, 2n] }));
    expect(await stand.start()).toMatchObject({
      type: "faulted",
      fault: { code: "not_json", message: expect.stringContaining("the agent's output") },
    });
    expect(() => stand.seal()).toThrow();
  });

  test("an error of the engine at wrong code is a mistake with its line, and an end while the session is cancelled", async () => {
    const agent: StandAgent = async (_ctx, input) => (input as { a: { b: number } }).a.b;
    expect(await new KernelStand(agent, { input: {} }).start()).toMatchObject({
      type: "faulted",
      fault: {
        code: "agent_error",
        fix: expect.stringContaining("resume"),
      },
    });
    const cancelled = new KernelStand(agent, { input: {}, cancel: { deadlineAt: 9_999 } });
    expect(await cancelled.start()).toMatchObject({
      type: "ended",
      ending: { error: { name: "TypeError" } },
    });
  });

  test("a slice may ask for a limited number of commands", async () => {
    const asking =
      (count: number): StandAgent =>
      async (ctx) => {
        for (let i = 0; i < count; i++) void ctx.scheduleTask("work", i);
        await ctx.waitForSignal("never");
      };
    const limits = { commandsPerSlice: 100 };
    expect(await new KernelStand(asking(99), { limits }).start()).toEqual({ type: "open" });
    const over = new KernelStand(asking(100), { limits });
    expect(await over.start()).toMatchObject({
      type: "faulted",
      fault: { code: "limit_exceeded", message: expect.stringContaining("commandsPerSlice") },
    });
    // An agent that swallows the error and asks again and again is faulted, too.
    const stubborn = new KernelStand(
      async (ctx) => {
        for (let i = 0; i < 100_000; i++) {
          try {
            void ctx.scheduleTask("work", i);
          } catch {}
        }
      },
      { limits },
    );
    expect((await stubborn.start()).type).toBe("faulted");
    expect(stubborn.kernel.segment.salvage(1).records).toEqual([]);
  });

  test("outcomes of a faulted segment are kept as notes, and replay as if they had never been asked for", async () => {
    const broken: StandAgent = async (ctx) => {
      const [a] = await Promise.all([ctx.scheduleTask("work", 1), ctx.scheduleTask("work", 2)]);
      return ctx.scheduleTask("nope", a);
    };
    const stand = new KernelStand(broken);
    await stand.start();
    stand.seal();
    await stand.completeTask(1, "two");
    expect((await stand.completeTask(0, "one")).type).toBe("faulted");
    const kept = stand.kernel.segment.salvage(5_000);
    expect(kept.records).toMatchObject([
      { type: "outcome_kept", seq: 3, at: 5_000, outcome: "task_completed", task: 1, payload: '"two"' },
      { type: "outcome_kept", seq: 4, outcome: "task_completed", task: 0, payload: '"one"' },
    ]);
    expect(kept).toMatchObject({ firstSeq: 3, entries: [], consumed: [], newTasks: [] });

    const fixed: StandAgent = async (ctx) =>
      Promise.all([ctx.scheduleTask("work", 1), ctx.scheduleTask("work", 2)]);
    const again = new KernelStand(fixed, { recorded: [...stand.journal, ...kept.records] });
    expect(await again.replay()).toEqual({ type: "open" });
    expect(again.kernel.open.tasks().map(({ id, kept: outcome }) => [id, outcome?.payload])).toEqual([
      [0, '"one"'],
      [1, '"two"'],
    ]);
  });

  test("notes of a faulted segment are kept, too, so no stored outcome is lost when another ask faults", async () => {
    const stand = new KernelStand(async (ctx) => {
      const [first] = [ctx.scheduleTask("work", 1), ctx.scheduleTask("work", 2)];
      await first;
      await ctx.scheduleTask("nope");
    });
    await stand.start();
    stand.seal();
    stand.kernel.note({
      type: "outcome_kept",
      outcome: "task_completed",
      task: 1,
      attempt: 2,
      at: 1_500,
      payload: '"dear"',
    });
    expect((await stand.completeTask(0, "one")).type).toBe("faulted");
    const { records } = stand.kernel.segment.salvage(5_000);
    expect(records.map(({ seq }) => seq)).toEqual([3, 4]);
    expect(records).toContainEqual(
      expect.objectContaining({ type: "outcome_kept", task: 1, attempt: 2, payload: '"dear"' }),
    );
  });
});

// ---- agents for the tests above
// ----------------------------------------------------------------------------------

async function callee(ctx: AgentContext, hop: () => Promise<unknown>): Promise<unknown> {
  await hop();
  return ctx.scheduleTask("work");
}

async function* generating(ctx: AgentContext, hop: () => Promise<unknown>): AsyncGenerator {
  yield 1;
  await hop();
  yield await ctx.scheduleTask("work");
}

async function drain(source: AsyncIterable<unknown>): Promise<unknown> {
  const all: unknown[] = [];
  for await (const item of source) all.push(item);
  return all;
}

function messageHop(): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.once("message", () => {
      port1.close();
      resolve();
    });
    port2.postMessage(1);
  });
}

/** Wait until the stray fault is there. A fault that never comes fails the test. */
async function settledFault(stand: KernelStand): Promise<void> {
  for (let i = 0; i < 2_000 && stand.kernel.fault === undefined; i++)
    await new Promise((resolve) => setTimeout(resolve, 0));
}

function ended(output: unknown): unknown {
  return { type: "ended", ending: { type: "returned", output: JSON.stringify(output) } };
}
