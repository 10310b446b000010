// Children and parents: spawning, signals in both directions, requests, hand-overs and ends.

import { type ChildEvent, isAnsweredBy } from "@holdfast/core";
import { gate, TestClock, turns, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTask, local, type Agent, type AgentContext } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, vanishRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

function open(options: Partial<RuntimeOptions> = {}): {
  runtime: Runtime;
  storage: MemoryStorage;
  clock: TestClock;
} {
  const storage = (options.storage as MemoryStorage | undefined) ?? new MemoryStorage();
  const clock = (options.clock as TestClock | undefined) ?? new TestClock();
  const runtime = createRuntime({ ...options, storage, clock, development: false });
  opened.push(runtime);
  return { runtime, storage, clock };
}

const double = defineAgent({ name: "double", run: async (ctx, n: number) => ctx.run("work", () => n * 2) });
const failing = defineAgent({
  name: "failing",
  run: async () => {
    throw new Error("no luck");
  },
});
const listener = defineAgent({
  name: "listener",
  run: async (ctx) => `heard ${JSON.stringify(await ctx.waitForSignal("word"))}`,
});

function parent(
  run: (ctx: AgentContext) => Promise<unknown>,
  // oxlint-disable-next-line typescript/no-explicit-any -- agents of any input.
  agents: readonly Agent<any, any>[] = [double, failing, listener],
  name = "parent",
): Agent {
  return defineAgent({ name, agents, run: async (ctx) => run(ctx) });
}

describe("a child", () => {
  test.each([
    ["is another session's", "order-0", (ctx: AgentContext) => ctx.run("work", () => 1)],
    [
      "is, or its heir's, another session's",
      "order-0-0",
      (ctx: AgentContext) => ctx.handoffToAgent(local(double), 1, { completion: "immediate" }),
    ],
  ])("a child whose id %s fails, and its parent does not wait for it", async (_how, taken, run) => {
    const { runtime } = open();
    await runtime.start(listener, undefined, { sessionId: taken });
    const child = defineAgent({ name: "child", agents: [double], run: async (ctx) => run(ctx) });
    const agent = parent(async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(child))), [child]);
    const order = await runtime.start(agent, undefined, { sessionId: "order" });
    expect(await order.settled()).toMatchObject({
      status: "failed",
      error: { message: expect.stringContaining(`there is another session ${taken} already`) as unknown },
    });
    expect((await runtime.handle(taken).session()).status).toBe("waiting");
  });

  test("several children give their outputs to their parent in any order", async () => {
    const { runtime } = open();
    const agent = parent(async (ctx) => {
      const children = [1, 2, 3].map((n) => ctx.spawnAgent(local(double), n));
      const outputs = await Promise.all(children.map((child) => ctx.waitForChild(child)));
      return [...outputs, await ctx.waitForChild(children[0]!)];
    });
    const handle = await runtime.start(agent);
    expect(await handle.result()).toEqual([2, 4, 6, 2]);
  });

  test("a child that fails rejects its parent's wait with the reason", async () => {
    const { runtime } = open();
    const agent = parent(async (ctx) => {
      const child = ctx.spawnAgent(local(failing));
      try {
        await ctx.waitForChild(child);
        return "no";
      } catch (error) {
        const { code, message, ending } = error as { code: string; message: string; ending: string };
        return { code, ending, message };
      }
    });
    const { sessionId, result } = await runtime.start(agent);
    expect(await result()).toEqual({
      code: "child_failed",
      ending: "failed",
      message: `child ${sessionId}-0 failed: no luck`,
    });
  });

  test("a child of an unknown agent is an error that names the known agents", async () => {
    const { runtime } = open();
    const handle = await runtime.start(parent(async (ctx) => ctx.spawnAgent(local("nobody"))));
    expect(await handle.settled()).toMatchObject({
      status: "paused",
      fault: { code: "agent_not_found", expected: expect.stringContaining('"double"') },
    });
  });

  test("a child receives signals, and its own signals and progress reach the parent in order", async () => {
    const { runtime } = open();
    const talker = defineAgent({
      name: "talker",
      run: async (ctx) => {
        ctx.signalParent("hello", { n: 1 });
        ctx.reportProgress(0.5);
        const word = await ctx.waitForSignal("word");
        return { word, parent: ctx.parentId };
      },
    });
    const agent = parent(
      async (ctx) => {
        const child = ctx.spawnAgent(local(talker));
        const events: ChildEvent[] = [await ctx.waitForChildEvent(child), await ctx.waitForChildEvent(child)];
        ctx.signalChild(child, "word", "go");
        events.push(await ctx.waitForChildEvent(child));
        return { events, output: await ctx.waitForChild(child) };
      },
      [talker],
    );
    const handle = await runtime.start(agent);
    const output = { word: "go", parent: handle.sessionId };
    expect(await handle.result()).toEqual({
      events: [
        { type: "signal", name: "hello", payload: { n: 1 } },
        { type: "progress", data: 0.5 },
        { type: "completed", output },
      ],
      output,
    });
  });

  test("a request of a child is answered by a handler of its parent, and rejects without a handler", async () => {
    const { runtime } = open();
    const lookUp = defineTask({ name: "look-up", run: (key: string) => `value of ${key}` });
    const asker = defineAgent({
      name: "asker",
      run: async (ctx) => {
        const value = await ctx.requestFromParent("lookUp", "k");
        const missing = await ctx.requestFromParent("nothing").catch((error: Error) => error.message);
        return { value, missing };
      },
    });
    const agent = defineAgent({
      name: "parent",
      agents: [asker],
      handlers: { lookUp },
      run: async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(asker))),
    });
    expect(await (await runtime.start(agent)).result()).toEqual({
      value: "value of k",
      missing: expect.stringContaining('no handler "nothing"'),
    });
  });

  test("a request of a child is answered by a parent that has returned and waits for its children", async () => {
    const { runtime } = open();
    const lookUp = defineTask({ name: "look-up", run: (key: string) => `value of ${key}` });
    const go = gate();
    let answer: unknown;
    const asker = defineAgent({
      name: "asker",
      run: async (ctx) => {
        await ctx.run("wait", () => go.opened);
        answer = await ctx.requestFromParent("lookUp", "k");
      },
    });
    const agent = defineAgent({
      name: "parent",
      agents: [asker],
      handlers: { lookUp },
      run: async (ctx) => {
        ctx.spawnAgent(local(asker), undefined, { onParentEnd: "wait" });
        return "returned";
      },
    });
    const handle = await runtime.start(agent);
    await turns(20);
    go.open();
    expect(await handle.result()).toBe("returned");
    expect(answer).toBe("value of k");
  });

  test("a child is cancelled, left or waited for when its parent ends", async () => {
    const { runtime } = open();
    const go = gate();
    const slow = defineAgent({ name: "slow", run: async (ctx) => ctx.run("wait", () => go.opened) });
    const agent = parent(
      async (ctx) => {
        ctx.spawnAgent(local(listener));
        ctx.spawnAgent(local(listener), undefined, { onParentEnd: "leave" });
        ctx.spawnAgent(local(slow), undefined, { onParentEnd: "wait" });
        return "done";
      },
      [listener, slow],
    );
    const handle = await runtime.start(agent);
    const status = async (n: number): Promise<string> =>
      (await runtime.handle(`${handle.sessionId}-${n}`).session()).status;
    await until(async () => (await status(2)) === "working", "the slow one works");
    await turns(20);
    expect((await handle.session()).status).toBe("waiting");
    go.open();
    expect(await handle.result()).toBe("done");
    await until(async () => (await status(0)) === "cancelled", "the first is cancelled");
    expect(await status(1)).toBe("waiting");
    expect(await status(2)).toBe("completed");
  });

  test("a child is cancelled with the whole tree, and reports its end", async () => {
    const { runtime } = open();
    const middle = parent(
      async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(listener))),
      [listener],
      "middle",
    );
    const top = parent(async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(middle))), [middle], "top");
    const handle = await runtime.start(top);
    const leaf = `${handle.sessionId}-0-0`;
    await until(
      async () =>
        (
          await runtime
            .handle(leaf)
            .session()
            .catch(() => undefined)
        )?.status === "waiting",
      "the leaf waits",
    );
    await handle.cancel({ reason: "enough" });
    expect(await handle.settled()).toMatchObject({ status: "cancelled" });
    await until(
      async () => (await runtime.handle(leaf).session()).status === "cancelled",
      "the leaf is cancelled",
    );
    expect((await runtime.handle(leaf).session()).cancel).toMatchObject({ cause: "parent" });
  });

  test("a child that is spawned after the cancel was acknowledged is cancelled, too", async () => {
    const { runtime } = open();
    const agent = parent(async (ctx) => {
      await ctx.waitForSignal("never").catch(() => {});
      ctx.spawnAgent(local(listener), undefined, { onParentEnd: "leave" });
      await ctx.cleanup(async (c) => c.waitForSignal("cleaned"));
    });
    const handle = await runtime.start(agent);
    await handle.cancel({ graceMs: 1_000_000 });
    const child = runtime.handle(`${handle.sessionId}-1`);
    await until(
      async () => (await child.session().catch(() => undefined))?.endedAt !== undefined,
      "it is cancelled while its parent cleans up",
    );
    expect(await child.session()).toMatchObject({ status: "cancelled", cancel: { cause: "parent" } });
    expect((await handle.session()).status).toBe("cancelling");
    await handle.signal("cleaned");
    expect(await handle.settled()).toMatchObject({ status: "cancelled" });
  });

  test("a child that fails is respawned with its last progress", async () => {
    const { runtime } = open();
    let tries = 0;
    const shaky = defineAgent({
      name: "shaky",
      run: async (ctx) => {
        const attempt = await ctx.run("count", () => ++tries);
        ctx.reportProgress({ attempt });
        await ctx.run("step", () => 0);
        if (attempt < 3) throw new Error(`attempt ${attempt}`);
        return { attempt, resumedFrom: ctx.resumedFrom };
      },
    });
    const agent = parent(
      async (ctx) =>
        ctx.waitForChild(ctx.spawnAgent(local(shaky), undefined, { respawn: { maxAttempts: 3 } })),
      [shaky],
    );
    expect(await (await runtime.start(agent)).result()).toEqual({ attempt: 3, resumedFrom: { attempt: 2 } });
  });

  test("a child sees a shared conversation as a branch or beside its own", async () => {
    const { runtime } = open();
    const read = defineTask({
      name: "read",
      run: (input: { conversation: { id: string; parentId: string | null; content: unknown }[] }) =>
        input.conversation,
    });
    const reader = defineAgent({
      name: "reader",
      tasks: [read],
      run: async (ctx) => {
        ctx.appendEntry({ role: "user", content: "own" });
        const entries = (await ctx.scheduleTask(read, { conversation: ctx.conversation() as never })) as {
          parentId: string | null;
          content: unknown;
        }[];
        return {
          entries: entries.map(({ content, parentId }) => [content, parentId]),
          shared: ctx.shared ?? null,
        };
      },
    });
    const agent = parent(
      async (ctx) => {
        ctx.appendEntry({ role: "user", content: "first" });
        const kinds = ["conversation", "conversation_read_only", "none", { custom: { a: 1 } }] as const;
        const children = kinds.map((shared) => ctx.spawnAgent(local(reader), undefined, { shared }));
        return Promise.all(children.map((child) => ctx.waitForChild(child)));
      },
      [reader],
    );
    const handle = await runtime.start(agent);
    const root = `${handle.sessionId}-0`;
    expect(await handle.result()).toEqual([
      {
        entries: [
          ["first", null],
          ["own", root],
        ],
        shared: null,
      },
      {
        entries: [
          ["first", null],
          ["own", null],
        ],
        shared: null,
      },
      { entries: [["own", null]], shared: null },
      { entries: [["own", null]], shared: { a: 1 } },
    ]);
  });
});

test("a child that sends its parent a signal reserved for budgets is paused with the reason", async () => {
  const { runtime } = open();
  const child = defineAgent({
    name: "child",
    run: async (ctx) => ctx.signalParent("budget-low", { tokens: 1 }),
  });
  const receiving = defineAgent({
    name: "hearing",
    agents: [child],
    run: async (ctx) => ctx.waitForChildEvent(ctx.spawnAgent(local(child))),
  });
  const session = await runtime.start(receiving);
  expect(await session.result()).toEqual({ type: "blocked", reason: "agent_fault" });
});

describe("a hand-over", () => {
  test("a hand-over that waits gives the output of the successor", async () => {
    const { runtime } = open();
    const agent = parent(async (ctx) => ctx.handoffToAgent(local(double), 4));
    expect(await (await runtime.start(agent)).result()).toBe(8);
  });

  test("an immediate hand-over completes, and the successor notifies the grandparent", async () => {
    const { runtime } = open();
    const middle = defineAgent({
      name: "middle",
      agents: [double],
      run: async (ctx) => ctx.handoffToAgent(local(double), 5, { completion: "immediate" }),
    });
    const top = parent(async (ctx) => ctx.waitForChild(ctx.spawnAgent(local(middle))), [middle], "top");
    const handle = await runtime.start(top);
    expect(await handle.result()).toBe(10);
    const given = await runtime.handle(`${handle.sessionId}-0`).session();
    expect(given).toMatchObject({ status: "completed", handedOffTo: `${handle.sessionId}-0-0` });
    expect(await runtime.handle(`${handle.sessionId}-0-0`).session()).toMatchObject({
      parent: { sessionId: handle.sessionId, child: 0 },
    });
  });

  test("after an immediate hand-over the grandparent's signals and cancel reach the successor", async () => {
    const { runtime } = open();
    const successor = defineAgent({
      name: "heir",
      run: async (ctx) => [await ctx.waitForSignal("word"), await ctx.waitForSignal("never")],
    });
    const middle = defineAgent({
      name: "middle",
      agents: [successor],
      run: async (ctx) => ctx.handoffToAgent(local(successor), undefined, { completion: "immediate" }),
    });
    const top = parent(
      async (ctx) => {
        const child = ctx.spawnAgent(local(middle));
        await ctx.waitForSignal("handed over");
        ctx.signalChild(child, "word", 1);
        await ctx.waitForSignal("heard");
        ctx.cancelChild(child, { reason: "enough" });
        return ctx.waitForChildEvent(child);
      },
      [middle],
      "top",
    );
    const handle = await runtime.start(top);
    const isActive = runtime.handle(`${handle.sessionId}-0-0`);
    const waitsFor = async (name: string): Promise<boolean> => {
      const { waits } = await isActive.session().catch(() => ({ waits: [] }));
      return isAnsweredBy(waits, name);
    };
    await until(() => waitsFor("word"), "it waits");
    await handle.signal("handed over");
    await until(() => waitsFor("never"), "it has heard");
    await handle.signal("heard");
    expect(await handle.result()).toMatchObject({ type: "cancelled" });
  });
});

describe("the row of a session", () => {
  test("the row of a waiting session shows its last progress", async () => {
    const { runtime } = open();
    const worker = defineAgent({
      name: "worker",
      run: async (ctx) => {
        ctx.reportProgress({ done: 1 });
        await ctx.waitForSignal("go");
        ctx.reportProgress({ done: 2 });
        await ctx.waitForSignal("more");
      },
    });
    const handle = await runtime.start(worker);
    expect(await handle.session()).toMatchObject({ status: "waiting", progress: '{"done":1}' });
    await handle.signal("go");
    await until(async () => (await handle.session()).progress === '{"done":2}', "it has gone on");
    expect(await handle.session()).toMatchObject({ status: "waiting", waits: [{ name: "more" }] });
  });
});

describe("a session of which only the row is kept", () => {
  test("a minimal session is stored whole by a pause, and resumes where it was", async () => {
    const { runtime, storage } = open();
    let counted = 0;
    const agent = defineAgent({
      name: "light",
      run: async (ctx) => {
        const n = await ctx.run("count", () => ++counted);
        await ctx.waitForSignal("go");
        return n;
      },
    });
    const handle = await runtime.start(agent, undefined, { persistence: "minimal" });
    await until(async () => (await handle.session()).status === "waiting", "it waits");
    expect(await storage.reader.journal(handle.sessionId, 0, 9)).toEqual([]);
    await handle.pause();
    await handle.settled();
    expect((await storage.reader.journal(handle.sessionId, 0, 9)).length).toBeGreaterThan(2);
    await handle.unpause();
    await handle.signal("go");
    expect(await handle.result()).toBe(1);
  });
});

describe("a session that is cancelled before its agent was ever called", () => {
  test("a session that is cancelled before its first call is cancelled, although its agent ends at once", async () => {
    const { runtime, storage, clock } = open();
    const quick = defineAgent({ name: "quick", run: async () => "at once" });
    const agent = parent(async (ctx) => ctx.waitForSignal("never"), [quick]);
    await runtime.start(agent, undefined, { sessionId: "known" });
    const created = {
      type: "create_session",
      sessionId: "unborn",
      agent: { name: "quick", version: "1" },
      input: undefined,
      seed: 1,
      flags: 0,
      format: 1,
    } as const;
    await storage.commit(
      [created, { type: "request_cancel", sessionId: "unborn", mode: "graceful", graceMs: 1_000_000 }],
      clock.now(),
    );
    await runtime.resume("unborn");
    await until(async () => (await storage.reader.session("unborn"))?.endedAt !== undefined, "it ends");
    expect(await storage.reader.session("unborn")).toMatchObject({
      status: "cancelled",
      output: '"at once"',
    });
  });
});

describe("after the process is gone", () => {
  test("the whole tree resumes in the next process, and nothing is asked for twice", async () => {
    const storage = new MemoryStorage();
    const clock = new TestClock();
    const first = open({ storage, clock, owner: "first" });
    let works = 0;
    const slow = (ready: Promise<void>): Agent<number, number> =>
      defineAgent({
        name: "slow",
        run: async (ctx, n: number) => {
          const m = await ctx.run("count", () => (works++, n));
          await ctx.waitForSignal("go");
          await ready;
          return m * 10;
        },
      });
    const agentWith = (child: Agent<number, number>): Agent =>
      parent(
        async (ctx) => {
          const children = [1, 2, 3].map((n) => ctx.spawnAgent(local(child), n));
          return Promise.all(children.map((one) => ctx.waitForChild(one)));
        },
        [child],
      );
    const handle = await first.runtime.start(agentWith(slow(Promise.resolve())));
    const { sessionId } = handle;
    const statusOf = async (id: string): Promise<string | undefined> =>
      (await storage.reader.session(id))?.status;
    for (const n of [0, 1, 2])
      await until(async () => (await statusOf(`${sessionId}-${n}`)) === "waiting", "a child waits");
    vanishRuntime(first.runtime);
    const later = new TestClock(clock.now() + 1);
    for (const n of [0, 1, 2]) await forceRelease(storage, `${sessionId}-${n}`);
    await forceRelease(storage, sessionId);
    const second = open({
      storage,
      clock: later,
      owner: "second",
      agents: [agentWith(slow(Promise.resolve()))],
    });
    const again = await second.runtime.resume(sessionId);
    for (const n of [0, 1, 2]) await second.runtime.signal(`${sessionId}-${n}`, "go");
    expect(await again.result()).toEqual([10, 20, 30]);
    expect(works).toBe(3);
  });

  test("children that are recorded are counted once", async () => {
    const storage = new MemoryStorage();
    const agent = parent(async (ctx) => {
      for (let n = 0; n < 2; n++) await ctx.waitForChild(ctx.spawnAgent(local(double), n));
      await ctx.waitForSignal("go");
      return ctx.waitForChild(ctx.spawnAgent(local(double), 3));
    });
    const limits = { children: 3 };
    const first = open({ storage, limits });
    const { sessionId } = await first.runtime.start(agent);
    await until(async () => (await storage.reader.session(sessionId))?.waits[0]?.id === 4, "it waits");
    await first.runtime.close();
    const second = open({ storage, limits, agents: [agent] });
    await second.runtime.signal(sessionId, "go");
    const again = await second.runtime.resume(sessionId);
    expect(await again.settled()).toMatchObject({ status: "completed", output: 6 });
  });

  test.each([
    ["is gone", true, false],
    ["is new", false, true],
  ])("a handler that %s parks the parent whose journal says otherwise", async (_what, before, after) => {
    const storage = new MemoryStorage();
    const answer = defineTask({ name: "answer", run: async (n: number) => n });
    const asks = defineAgent({
      name: "asks",
      run: async (ctx) => ctx.requestFromParent("answer", 1).catch(() => "nobody"),
    });
    const answering = (has: boolean): Agent =>
      defineAgent({
        name: "parent",
        agents: [asks],
        handlers: has ? { answer } : {},
        run: async (ctx) => {
          await ctx.waitForChild(ctx.spawnAgent(local(asks)));
          return ctx.waitForSignal("go");
        },
      });
    const first = open({ storage });
    const { sessionId } = await first.runtime.start(answering(before));
    const wait = before ? 4 : 3;
    await until(async () => (await storage.reader.session(sessionId))?.waits[0]?.id === wait, "it waits");
    await first.runtime.close();
    const second = open({ storage, agents: [answering(after)] });
    const again = await second.runtime.resume(sessionId);
    expect(await again.settled()).toMatchObject({ status: "paused", fault: { code: "nondeterminism" } });
    expect(await again.session()).toMatchObject({ status: "paused", pauseReason: "nondeterminism" });
    expect((await storage.reader.journal(sessionId, 0, 99)).at(-1)).toMatchObject({ type: "wait_signal" });
  });
});

/** Release a claim, as the death of its owner process does. */
async function forceRelease(storage: MemoryStorage, sessionId: string): Promise<void> {
  const claim = await storage.claim({ sessionId, owner: "first", now: 0, leaseMs: 0 });
  if (claim.status === "claimed")
    await storage.commit([{ type: "release_claim", sessionId, token: claim.token }], 0);
}
