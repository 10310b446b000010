// The charges of a budget for attempts that were lost with their process, and their release.

import { gate, releaseClaim, TestClock, until } from "@holdfast/testkit/test-runtime";
import { afterEach, expect, test } from "vitest";
import { defineAgent, defineTask, local } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, vanishRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

/** Agents over one storage, whose tasks hold 100 tokens, wait for `ready` and use 30. */
function world() {
  const storage = new MemoryStorage();
  const ready = gate();
  let starts = 0;
  const call = (name: string, maxAttempts?: number) =>
    defineTask({
      name,
      ...(maxAttempts === undefined ? {} : { retry: { maxAttempts } }),
      cost: () => ({ maxTokens: 100 }),
      run: async (_input: undefined, task) => {
        starts++;
        await ready.opened;
        task.reportUsage({ model: "m", inputTokens: 20, outputTokens: 10 });
        return "done";
      },
    });
  const again = call("again");
  const once = call("once", 1);
  const worker = defineAgent({
    name: "worker",
    tasks: [again],
    run: async (ctx) => ctx.scheduleTask(again, undefined),
  });
  const cautious = defineAgent({
    name: "cautious",
    tasks: [once],
    run: async (ctx) => ctx.scheduleTask(once, undefined).catch((error: Error) => error.message),
  });
  const parent = defineAgent({
    name: "parent",
    agents: [worker],
    run: async (ctx) =>
      ctx.waitForChild(ctx.spawnAgent(local(worker), undefined, { budget: { maxTokens: 500 } })),
  });
  const agents = [worker, cautious, parent];
  const open = (owner: string): Runtime => {
    return createRuntime({ storage, clock: new TestClock(), owner, agents, development: false });
  };
  const started = async (count: number): Promise<void> => until(() => starts === count, `${count} attempts`);
  /** A process drives the session until its attempt runs, and dies. */
  const crash = async (drive: (runtime: Runtime) => Promise<unknown>, owner: string, ids: string[]) => {
    const before = starts;
    const runtime = open(owner);
    await drive(runtime);
    await started(before + 1);
    vanishRuntime(runtime);
    for (const id of ids) await releaseClaim(storage, id);
  };
  const survivor = (): Runtime => {
    const runtime = open("survivor");
    opened.push(runtime);
    return runtime;
  };
  const accountOf = async (id: string) => (await storage.reader.session(id))?.account;
  return { storage, ready, started, crash, survivor, accountOf, worker, cautious, parent };
}

test("lost attempts are charged in full and shown apart, and their release pays for the session again", async () => {
  const { crash, survivor, accountOf, worker, ready, started } = world();
  const options = { sessionId: "s", budget: { maxTokens: 250 } };
  await crash((runtime) => runtime.start(worker, undefined, options), "first", ["s"]);
  await crash((runtime) => runtime.resume("s"), "second", ["s"]);
  expect(await accountOf("s")).toMatchObject({
    spent: { tokens: 100 },
    reserved: { tokens: 100 },
    lost: { tokens: 100 },
  });

  const runtime = survivor();
  const handle = await runtime.resume("s");
  expect(await handle.settled()).toMatchObject({ status: "paused", fault: { code: "budget_exceeded" } });
  expect(await accountOf("s")).toMatchObject({ spent: { tokens: 200 }, lost: { tokens: 200 } });
  expect(await handle.releaseLost()).toBe("paused");
  await started(3);
  expect(await runtime.releaseLost("s")).toBe("working");
  ready.open();
  expect(await handle.result()).toBe("done");
  const account = await accountOf("s");
  expect(account).toMatchObject({ spent: { tokens: 30 }, reserved: { tokens: 0 } });
  expect(account).not.toHaveProperty("lost");
});

test("an attempt that is lost and not tried again is charged as lost, too", async () => {
  const { crash, survivor, accountOf, cautious } = world();
  const options = { sessionId: "s", budget: { maxTokens: 250 } };
  await crash((runtime) => runtime.start(cautious, undefined, options), "first", ["s"]);
  const handle = await survivor().resume("s");
  expect(await handle.result()).toContain("its outcome is unknown");
  expect(await accountOf("s")).toMatchObject({ spent: { tokens: 100 }, lost: { tokens: 100 } });
});

test("a task that reports nothing is charged its worst case, and none of it counts as lost", async () => {
  const silent = defineTask({
    name: "silent",
    cost: () => ({ maxTokens: 100 }),
    run: async () => {
      throw new Error("no");
    },
    retry: { maxAttempts: 1 },
  });
  const agent = defineAgent({
    name: "silent",
    tasks: [silent],
    run: async (ctx) => ctx.scheduleTask(silent, undefined).catch(() => "failed"),
  });
  const { survivor, accountOf } = world();
  const handle = await survivor().start(agent, undefined, { sessionId: "s", budget: { maxTokens: 250 } });
  expect(await handle.result()).toBe("failed");
  const account = await accountOf("s");
  expect(account).toMatchObject({ spent: { tokens: 100 } });
  expect(account).not.toHaveProperty("lost");
});

test("every payer of a tree shows what it was charged for lost attempts, and is released alone", async () => {
  const { crash, survivor, accountOf, parent, ready, started } = world();
  const options = { sessionId: "p", budget: { maxTokens: 1_000 } };
  await crash((runtime) => runtime.start(parent, undefined, options), "first", ["p", "p-0"]);
  const runtime = survivor();
  await runtime.recover();
  await started(2);
  for (const id of ["p", "p-0"])
    expect(await accountOf(id)).toMatchObject({ spent: { tokens: 100 }, lost: { tokens: 100 } });
  await runtime.releaseLost("p-0");
  expect(await accountOf("p-0")).toMatchObject({ spent: { tokens: 0 }, reserved: { tokens: 100 } });
  expect(await accountOf("p")).toMatchObject({ spent: { tokens: 100 }, lost: { tokens: 100 } });
  await runtime.releaseLost("p");
  ready.open();
  expect(await runtime.handle("p").result()).toBe("done");
  expect(await accountOf("p")).toMatchObject({ spent: { tokens: 30 } });
});

test("an attempt that is lost past its task's deadline is charged as lost, and its task fails by that deadline", async () => {
  const storage = new MemoryStorage();
  const clock = new TestClock();
  const ready = gate();
  const slow = defineTask({
    name: "slow",
    deadlineMs: 1_000,
    cost: () => ({ maxTokens: 100 }),
    run: async (_input: undefined) => ready.opened,
  });
  const agent = defineAgent({
    name: "slow",
    tasks: [slow],
    run: async (ctx) => ctx.scheduleTask(slow, undefined).catch((error: Error) => error.message),
  });
  const open = (owner: string): Runtime =>
    createRuntime({ storage, clock, owner, agents: [agent], development: false });
  const first = open("first");
  await first.start(agent, undefined, { sessionId: "s", budget: { maxTokens: 250 } });
  await until(
    async () => (await storage.reader.session("s"))?.account?.reserved.tokens === 100,
    "a reservation",
  );
  vanishRuntime(first);
  await releaseClaim(storage, "s");
  await clock.advance(2_000);
  const second = open("second");
  opened.push(second);
  expect(await (await second.resume("s")).result()).toContain("within its 1000 ms");
  expect((await storage.reader.session("s"))?.account).toMatchObject({
    spent: { tokens: 100 },
    lost: { tokens: 100 },
  });
});
