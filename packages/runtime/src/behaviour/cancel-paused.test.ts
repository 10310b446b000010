// A session that is paused when it is cancelled. Its agent is notified at once if it can run. Otherwise the
// session ends at the deadline.

import { gate, storageWith, TestClock, turns, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, local, type Agent } from "../agents/define.ts";
import { vanishRuntime } from "../internal.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

const GRACE_MS = 60_000;

/** A parent that waits for its child, and heeds no cancel before its deadline. */
function parentOf(child: Agent, agents: readonly Agent[] = [child]): Agent {
  return defineAgent({
    name: "parent",
    agents,
    run: async (ctx) => {
      ctx.spawnAgent(local(child));
      await ctx.waitForSignal("never").catch(() => {});
      await ctx.cleanup(async (c) => c.waitForSignal("cleaned"));
    },
  });
}

const listener = defineAgent({ name: "child", run: async (ctx) => ctx.waitForSignal("word") });
const mistaken = defineAgent({
  name: "child",
  run: async () => {
    const nothing = JSON.parse("null") as { field: unknown };
    return nothing.field;
  },
});

/** Goes on differently each time it is gone through. */
function fickle(): Agent {
  let life = 0;
  return defineAgent({
    name: "child",
    run: async (ctx) => {
      await ctx.waitForSignal(`word-${life++}`);
    },
  });
}

describe.each([true, false])("with adopt: %s", (adopt) => {
  function open(agents: readonly Agent[], storage = new MemoryStorage(), clock = new TestClock()) {
    const runtime = createRuntime({ storage, clock, agents, adopt, owner: "same", development: false });
    opened.push(runtime);
    return { runtime, storage, clock };
  }

  async function pausedUnder(runtime: Runtime, agent: Agent): Promise<{ id: string; child: string }> {
    const { sessionId: id } = await runtime.start(agent);
    const child = `${id}-0`;
    const statusOf = async (): Promise<string | undefined> =>
      (
        await runtime
          .handle(child)
          .session()
          .catch(() => undefined)
      )?.status;
    await until(async () => ["waiting", "paused"].includes((await statusOf()) ?? ""), "the child stands");
    await runtime.pause(child);
    await until(async () => (await statusOf()) === "paused", "the child is paused");
    await turns(20);
    return { id, child };
  }

  const endOf = async (runtime: Runtime, id: string) => {
    await until(async () => (await runtime.handle(id).session()).endedAt !== undefined, `${id} ends`, 200);
    return (await runtime.handle(id).session()).status;
  };

  test("a session that a person paused is notified at once", async () => {
    const { runtime } = open([]);
    const { id, child } = await pausedUnder(runtime, parentOf(listener));
    await runtime.cancel(id, { graceMs: GRACE_MS });
    expect(await endOf(runtime, child)).toBe("cancelled");
    expect((await runtime.handle(id).session()).status).toBe("cancelling");
  });

  test("a session that a person paused in an earlier process is notified at once", async () => {
    const first = open([]);
    const { id, child } = await pausedUnder(first.runtime, parentOf(listener));
    vanishRuntime(first.runtime);
    const { runtime } = open([parentOf(listener)], first.storage, first.clock);
    await runtime.resume(id);
    await turns(20);
    await runtime.cancel(id, { graceMs: GRACE_MS });
    expect(await endOf(runtime, child)).toBe("cancelled");
  });

  test("a session with an agent fault is notified at once, and fails when the fault recurs", async () => {
    const { runtime } = open([]);
    const { id, child } = await pausedUnder(runtime, parentOf(mistaken));
    await runtime.cancel(id, { graceMs: GRACE_MS });
    expect(await endOf(runtime, child)).toBe("failed");
  });

  test("a session that diverges from its journal ends at the deadline", async () => {
    const { runtime, clock } = open([]);
    const { id, child } = await pausedUnder(runtime, parentOf(fickle()));
    await runtime.cancel(id, { graceMs: GRACE_MS });
    await clock.advance(GRACE_MS - 1);
    expect((await runtime.handle(child).session()).endedAt).toBeUndefined();
    await clock.advance(1);
    expect(await endOf(runtime, child)).toBe("cancelled");
  });

  test("a session that diverges from its journal ends at the deadline, also after its parent's end", async () => {
    const { runtime, clock } = open([]);
    const child = fickle();
    const brief = defineAgent({
      name: "brief",
      agents: [child],
      run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(child))),
    });
    const paused = await pausedUnder(runtime, brief);
    await runtime.cancel(paused.id, { graceMs: GRACE_MS });
    expect(await endOf(runtime, paused.id)).toBe("cancelled");
    await clock.advance(GRACE_MS - 1);
    expect((await runtime.handle(paused.child).session()).endedAt).toBeUndefined();
    await clock.advance(1);
    expect(await endOf(runtime, paused.child)).toBe("cancelled");
  });

  test("a session with an unknown agent ends at the deadline", async () => {
    const first = open([]);
    const { id, child } = await pausedUnder(first.runtime, parentOf(listener));
    vanishRuntime(first.runtime);
    const { runtime, clock } = open([parentOf(listener, [])], first.storage, first.clock);
    await runtime.resume(id);
    await turns(20);
    await runtime.cancel(id, { graceMs: GRACE_MS });
    await clock.advance(GRACE_MS - 1);
    expect((await runtime.handle(child).session()).endedAt).toBeUndefined();
    await clock.advance(1);
    expect(await endOf(runtime, child)).toBe("cancelled");
  });
});

test.each([
  ["for want of a budget", { maxSteps: 1 }, async (): Promise<unknown> => undefined],
  [
    "by its mistake",
    undefined,
    async (): Promise<unknown> => (JSON.parse("null") as { field: unknown }).field,
  ],
])(
  "a session that is paused %s right after it was cancelled is notified at once",
  async (_how, budget, step) => {
    const memory = new MemoryStorage();
    let isCancelled = false;
    const storage = storageWith(memory, {
      async commit(changes, now) {
        const pause = changes.find(
          (each) => each.type === "commit_batch" && each.session?.status === "paused",
        );
        if (pause !== undefined && !isCancelled && "sessionId" in pause) {
          isCancelled = true;
          const { sessionId } = pause;
          await memory.commit(
            [{ type: "request_cancel", sessionId, mode: "graceful", graceMs: GRACE_MS }],
            now,
          );
        }
        return memory.commit(changes, now);
      },
    });
    const runtime = createRuntime({ storage, clock: new TestClock(), development: false });
    opened.push(runtime);
    let received = 0;
    const agent = defineAgent({
      name: "spends",
      run: async (ctx) => {
        if (ctx.isCancellationRequested()) received++;
        await ctx.run("first", () => 1);
        if (ctx.isCancellationRequested()) received++;
        await step();
        await ctx.run("second", () => 2).catch(() => received++);
        return "tidied";
      },
    });
    const session = await runtime.start(agent, undefined, budget && { budget });
    const settled = await Promise.race([session.settled(), turns(200)]);
    expect(settled).toMatchObject(
      budget === undefined
        ? { status: "failed" }
        : { status: "cancelled", output: "tidied", error: undefined },
    );
    if (budget !== undefined) expect(received).toBeGreaterThan(0);
  },
);

test("a session paused for want of a budget is notified that its open task does not run", async () => {
  const runtime = createRuntime({ storage: new MemoryStorage(), clock: new TestClock(), development: false });
  opened.push(runtime);
  const agent = defineAgent({
    name: "spends",
    run: async (ctx) => {
      await ctx.run("first", () => 1);
      return ctx.run("second", () => 2).catch((error: Error) => error.message);
    },
  });
  const session = await runtime.start(agent, undefined, { budget: { maxSteps: 1 } });
  expect(await session.settled()).toMatchObject({ status: "paused" });
  await session.cancel({ graceMs: GRACE_MS });
  const output: unknown = expect.stringContaining("the budget is used up");
  expect(await Promise.race([session.settled(), turns(200)])).toMatchObject({ status: "cancelled", output });
});

test("outcomes stored during a pause are delivered once the session is cancelled", async () => {
  const [short, long] = [gate(), gate()];
  const agent = defineAgent({
    name: "both",
    run: async (ctx) => {
      await ctx.all([ctx.run("short", () => short.opened), ctx.run("long", () => long.opened)]);
      ctx.appendEntry({ role: "user", content: "both are done" });
    },
  });
  const runtime = createRuntime({ storage: new MemoryStorage(), clock: new TestClock(), development: false });
  opened.push(runtime);
  const session = await runtime.start(agent);
  await session.pause();
  short.open();
  await turns(20);
  await session.cancel();
  await turns(20);
  long.open();
  expect(await session.settled()).toMatchObject({ status: "cancelled" });
  expect(await session.session()).toMatchObject({ entryCount: 1, cancel: { mode: "graceful" } });
});
