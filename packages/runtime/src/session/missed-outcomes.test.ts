// MissedOutcomes: a wait for an outcome that was delivered before, or that cannot come any more, still ends.

import { gate, TestClock, turns, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTask, local, type Agent, type AgentContext } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, vanishRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

function open(options: Partial<RuntimeOptions> = {}): { runtime: Runtime; storage: MemoryStorage } {
  const storage = (options.storage as MemoryStorage | undefined) ?? new MemoryStorage();
  const runtime = createRuntime({ clock: new TestClock(), ...options, storage, development: false });
  opened.push(runtime);
  return { runtime, storage };
}

const double = defineAgent({ name: "double", run: async (ctx, n: number) => ctx.run("work", () => n * 2) });
const failing = defineAgent({
  name: "failing",
  run: async () => {
    throw new Error("no luck");
  },
});
const successor = defineAgent({
  name: "heir",
  agents: [double],
  run: async (ctx, n: number) => ctx.handoffToAgent(local(double), n, { completion: "immediate" }),
});

/** Spawns a child, receives its end, keeps its id in a checkpoint, and then calls `after` with it. */
function remembering(after: (ctx: AgentContext, childId: string) => Promise<unknown>, child = double): Agent {
  return defineAgent({
    name: "parent",
    agents: [double, failing, successor],
    run: async (ctx) => {
      const known = ctx.state as { childId: string } | undefined;
      if (known !== undefined) return after(ctx, known.childId);
      const { sessionId } = ctx.spawnAgent(local(child), 4);
      await ctx.waitForChild(ctx.child(sessionId)).catch(() => {});
      return ctx.checkpoint({ childId: sessionId });
    },
  });
}

describe("the end of a child that was received before a checkpoint", () => {
  test("the child's output is redelivered to a later wait for it", async () => {
    const { runtime } = open();
    const agent = remembering(async (ctx, childId) => ctx.waitForChild(ctx.child(childId)));
    expect(await (await runtime.start(agent)).result()).toBe(8);
  });

  test("the successor's output is redelivered when the child handed over", async () => {
    const { runtime } = open();
    const agent = remembering(async (ctx, childId) => ctx.waitForChild(ctx.child(childId)), successor);
    expect(await (await runtime.start(agent)).result()).toBe(8);
  });

  test("the child's end is redelivered for each wait for its events, also in one life", async () => {
    const { runtime } = open();
    const agent = remembering(async (ctx, childId) => {
      const child = ctx.child(childId);
      const next = (): Promise<unknown> => ctx.waitForChildEvent(child);
      return [await next(), await next(), await next(), await ctx.waitForChild(child)];
    });
    const completed = { type: "completed", output: 8 };
    expect(await (await runtime.start(agent)).result()).toEqual([completed, completed, completed, 8]);
  });

  test("the child's end is redelivered in the life that received it", async () => {
    const { runtime } = open();
    const agent = defineAgent({
      name: "parent",
      agents: [double],
      run: async (ctx) => {
        const child = ctx.spawnAgent(local(double), 4);
        return [await ctx.waitForChildEvent(child), await ctx.waitForChildEvent(child)];
      },
    });
    const completed = { type: "completed", output: 8 };
    expect(await (await runtime.start(agent)).result()).toEqual([completed, completed]);
  });

  test("a session that already had the child's id is not taken for the child and gets no signals for it", async () => {
    const { runtime } = open();
    const received = defineAgent({ name: "heard", run: async (ctx) => ctx.waitForSignal("word") });
    const taken = await runtime.start(received, undefined, { sessionId: "order-0" });
    const agent = defineAgent({
      name: "parent",
      agents: [double],
      run: async (ctx) => {
        if (ctx.state === undefined) {
          const child = ctx.spawnAgent(local(double), 4);
          ctx.signalChild(child, "word", "the child's");
          ctx.cancelChild(child);
          await ctx.waitForChild(child).catch(() => {});
          await ctx.waitForSignal("go");
          return ctx.checkpoint({});
        }
        return ctx.waitForChild(ctx.child("order-0"));
      },
    });
    const order = await runtime.start(agent, undefined, { sessionId: "order" });
    await turns(50);
    await taken.signal("word", "its own");
    expect(await taken.result()).toBe("its own");
    await order.signal("go");
    const error = {
      message:
        "child order-0 failed: session order-0 is not here: it was deleted, or detached from its parent by an import",
    };
    expect(await order.settled()).toMatchObject({ status: "failed", error });
  });

  test("the failure of a child is redelivered as a failure", async () => {
    const { runtime } = open();
    const agent = remembering(
      async (ctx, childId) =>
        ctx.waitForChild(ctx.child(childId)).catch((error: Error) => error.message.replace(childId, "ID")),
      failing as never,
    );
    expect(await (await runtime.start(agent)).result()).toBe("child ID failed: no luck");
  });

  test("the child's end is redelivered once in the next process", async () => {
    const { runtime, storage } = open({ owner: "first" });
    const agent = remembering(async (ctx, childId) => {
      await ctx.waitForSignal("go");
      return ctx.waitForChild(ctx.child(childId));
    });
    const { sessionId } = await runtime.start(agent);
    const row = async (): Promise<string | undefined> => (await storage.reader.session(sessionId))?.status;
    await until(async () => (await row()) === "waiting", "it waits after the checkpoint");
    vanishRuntime(runtime);
    await storage.claim({ sessionId, owner: "first", now: 0, leaseMs: 0 });
    const second = open({ storage, owner: "first", agents: [agent] });
    const handle = await second.runtime.resume(sessionId);
    await handle.signal("go");
    expect(await handle.result()).toBe(8);
    const received = (await storage.reader.journal(sessionId, 0, 99)).filter(
      (record) => record.type === "signal_received" && record.signalId.endsWith(":again"),
    );
    expect(received).toHaveLength(1);
  });

  test("a wait for a living child continues, and a wait for a deleted child fails", async () => {
    const { runtime } = open();
    const slow = defineAgent({ name: "slow", run: async (ctx) => ctx.waitForSignal("word") });
    const agent = defineAgent({
      name: "parent",
      agents: [slow],
      run: async (ctx) => {
        if (ctx.state === undefined)
          return ctx.checkpoint({ childId: ctx.spawnAgent(local(slow)).sessionId });
        return ctx.waitForChild(ctx.child((ctx.state as { childId: string }).childId));
      },
    });
    const handle = await runtime.start(agent);
    const childId = `${handle.sessionId}-0`;
    await until(async () => (await handle.session()).status === "waiting", "it waits");
    await turns(20);
    const lines: string[] = [];
    for await (const line of runtime.export(handle.sessionId)) lines.push(line);
    await runtime.signal(childId, "word", "heard");
    expect(await handle.result()).toBe("heard");

    const elsewhere = open({ agents: [agent] });
    await elsewhere.runtime.import(bytesOf(lines));
    const moved = await elsewhere.runtime.resume(handle.sessionId);
    expect(await moved.settled()).toMatchObject({ status: "failed", error: { code: "child_failed" } });
  });
});

describe("a request to a parent that has ended", () => {
  const asking = defineAgent({
    name: "asking",
    run: async (ctx, when: string) => {
      await ctx.waitForSignal("ask");
      if (when === "told") ctx.signalParent("hello");
      const { code, message } = (await ctx
        .requestFromParent("lookUp", "k")
        .catch((error: unknown) => error)) as { code: string; message: string };
      return { code, message };
    },
  });
  const lookUp = (ready: Promise<void>): ReturnType<typeof defineTask> =>
    defineTask({ name: "look-up", run: async () => ready });
  const leaving = (run: (ctx: AgentContext) => Promise<unknown>, ready = Promise.resolve()): Agent =>
    defineAgent({
      name: "parent",
      agents: [asking],
      handlers: { lookUp: lookUp(ready) },
      run: async (ctx) => {
        ctx.spawnAgent(local(asking), "now", { onParentEnd: "leave" });
        return run(ctx);
      },
    });
  const refused = (parentId: string): unknown => ({
    code: "session_ended",
    message: `ctx.requestFromParent("lookUp"): the parent, session ${parentId}, has ended`,
  });

  test("a request rejects when the parent had ended before", async () => {
    const { runtime } = open();
    const handle = await runtime.start(leaving(async () => "done"));
    expect(await handle.result()).toBe("done");
    const child = runtime.handle(`${handle.sessionId}-0`);
    await child.signal("ask");
    expect(await child.result()).toEqual(refused(handle.sessionId));
  });

  test("a request rejects when the parent ends before it has answered", async () => {
    const { runtime } = open();
    const never = gate();
    const agent = leaving(async (ctx) => {
      await ctx.waitForSignal("end");
      throw new Error("it ends");
    }, never.opened);
    const handle = await runtime.start(agent);
    const child = runtime.handle(`${handle.sessionId}-0`);
    await until(async () => (await child.session().catch(() => undefined))?.status === "waiting", "it waits");
    await child.signal("ask");
    await until(
      async () => (await child.session()).waits.some((wait) => "name" in wait && wait.name === "reply:1"),
      "it asked",
    );
    await handle.signal("end");
    expect(await child.result()).toEqual(refused(handle.sessionId));
    never.open();
  });

  test.each([
    ["answers it again", "stays"],
    ["rejects it again, when it has ended", "ends"],
  ])("%s to a child that starts over and asks again", async (_how, then) => {
    const storage = new MemoryStorage();
    const answers: string[] = [];
    const child = defineAgent({
      name: "child",
      run: async (ctx) => {
        await ctx.waitForSignal("ask");
        const answer = await ctx
          .requestFromParent("lookUp")
          .then(String, (error: { code: string }) => error.code);
        answers.push(answer);
        return [answer, await ctx.waitForSignal("go")];
      },
    });
    const agent = defineAgent({
      name: "parent",
      agents: [child],
      handlers: { lookUp: defineTask({ name: "look-up", run: async () => "found" }) },
      run: async (ctx) => {
        ctx.spawnAgent(local(child), undefined, { persistence: "minimal", onParentEnd: "leave" });
        if (then === "stays") await ctx.waitForSignal("never");
      },
    });
    let { runtime } = open({ storage });
    const { sessionId } = await runtime.start(agent);
    const childId = `${sessionId}-0`;
    await until(async () => (await storage.reader.session(childId)) !== undefined, "it is there");
    for (let life = 0; life < 3; life++) {
      if (life > 0) await runtime.resume(childId);
      await runtime.signal(childId, "ask");
      await until(() => answers.length > life, `life ${life} is answered`);
      await turns(20);
      await runtime.close();
      ({ runtime } = open({ storage, agents: [agent, child] }));
    }
    await runtime.signal(childId, "ask");
    await runtime.signal(childId, "go", 1);
    const answer = then === "stays" ? "found" : "session_ended";
    expect(await runtime.handle(childId).result()).toEqual([answer, 1]);
  });

  test("a request rejects when the parent ended while the child was not blocked on it", async () => {
    const { runtime, storage } = open({ owner: "first", adopt: false });
    const never = gate();
    const agent = leaving(async (ctx) => {
      await ctx.waitForSignal("end");
      throw new Error("it ends");
    }, never.opened);
    const handle = await runtime.start(agent);
    const child = runtime.handle(`${handle.sessionId}-0`);
    await until(async () => (await child.session().catch(() => undefined))?.status === "waiting", "it waits");
    await child.signal("ask");
    await until(
      async () => (await child.session()).waits.some((wait) => "name" in wait && wait.name === "reply:1"),
      "it asked",
    );
    vanishRuntime(runtime);
    // The session was paused for a fault and resumed: its row has no waits until a process runs it.
    const now = Date.now();
    const { sessionId } = child;
    const { nextSeq } = await child.session();
    const own = await storage.claim({ sessionId, owner: "first", now, leaseMs: 9 });
    const ofChild = {
      type: "commit_batch",
      sessionId,
      token: own.status === "claimed" ? own.token : 0,
    } as const;
    const nothing = { firstSeq: nextSeq, records: [], entries: [], consumed: [] };
    const faulted = { status: "paused", pauseReason: "agent_fault", waits: [] } as const;
    await storage.commit([{ ...ofChild, ...nothing, session: faulted }], now);
    await storage.commit([{ type: "resume_session", sessionId }], now);
    // Its end by a cancel would reach the child: it ends as one whose agent threw.
    const claim = await storage.claim({ sessionId: handle.sessionId, owner: "first", now, leaseMs: 9 });
    const row = await storage.reader.session(handle.sessionId);
    await storage.commit(
      [
        {
          type: "commit_batch",
          sessionId: handle.sessionId,
          token: claim.status === "claimed" ? claim.token : 0,
          firstSeq: row?.nextSeq ?? 0,
          records: [],
          entries: [],
          consumed: [],
          session: { status: "failed", waits: [] },
        },
      ],
      now,
    );
    const second = open({ storage, owner: "first", agents: [agent] });
    expect(await (await second.runtime.resume(sessionId)).result()).toEqual(refused(handle.sessionId));
    never.open();
  });
});

test("a parent that is imported without its child gets the child's end as a failure, and so does a child its request", async () => {
  const { runtime, storage } = open();
  const asking = defineAgent({
    name: "asking",
    run: async (ctx) => {
      ctx.signalParent("ready");
      await ctx.waitForSignal("word");
      return ctx.requestFromParent("lookUp").catch((error: { code: string }) => error.code);
    },
  });
  const agent = defineAgent({
    name: "parent",
    agents: [asking],
    run: async (ctx) => {
      const child = ctx.spawnAgent(local(asking));
      await ctx.waitForChildEvent(child);
      await ctx.waitForSignal("go");
      return ctx.waitForChild(child).catch((error: { cause: { code: string } }) => error.cause.code);
    },
  });
  await runtime.start(agent, undefined, { sessionId: "s" });
  const waitsFor = (sessionId: string, name: string) =>
    until(async () => {
      const waits = (await storage.reader.session(sessionId))?.waits ?? [];
      return waits.some((wait) => "name" in wait && wait.name === name);
    }, `${sessionId} waits for ${name}`);
  await waitsFor("s", "go");
  await waitsFor("s-0", "word");
  const files = [await linesOf(runtime.export("s")), await linesOf(runtime.export("s-0"))];
  // The child has another id in one place. In the other place it has its own id, and is no child either.
  for (const sessionId of ["other", "s-0"]) {
    const there = open({ agents: [agent, asking] });
    await there.runtime.import(bytesOf(files[0]!));
    await there.runtime.import(bytesOf(files[1]!), { sessionId });
    await there.runtime.signal("s", "go");
    await there.runtime.signal(sessionId, "word");
    expect(await (await there.runtime.resume("s")).result()).toBe("session_not_found");
    expect(await (await there.runtime.resume(sessionId)).result()).toBe("session_ended");
  }
});

async function linesOf(file: AsyncIterable<string>): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of file) lines.push(line);
  return lines;
}

async function* bytesOf(lines: readonly string[]): AsyncIterable<Uint8Array> {
  for (const line of lines) yield new TextEncoder().encode(line);
}

test("the time-out of a wait for a child or a parent names that session", async () => {
  const messageOf = async (wait: PromiseLike<unknown>): Promise<unknown> => {
    try {
      return await wait;
    } catch (error) {
      return (error as Error).message;
    }
  };
  const asking = defineAgent({
    name: "asking",
    run: async (ctx) => messageOf(ctx.requestFromParent("advise", 1, { timeoutMs: 1_000 })),
  });
  const advised = gate();
  const advise = defineTask({ name: "advise", run: async () => advised.opened });
  const clock = new TestClock();
  const { runtime } = open({ clock });
  const deafOne = defineAgent({ name: "deaf", run: async (ctx) => ctx.waitForSignal("word") });
  const waiting = defineAgent({
    name: "parent",
    agents: [asking, deafOne],
    handlers: { advise },
    run: async (ctx) => {
      const [deaf, child] = [ctx.spawnAgent(local(deafOne)), ctx.spawnAgent(local(asking))];
      const answers = [
        await messageOf(ctx.waitForChild(deaf, { timeoutMs: 1_000 })),
        await messageOf(ctx.waitForChildEvent(deaf, { timeoutMs: 1_000 })),
        await messageOf(ctx.waitForChild(child)),
      ];
      ctx.cancelChild(deaf);
      return answers;
    },
  });
  const session = await runtime.start(waiting, undefined, { sessionId: "s" });
  for (let i = 0; i < 3; i++) {
    await turns(20);
    await clock.advance(1_000);
  }
  advised.open();
  expect(await session.result()).toEqual([
    "the wait for the end of child s-0 timed out",
    "the wait for word of child s-0 timed out",
    'the wait for the answer to request "advise" timed out',
  ]);
});
