// `task.signalSession` and `task.readSession`: the durable messages of a task to its own session, and its
// sight of it.

import { gate, releaseClaim, TestClock, until } from "@holdfast/testkit/test-runtime";
import { afterEach, expect, test } from "vitest";
import { defineAgent, defineTask, type TaskContext } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, vanishRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

/** An agent that collects what its task reports; an attempt that was lost is no longer tried. */
function world(run: (task: TaskContext) => Promise<unknown>) {
  const storage = new MemoryStorage();
  const report = defineTask({
    name: "report",
    retry: { maxAttempts: 1 },
    run: (_input: undefined, task) => run(task),
  });
  const agent = defineAgent({
    name: "listener",
    tasks: [report],
    run: async (ctx) => {
      const end = await ctx.scheduleTask(report, undefined).catch((error: Error) => error.name);
      return { end, received: ctx.drainSignals("report.*").map(({ payload }) => payload) };
    },
  });
  const open = (owner: string): Runtime => {
    const runtime = createRuntime({
      storage,
      clock: new TestClock(),
      owner,
      agents: [agent],
      development: false,
    });
    opened.push(runtime);
    return runtime;
  };
  return { agent, storage, open };
}

test("an agent receives the signals of its task in order, and a repeated key once", async () => {
  const { agent, open } = world(async (task) => {
    await task.signalSession("report.event", 1, { dedupKey: "1" });
    await task.signalSession("report.event", 1, { dedupKey: "1" });
    await task.signalSession("report.event", 2, { dedupKey: "2" });
    return "done";
  });
  const handle = await open("a").start(agent);
  expect(await handle.result()).toEqual({ end: "done", received: [1, 2] });
});

test("a signal that a task has sent outlives the process of the task", async () => {
  const sent = gate();
  const { agent, storage, open } = world(async (task) => {
    await task.signalSession("report.event", "before the crash");
    sent.open();
    return new Promise(() => {});
  });
  const first = open("a");
  const { sessionId } = await first.start(agent);
  await sent.opened;
  vanishRuntime(first);
  opened.length = 0;
  await releaseClaim(storage, sessionId);
  const second = open("b");
  await second.recover();
  expect(await second.handle(sessionId).result()).toMatchObject({ received: ["before the crash"] });
});

test("an attempt that has ended signals nothing", async () => {
  let late: Promise<unknown> | undefined;
  const { agent, open } = world(async (task) => {
    void Promise.resolve().then(() => {
      setImmediate(() => {
        late = task.signalSession("report.event", "late").catch((error: unknown) => error);
      });
    });
    return "done";
  });
  const handle = await open("a").start(agent);
  expect(await handle.result()).toEqual({ end: "done", received: [] });
  await until(() => late !== undefined, "the late signal");
  expect(await late).toMatchObject({ name: "AbortError" });
});

test("a task reads its own session and the children of that, and no other session", async () => {
  const { agent, storage, open } = world(async (task) => {
    const rows = ["own-child", "stranger", "nobody"].map((id) => task.readSession(id));
    return [await task.readSession(), ...(await Promise.all(rows))].map((row) => row?.sessionId ?? null);
  });
  const runtime = open("a");
  const child = { agent: { name: "other", version: "1" }, input: undefined, seed: 1, flags: 0, format: 1 };
  const parent = { sessionId: "own", child: 9, onEnd: "leave" } as const;
  await storage.commit(
    [
      { ...child, type: "create_session", sessionId: "own-child", parent },
      { ...child, type: "create_session", sessionId: "stranger" },
    ],
    0,
  );
  const handle = await runtime.start(agent, undefined, { sessionId: "own" });
  expect(await handle.result()).toMatchObject({ end: ["own", "own-child", null, null] });
});
