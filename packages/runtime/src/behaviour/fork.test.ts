// Forks with a real runtime: recorded work is not repeated, and the fork continues independently of its
// origin.

import type { JournalRecord } from "@holdfast/core";
import {
  countingRandom,
  gate,
  journalOf,
  mortal,
  releaseClaim,
  TestClock,
  turns,
  until,
} from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTask, local, type Agent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, vanishRuntime, type Runtime, type RuntimeOptions } from "../runtime.ts";
import type { SessionHandle } from "../api/runtime-api.ts";

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

function open(options: Partial<RuntimeOptions> = {}) {
  const storage = new MemoryStorage();
  const clock = new TestClock();
  const random = countingRandom();
  const runtime = createRuntime({ storage, clock, random, ...options, development: false });
  opened.push(runtime);
  return { runtime, storage, clock };
}

/** A task that records the steps it ran. */
function steps() {
  const ran: string[] = [];
  const step = defineTask({
    name: "step",
    run: (value: string) => {
      ran.push(value);
      return `${value}!`;
    },
  });
  return { step, ran };
}

async function positionOf(
  storage: MemoryStorage,
  sessionId: string,
  isIt: (record: JournalRecord) => boolean,
): Promise<number> {
  return (await journalOf(storage, sessionId)).find(isIt)!.seq;
}

describe("after a failure", () => {
  test("a fork before a failure repeats the failed task and nothing else", async () => {
    const { runtime, clock } = open();
    const ran: string[] = [];
    let broken = true;
    const step = defineTask({
      name: "step",
      retry: { maxAttempts: 2, initialDelayMs: 1 },
      run: (value: string) => {
        ran.push(value);
        if (value === "b" && broken) throw new Error("out of order");
        return value;
      },
    });
    const agent = defineAgent({
      name: "fragile",
      tasks: [step],
      run: async (ctx) => (await ctx.scheduleTask(step, "a")) + (await ctx.scheduleTask(step, "b")),
    });
    const handle = await runtime.start(agent);
    await clock.advance(1_000);
    await expect(handle.result()).rejects.toThrow("out of order");
    broken = false;
    const fork = await runtime.fork(handle.sessionId);
    expect(await fork.result()).toBe("ab");
    expect(ran).toEqual(["a", "b", "b", "b"]);
    // The origin is unchanged, and may be forked again.
    expect(await handle.session()).toMatchObject({ status: "failed" });
    expect(await (await runtime.fork(handle.sessionId)).result()).toBe("ab");
  });

  test("the attempts of a fork's tasks are counted from 1 again", async () => {
    const { runtime, clock } = open();
    let failures = 0;
    const flaky = defineTask({
      name: "flaky",
      retry: { maxAttempts: 2, initialDelayMs: 1 },
      run: () => {
        if (failures++ < 3) throw new Error("not yet");
        return failures;
      },
    });
    const agent = defineAgent({ name: "a", tasks: [flaky], run: (ctx) => ctx.scheduleTask(flaky, {}) });
    const handle = await runtime.start(agent);
    await clock.advance(1_000);
    await expect(handle.result()).rejects.toThrow("not yet");
    const fork = await runtime.fork(handle.sessionId);
    await clock.advance(1_000);
    expect(await fork.result()).toBe(4);
  });
});

describe("at a checkpoint", () => {
  /** Three turns, each with a random number, an entry and its input. */
  function diary(made = steps()) {
    const agent = defineAgent<{ topic: string }, string[], string[]>({
      name: "diary",
      tasks: [made.step],
      initial: () => [],
      turn: async (ctx, seen) => {
        const said = await ctx.scheduleTask(made.step, `${ctx.input.topic} ${seen.length}`);
        ctx.appendEntry({ role: "user", content: said });
        const next = [...seen, `${said} ${ctx.random().toFixed(6)}`];
        return next.length === 3 ? { done: next } : { state: next };
      },
    });
    return { ...made, agent };
  }

  test("a fork at a checkpoint continues from its state with another input and another seed", async () => {
    const { runtime, storage } = open();
    const { agent, ran } = diary();
    const handle = await runtime.start(agent, { topic: "old" });
    const before = await handle.result();
    const at = await positionOf(storage, handle.sessionId, ({ type }) => type === "checkpoint");

    const fork = await runtime.fork(handle.sessionId, { at, input: { topic: "new" } });
    const after = (await fork.result()) as string[];

    expect(after.map((text) => text.split("!")[0])).toEqual(["old 0", "new 1", "new 2"]);
    expect(after[0]).toBe(before[0]);
    expect(ran).toEqual(["old 0", "old 1", "old 2", "new 1", "new 2"]);
    const same = (await (await runtime.fork(handle.sessionId, { at })).result()) as string[];
    expect(same.map((text) => text.split("!")[0])).toEqual(["old 0", "old 1", "old 2"]);
    expect(same[1]).not.toBe(before[1]);
    expect(same[2]).not.toBe(before[2]);
    // No record was replayed, so the agent is not notified of the fork.
    expect((await journalOf(storage, fork.sessionId)).map(({ type }) => type)).not.toContain("forked");
    const entries = await storage.reader.entries(fork.sessionId, 0, 10);
    expect(entries.map(({ content }) => content)).toEqual(['"old 0!"', '"new 1!"', '"new 2!"']);
  });

  test("a fork without a point takes the last checkpoint, and an invalid input is refused", async () => {
    const { runtime, storage } = open();
    const { agent, ran } = diary();
    const handle = await runtime.start(agent, { topic: "old" });
    await handle.result();
    await (await runtime.fork(handle.sessionId)).result();
    expect(ran).toEqual(["old 0", "old 1", "old 2", "old 2"]);
    const count = (await storage.reader.sessions({ limit: 10 })).length;
    await expect(runtime.fork(handle.sessionId, { at: 2, input: {} })).rejects.toMatchObject({
      code: "usage",
    });
    expect(await storage.reader.sessions({ limit: 10 })).toHaveLength(count);
  });

  test("entry ids of the origin still work in forks and in forks of forks", async () => {
    const { runtime } = open();
    const agent = defineAgent<unknown, string | null, string | undefined>({
      name: "tree",
      initial: () => undefined,
      turn: async (ctx, root) => {
        if (root === undefined) return { state: ctx.appendEntry({ role: "user", content: "root" }) };
        await ctx.waitForSignal("go");
        ctx.appendEntry({ role: "user", content: "leaf", parentId: root });
        return { done: ctx.conversation().leaf === undefined ? null : root };
      },
    });
    const handle = await runtime.start(agent);
    await until(async () => (await handle.session()).status === "waiting", "it waits");
    const fork = await runtime.fork(handle.sessionId);
    const grandchild = await runtime.fork(fork.sessionId);
    for (const one of [fork, grandchild]) {
      await one.signal("go");
      expect(await one.result()).toMatch(new RegExp(`^${handle.sessionId}-`));
    }
  });
});

describe("in the middle", () => {
  /** Draws, does a slow task, draws again. */
  function gambler(ready: { opened: Promise<void> }) {
    const ran: string[] = [];
    const agent = defineAgent({
      name: "gambler",
      run: async (ctx) => {
        const first = ctx.random();
        await ctx.run("quick", () => void ran.push("quick"));
        const slow = await ctx
          .run("slow", async () => {
            ran.push("slow");
            await ready.opened;
            return "slow";
          })
          .catch((error: Error) => error.message);
        return { first, slow, second: ctx.random() };
      },
    });
    return { agent, ran };
  }

  test("a fork has the old seed before its point and a new one after it; an open task is repeated or cancelled", async () => {
    const { runtime, storage } = open();
    const ready = gate();
    const { agent, ran } = gambler(ready);
    const handle = await runtime.start(agent);
    await until(() => ran.length === 2, "the slow task runs");
    const again = await runtime.fork(handle.sessionId);
    const without = await runtime.fork(handle.sessionId, { tasks: "cancel" });
    const cancelled = (await without.result()) as { first: number; slow: string; second: number };
    await until(() => ran.length === 3, "the slow task runs again");
    ready.open();
    const origin = await handle.result();
    const rerun = (await again.result()) as typeof origin;
    expect(ran).toEqual(["quick", "slow", "slow"]);
    expect(cancelled.slow).toBe('task "slow" was cancelled: the session was forked');
    expect(rerun.slow).toBe("slow");
    expect([rerun.first, cancelled.first]).toEqual([origin.first, origin.first]);
    expect(new Set([origin.second, rerun.second, cancelled.second]).size).toBe(3);
    expect((await journalOf(storage, again.sessionId)).filter(({ type }) => type === "forked")).toHaveLength(
      1,
    );
  });

  // Recorded ids are those of the origin: with other ids, agents that put them into inputs would diverge.
  test("a fork uses its origin's id before its point, for entries, children and tasks too", async () => {
    const { runtime } = open();
    const failing = defineTask({
      name: "fail",
      retry: { maxAttempts: 1 },
      run: (ids: string[]) => Promise.reject(new Error(ids.join())),
    });
    const mate = defineAgent({ name: "mate", run: async (ctx, word: string) => ctx.waitForSignal(word) });
    const agent = defineAgent({
      name: "knows-its-id",
      tasks: [failing],
      agents: [mate],
      run: async (ctx) => {
        const names: string[] = [];
        for (let round = 0; round < 3; round++) {
          const entry = ctx.appendEntry({ role: "user", content: ctx.sessionId });
          const child = ctx.spawnAgent(local(mate), entry).sessionId;
          const failed = ctx.scheduleTask(failing, [ctx.sessionId, entry, child]);
          const { taskId } = (await failed.catch((error: unknown) => error)) as { taskId: string };
          ctx.appendEntry({ role: "user", content: taskId });
          await ctx.waitForSignal("go");
          const parts = [entry, child, taskId].map((id) => id.replace(/-\d+$/, ""));
          names.push([...new Set(parts)].join(" and "));
        }
        return names;
      },
    });
    const waits = (handle: SessionHandle) =>
      until(async () => (await handle.session()).status === "waiting", `${handle.sessionId} waits`);
    const origin = await runtime.start(agent, undefined, { sessionId: "origin" });
    await waits(origin);
    const fork = await runtime.fork("origin", { sessionId: "fork" });
    await waits(fork);
    await fork.signal("go");
    await until(async () => (await fork.session()).children === 1, "it has gone on to the second round");
    await waits(fork);
    const grandchild = await runtime.fork("fork", { sessionId: "grandchild" });
    await waits(grandchild);
    for (const one of [origin, fork, grandchild]) for (const n of [1, 2, 3]) await one.signal("go", n);
    expect(await origin.result()).toEqual(["origin", "origin", "origin"]);
    expect(await fork.result()).toEqual(["origin", "fork", "fork"]);
    expect(await grandchild.result()).toEqual(["origin", "fork", "grandchild"]);
  });

  test("the seed of a fork stays another one after its own checkpoints", async () => {
    const { runtime } = open();
    const agent = defineAgent({
      name: "drawing",
      run: async (ctx) => {
        if (ctx.state !== undefined) return ctx.random();
        await ctx.waitForSignal("go");
        return ctx.checkpoint("second");
      },
    });
    const handle = await runtime.start(agent);
    await until(async () => (await handle.session()).status === "waiting", "it waits");
    const fork = await runtime.fork(handle.sessionId);
    await handle.signal("go");
    await fork.signal("go");
    expect(await fork.result()).not.toBe(await handle.result());
  });

  test("a signal to the origin does not reach the fork", async () => {
    const { runtime, storage } = open();
    const agent = defineAgent({
      name: "two-signals",
      run: async (ctx) => [await ctx.waitForSignal("a"), await ctx.waitForSignal("b")],
    });
    const handle = await runtime.start(agent);
    await handle.signal("b", "unread");
    await handle.signal("a", "read");
    await handle.result();
    const at = await positionOf(storage, handle.sessionId, ({ type }) => type === "signal_received");
    const fork = await runtime.fork(handle.sessionId, { at: at + 2 });
    await until(async () => (await fork.session()).status === "waiting", "it waits");
    expect(await storage.reader.pendingSignals(fork.sessionId)).toEqual([]);
    await fork.signal("b", "another");
    expect(await fork.result()).toEqual(["read", "another"]);
  });

  test.each([0, 1, 2, 3, 4])("a fork loses nothing by a crash after %d commits", async (commits) => {
    const storage = new MemoryStorage();
    const ran: string[] = [];
    const agent = defineAgent({
      name: "steady",
      run: async (ctx) => {
        const drawn: number[] = [];
        for (const name of ["a", "b", "c"]) {
          await ctx.run(name, () => void ran.push(name));
          drawn.push(ctx.random());
        }
        return drawn;
      },
    });
    const first = open({ storage, agents: [agent] });
    const started = await first.runtime.start(agent, undefined, { sessionId: "origin" });
    const origin = await started.result();
    const at = await positionOf(storage, "origin", ({ type }) => type === "task_completed");
    const fragile = mortal(storage);
    const dying = open({ storage: fragile.storage, agents: [agent], owner: "dying" });
    fragile.dieAfter(commits);
    void dying.runtime.fork("origin", { at, sessionId: "fork" });
    await turns(100); // The fork runs as far as it can.
    fragile.die();
    vanishRuntime(dying.runtime);
    await releaseClaim(storage, "fork");
    const found = await first.runtime.fork("origin", { at, sessionId: "fork" });
    expect(found.created).toBe(false);
    const drawn = (await found.result()) as number[];
    expect(drawn).toHaveLength(3);
    expect(drawn[0]).not.toBe(origin[0]); // It is drawn after the point.
    const journal = await journalOf(storage, "fork");
    expect(journal.filter(({ type }) => type === "forked")).toHaveLength(1);
    expect(journal.filter(({ type }) => type === "task_completed")).toHaveLength(3);
  });

  test("an agent that fails at the fork resumes with fixed code, and is notified of the fork once", async () => {
    const { runtime, storage } = open();
    let isWrong = true;
    const make = (): Agent =>
      defineAgent({
        name: "stumbling",
        run: async (ctx) => {
          const slow = ctx.run("slow", () => new Promise(() => {}));
          const quick = ctx.run("quick", () => "quick");
          try {
            await slow;
          } catch {
            if (isWrong) (undefined as unknown as { x: () => void }).x();
          }
          return quick;
        },
      });
    const handle = await runtime.start(make());
    await until(async () => (await handle.session()).nextSeq === 4, "the quick one is done");
    const fork = await runtime.fork(handle.sessionId, { tasks: "cancel" });
    expect(await fork.settled()).toMatchObject({ status: "paused" });
    isWrong = false;
    expect(await (await runtime.resume(fork.sessionId)).result()).toBe("quick");
    const types = (await journalOf(storage, fork.sessionId)).map(({ type }) => type);
    expect(types.filter((type) => type === "forked")).toHaveLength(1);
  });
});

describe("others", () => {
  const child = defineAgent({ name: "child", run: (ctx) => ctx.waitForSignal("word") });

  test("a wait of a fork for its origin's child rejects, and the child and its parent continue", async () => {
    const { runtime, storage } = open();
    const agent = defineAgent({
      name: "parent",
      agents: [child],
      run: async (ctx) => {
        const spawned = ctx.spawnAgent(local(child), undefined, { onParentEnd: "wait" });
        const end = ctx.waitForChild(spawned).catch((error: Error) => error.message);
        const first = await end;
        if (first === "hello") return first;
        try {
          await ctx.waitForChildEvent(spawned);
          return "no";
        } catch (error) {
          return [first, (error as Error).message];
        }
      },
    });
    const handle = await runtime.start(agent);
    await until(async () => (await handle.session()).status === "waiting", "it waits");
    const fork = await runtime.fork(handle.sessionId);
    const why = "was cancelled: the session was forked";
    expect(await fork.result()).toEqual([expect.stringContaining(why), `child ${handle.sessionId}-0 ${why}`]);
    expect(await storage.reader.sessions({ limit: 10, parent: fork.sessionId })).toEqual([]);
    await runtime.signal(`${handle.sessionId}-0`, "word", "hello");
    expect(await handle.result()).toBe("hello");
  });

  test("a fork of a child does not notify its parent", async () => {
    const { runtime, storage } = open();
    let broken = true;
    const reporting = defineAgent({
      name: "telling",
      run: async (ctx) => {
        ctx.reportProgress("half");
        const parent = ctx.parentId;
        await ctx.run(
          "work",
          () => {
            if (broken) throw new Error("broken");
          },
          { retry: { maxAttempts: 1 } },
        );
        ctx.signalParent("more");
        return parent;
      },
    });
    const agent = defineAgent({
      name: "parent",
      agents: [reporting],
      run: async (ctx) => {
        const received: string[] = [];
        const spawned = ctx.spawnAgent(local(reporting));
        for (;;) {
          const { type } = await ctx.waitForChildEvent(spawned);
          received.push(type);
          if (type === "failed" || type === "completed") break;
        }
        await ctx.waitForSignal("go");
        return received;
      },
    });
    const handle = await runtime.start(agent, undefined, { sessionId: "p" });
    await until(async () => (await handle.session()).waits[0]?.type === "signal", "it waits");
    await until(async () => (await storage.reader.session("p-0"))?.status === "failed", "the child fails");
    await turns(50);
    broken = false;
    const pending = await storage.reader.pendingSignals("p");
    const fork = await runtime.fork("p-0");
    expect(await fork.result()).toBe("p"); // The id of the parent, as recorded before the point.
    expect(await storage.reader.pendingSignals("p")).toEqual(pending);
    await handle.signal("go");
    expect(await handle.result()).toEqual(["progress", "failed"]);
  });

  test("a request that the origin answers for a child is not answered a second time by the fork", async () => {
    const { runtime, storage } = open();
    const ready = gate();
    let handled = 0;
    const answer = defineTask({
      name: "answer",
      run: async () => {
        handled++;
        await ready.opened;
        return "an answer";
      },
    });
    const asking = defineAgent({
      name: "asking",
      run: async (ctx) => [await ctx.requestFromParent("ask", {}), await ctx.waitForSignal("word")],
    });
    const agent = defineAgent({
      name: "parent",
      agents: [asking],
      handlers: { ask: answer },
      run: async (ctx) => {
        const spawned = ctx.spawnAgent(local(asking));
        return ctx.waitForChild(spawned).catch(() => "alone");
      },
    });
    const handle = await runtime.start(agent, undefined, { sessionId: "p" });
    await until(() => handled === 1, "the child is being answered");
    expect(await (await runtime.fork("p")).result()).toBe("alone");
    ready.open();
    await until(async () => (await storage.reader.session("p-0"))?.waits[0]?.type === "signal", "it waits");
    await turns(50);
    expect(handled).toBe(1);
    expect(await storage.reader.pendingSignals("p-0")).toEqual([]);
    await runtime.signal("p-0", "word", "go");
    expect(await handle.result()).toEqual(["an answer", "go"]);
  });

  test("a child that shares the conversation is the same child on replay", async () => {
    const { runtime } = open();
    const agent = defineAgent({
      name: "parent",
      agents: [child],
      run: async (ctx) => {
        ctx.appendEntry({ role: "user", content: "shared" });
        const spawned = ctx.spawnAgent(local(child), undefined, { shared: "conversation" });
        return ctx.waitForChild(spawned).catch(() => "alone");
      },
    });
    const handle = await runtime.start(agent);
    await until(async () => (await handle.session()).status === "waiting", "it waits");
    const fork = await runtime.fork(handle.sessionId);
    expect(await fork.result()).toBe("alone");
    expect(await (await runtime.fork(fork.sessionId)).result()).toBe("alone");
  });

  test("a fork at a checkpoint does not wait for children that its origin's end waits for", async () => {
    const { runtime } = open();
    const agent = defineAgent<unknown, string, string>({
      name: "parent",
      agents: [child],
      run: async (ctx) => {
        if (ctx.state !== undefined) return "done";
        ctx.spawnAgent(local(child), undefined, { onParentEnd: "wait" });
        return ctx.checkpoint("second");
      },
    });
    const handle = await runtime.start(agent);
    await until(async () => (await handle.session()).status === "waiting", "it waits for its child");
    expect(await (await runtime.fork(handle.sessionId)).result()).toBe("done");
  });

  test("a task whose outcome is stored is not repeated by a fork", async () => {
    const { runtime, storage } = open();
    let isWrong = true;
    let ran = 0;
    const agent = defineAgent({
      name: "stumbling",
      run: async (ctx) => {
        const value = await ctx.run("work", () => ++ran);
        if (isWrong) (undefined as unknown as { x: () => void }).x();
        return value;
      },
    });
    const handle = await runtime.start(agent);
    await handle.settled();
    expect((await journalOf(storage, handle.sessionId)).at(-1)?.type).toBe("outcome_kept");
    isWrong = false;
    expect(await (await runtime.fork(handle.sessionId)).result()).toBe(1);
    expect(ran).toBe(1);
  });

  test("a fork starts with the full limits of its budget", async () => {
    const { runtime } = open();
    const call = defineTask({
      name: "call",
      cost: () => ({ maxTokens: 100 }),
      run: (_: unknown, task) => {
        task.reportUsage({ model: "m", inputTokens: 100, outputTokens: 0 });
        return "ok";
      },
    });
    const agent = defineAgent({
      name: "spender",
      tasks: [call],
      run: async (ctx) => {
        for (let i = 0; i < 3; i++) await ctx.scheduleTask(call, i);
        return "done";
      },
    });
    const handle = await runtime.start(agent, undefined, { budget: { maxTokens: 200 } });
    expect(await handle.settled()).toMatchObject({ status: "paused", fault: { code: "budget_exceeded" } });
    const fork = await runtime.fork(handle.sessionId);
    expect(await fork.result()).toBe("done");
    expect((await fork.session()).account).toMatchObject({
      limits: { maxTokens: 200 },
      spent: { tokens: 100 },
    });
  });
});

describe("an id of one's own", () => {
  test("an id of one's own finds the same fork, and refuses another one", async () => {
    const { runtime } = open();
    const agent = defineAgent({ name: "a", run: (ctx) => ctx.waitForSignal("go") });
    const origin = await runtime.start(agent, undefined, { sessionId: "o" });
    await until(async () => (await origin.session()).status === "waiting", "it waits");
    expect((await runtime.fork("o", { sessionId: "f" })).created).toBe(true);
    expect((await runtime.fork("o", { sessionId: "f" })).created).toBe(false);
    await expect(runtime.fork("o", { sessionId: "f", at: 0 })).rejects.toMatchObject({
      code: "session_exists",
    });
    await expect(runtime.fork("o", { sessionId: "o" })).rejects.toMatchObject({ code: "session_exists" });
    await expect(runtime.fork("o", { sessionId: "../x" })).rejects.toMatchObject({ code: "usage" });
    await expect(runtime.fork("nobody")).rejects.toMatchObject({ code: "session_not_found" });
    await expect(runtime.fork("o", { at: 77 })).rejects.toMatchObject({ code: "usage" });
  });

  test("a fork of an unknown agent is stored, and resumes where the agent is known", async () => {
    const { runtime, storage } = open();
    const agent = defineAgent({ name: "a", run: (ctx) => ctx.run("work", () => 7) });
    const origin = await runtime.start(agent);
    await origin.result();
    const other = open({ storage, random: countingRandom(77) });
    const fork = await other.runtime.fork(origin.sessionId, { at: 0 });
    expect(await fork.session()).toMatchObject({ status: "submitted" });
    expect(await (await runtime.resume(fork.sessionId)).result()).toBe(7);
  });
});
