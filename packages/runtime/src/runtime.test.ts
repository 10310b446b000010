// A process that runs sessions: it keeps some in memory, releases others, and misses no arrival (S2, S3).

import {
  BEHAVIOUR_FLAGS,
  JOURNAL_FORMAT,
  type AgentStorage,
  type Arrival,
  type Arrivals,
} from "@holdfast/core";
import {
  countingRandom,
  gate,
  journalOf,
  mortal,
  readerWith,
  storageWith,
  TestClock,
  turns,
  until,
} from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { defineAgent, type Agent } from "./agents/define.ts";
import { vanishRuntime } from "./internal.ts";
import { MemoryStorage } from "./memory/memory-storage.ts";
import { createRuntime, type Runtime, type RuntimeOptions } from "./runtime.ts";

const opened: Runtime[] = [];
const clocks = new Set<TestClock>();
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
  for (const clock of clocks) expect(clock.armed, "timers left armed").toBe(0);
  clocks.clear();
});

describe("warm and cold", () => {
  test("a session that only waits is released after its time, and a signal loads it again", async () => {
    const { runtime, clock } = open({ warmMs: 10_000 });
    let lives = 0;
    const handle = await runtime.start(
      agentOf(async (ctx) => {
        lives++;
        const first = await ctx.waitForSignal("go");
        return [first, await ctx.run("t", () => "done")];
      }),
    );
    await clock.advance(9_999);
    expect(runtime.live).toBe(1);
    await clock.advance(1);
    expect(runtime.live).toBe(0);
    const result = handle.result();
    await handle.signal("go", 7);
    expect(await result).toEqual([7, "done"]);
    expect(lives).toBe(2); // Replayed once, and not for every signal.
  });

  test("a timer loads a released session once, at its time and not before", async () => {
    const { runtime, clock, storage } = open({ warmMs: 1_000 });
    const woke: number[] = [];
    const agent = agentOf(async (ctx) => {
      const ms = ctx.input as number;
      await ctx.sleep(ms);
      await ctx.run("woke", () => void woke.push(ms));
    });
    const handles = await Promise.all([50_000, 70_000, 60_000].map((ms) => runtime.start(agent, ms)));
    await clock.advance(49_999);
    expect(runtime.live).toBe(0);
    expect(woke).toEqual([]);
    await clock.advance(1);
    expect(woke).toEqual([50_000]);
    await clock.advance(60_000);
    expect(woke).toEqual([50_000, 60_000, 70_000]);
    for (const { sessionId } of handles) {
      expect((await journalOf(storage, sessionId)).filter(({ type }) => type === "timer_fired")).toHaveLength(
        1,
      );
    }
  });

  test("a wait's time-out loads a released session, and does not lose an earlier signal", async () => {
    const { runtime, clock } = open({ warmMs: 1_000 });
    const agent = agentOf((ctx) =>
      ctx.waitForSignal("go", { timeoutMs: 60_000 }).catch((error: { code: string }) => error.code),
    );
    const [late, early] = [await runtime.start(agent), await runtime.start(agent)];
    await clock.advance(30_000);
    expect(runtime.live).toBe(0);
    await early.signal("go", "in time");
    expect(await early.result()).toBe("in time");
    const result = late.result();
    await clock.advance(30_000);
    expect(await result).toBe("wait_timed_out");
  });

  test("a signal without a wait does not load a released session, and is there later", async () => {
    const { runtime, clock } = open({ warmMs: 1_000 });
    const handle = await runtime.start(
      agentOf(async (ctx) => [await ctx.waitForSignal("go"), ctx.takeSignal("other")]),
    );
    await clock.advance(5_000);
    await handle.signal("other", 1);
    await turns(20);
    expect(runtime.live).toBe(0);
    await handle.signal("go", 2);
    expect(await handle.result()).toEqual([2, 1]);
  });

  test("a session with a running task is not released", async () => {
    const { runtime, clock } = open({ warmMs: 1_000 });
    const task = gate();
    const handle = await runtime.start(
      agentOf(async (ctx) => {
        const running = ctx.run("t", () => task.opened);
        await ctx.waitForSignal("go");
        await running;
        return "fine";
      }),
    );
    await clock.advance(60_000);
    expect(runtime.live).toBe(1);
    task.open();
    await handle.signal("go");
    expect(await handle.result()).toBe("fine");
  });

  test(
    "a thousand waiting sessions all leave memory, and each is loaded again for its own signal",
    ofCampaign,
    async () => {
      const { runtime, clock } = open({ warmMs: 1_000 });
      const agent = agentOf(async (ctx) => ctx.waitForSignal("go"));
      const handles = await Promise.all(Array.from({ length: 1_000 }, () => runtime.start(agent)));
      await clock.advance(2_000);
      expect(runtime.live).toBe(0);
      const results = Promise.all(handles.map((handle) => handle.result()));
      await Promise.all(handles.map((handle, i) => handle.signal("go", i)));
      expect(await results).toEqual(handles.map((_, i) => i));
    },
  );

  test("a signal is received wherever it falls around the release of its session", async () => {
    for (let delay = 0; delay < 30; delay++) {
      const { runtime, clock } = open({ warmMs: 100 });
      const handle = await runtime.start(agentOf(async (ctx) => ctx.waitForSignal("go")));
      await turns(10);
      const cooling = clock.advance(100);
      await turns(delay);
      await handle.signal("go", delay);
      await cooling;
      await turns(30);
      expect((await handle.session()).status, `after ${delay} turns`).toBe("completed");
    }
  });
});

describe("nothing that arrives is missed", () => {
  test.each([
    ["that the agent goes on with", "a", ["a", "b"]],
    ["that nobody waits for", "other", ["b"]],
  ])("a signal stored while an older read, of one %s, is under way", async (_name, firstSent, waits) => {
    const memory = new MemoryStorage();
    const held: { readonly resolve: () => void }[] = [];
    const storage = storageWith(memory, {
      async arrivals(sessionId, after): Promise<Arrivals> {
        const read = await memory.arrivals(sessionId, after);
        await new Promise<void>((resolve) => held.push({ resolve }));
        return read;
      },
    });
    const { runtime } = open({ storage });
    const handle = await runtime.start(
      agentOf(async (ctx) => {
        for (const name of waits) await ctx.waitForSignal(name);
        return "all";
      }),
    );
    await turns(10);
    await handle.signal(firstSent, 1);
    await until(() => held.length === 1, "the first read");
    await handle.signal("b", 2);
    await turns(10);
    held[0]!.resolve();
    await until(() => held.length === 2, "a second read");
    held[1]!.resolve();
    expect(await handle.result()).toBe("all");
  });

  test("a signal is received wherever it falls around start, replay and commits", async () => {
    for (let delay = 0; delay < 40; delay++) {
      const { runtime } = open();
      const handle = await runtime.start(
        agentOf(async (ctx) => {
          for (let i = 0; i < 3; i++) await ctx.run(`t${i}`, () => i);
          return ctx.waitForSignal("go");
        }),
      );
      await turns(delay);
      await handle.signal("go", delay);
      expect(await handle.result()).toBe(delay);
    }
  });

  test("a timer and a signal during the flight of a batch are delivered after it", async () => {
    const received: string[] = [];
    const memory = new MemoryStorage();
    const slow = gate();
    let isHeld = false;
    const storage = storageWith(memory, {
      async commit(group, now) {
        const results = await memory.commit(group, now);
        if (group.some((change) => change.type === "commit_batch" && change.entries.length > 0)) {
          isHeld = true;
          await slow.opened;
        }
        return results;
      },
    });
    const { runtime, clock } = open({ storage });
    const handle = await runtime.start(
      agentOf(async (ctx) => {
        const timer = ctx.sleep(1_000).then(() => received.push("timer"));
        const signal = ctx.waitForSignal("go").then(() => received.push("signal"));
        await ctx.run("first", () => null);
        ctx.appendEntry({ role: "user", content: "a slow commit" });
        await Promise.all([timer, signal]);
        return received;
      }),
    );
    await until(() => isHeld, "the slow commit");
    // From another process, so that it does not queue behind the slow one.
    await memory.commit(
      [{ type: "send_signal", sessionId: handle.sessionId, signalId: "sig_x", name: "go", payload: "1" }],
      clock.now(),
    );
    await clock.advance(5_000);
    expect(received).toEqual([]);
    slow.open();
    expect(await handle.result()).toEqual(["signal", "timer"]);
  });

  test("the clock may jump: a timer fires late rather than early, and once", async () => {
    const { runtime, clock, storage } = open();
    const handle = await runtime.start(agentOf(async (ctx) => ctx.sleep(10_000).then(() => "slept")));
    await turns(10);
    clock.jump(-3_600_000);
    await clock.advance(10_000);
    expect((await handle.session()).status).toBe("waiting");
    await clock.advance(3_600_000);
    expect(await handle.result()).toBe("slept");
    expect(
      (await journalOf(storage, handle.sessionId)).filter(({ type }) => type === "timer_fired"),
    ).toHaveLength(1);
  });
});

describe("a clock that was set forward", () => {
  // The timer that was armed before would fire in an hour, but its time has come.
  test("a clock that was set forward wakes due sessions within ten seconds", async () => {
    const { runtime, clock } = open();
    const handle = await runtime.start(agentOf(async (ctx) => ctx.sleep(3_600_000).then(() => "slept")));
    await turns(10);
    clock.jump(3_600_000);
    const result = handle.result();
    await clock.advance(10_000);
    expect(await result).toBe("slept");
  });
});

describe("one session, once", () => {
  test("starting an id twice, or twenty times at once, makes one session that runs once", async () => {
    const { runtime } = open();
    let ran = 0;
    const agent = agentOf((ctx) => ctx.run("t", () => ++ran));
    const handles = await Promise.all(
      Array.from({ length: 20 }, () => runtime.start(agent, undefined, { sessionId: "mine" })),
    );
    expect(await Promise.all(handles.map((handle) => handle.result()))).toEqual(Array(20).fill(1));
    expect(handles.filter(({ created }) => created)).toHaveLength(1);
    expect(await (await runtime.start(agent, undefined, { sessionId: "mine" })).result()).toBe(1);
    expect(ran).toBe(1);
  });

  test("a repeated start after the death of its process resumes the session", async () => {
    const storage = new MemoryStorage();
    const ran: string[] = [];
    const agent = agentOf(async (ctx) => {
      await ctx.run("first", () => void ran.push("first"));
      await ctx.waitForSignal("go");
      return ctx.run("second", () => (ran.push("second"), "done"));
    });
    const first = open({ storage });
    await first.runtime.start(agent, undefined, { sessionId: "daily" });
    await turns(20);
    first.mortalStorage.die();
    vanishRuntime(first.runtime);
    const second = open({ storage });
    const handle = await second.runtime.start(agent, undefined, { sessionId: "daily" });
    expect(handle.created).toBe(false);
    await handle.signal("go");
    expect(await handle.result()).toBe("done");
    expect(ran).toEqual(["first", "second"]);
  });

  test("a session that is resumed many times at once is driven once", async () => {
    const storage = new MemoryStorage();
    let lives = 0;
    const agent = agentOf(async (ctx) => (lives++, ctx.waitForSignal("go")));
    const first = open({ storage });
    const { sessionId } = await first.runtime.start(agent);
    await turns(20);
    await first.runtime.close();
    const second = open({ storage, agents: [agent] });
    await Promise.all(Array.from({ length: 10 }, () => second.runtime.resume(sessionId)));
    await turns(20);
    expect(second.runtime.live).toBe(1);
    expect(lives).toBe(2);
  });

  test("a session that another process has claimed is refused with the name of that process", async () => {
    const storage = new MemoryStorage();
    const agent = agentOf(async (ctx) => ctx.waitForSignal("go"));
    const holder = open({ storage, owner: "the other one" });
    const { sessionId } = await holder.runtime.start(agent);
    await turns(10);
    const second = open({ storage, owner: "me", agents: [agent], adopt: false });
    await expect(second.runtime.resume(sessionId)).rejects.toMatchObject({
      code: "session_claimed",
      message: expect.stringContaining("the other one"),
    });
    await second.runtime.signal(sessionId, "go", 5);
    expect(await holder.runtime.handle(sessionId).result()).toBe(5);
  });

  test("a commit refused because of a cancel leads to one driver, also when something arrives in between", async () => {
    const memory = new MemoryStorage();
    let [lives, claims] = [0, 0];
    let [slow, isCancelled] = [false, false];
    let announce = (_arrival: Arrival): void => {};
    const { runtime } = open({
      storage: storageWith(memory, {
        /** The cancel is stored just before the agent's last batch. */
        async commit(changes, now) {
          const ends = changes.find((each) => each.type === "commit_batch" && each.session?.output);
          if (ends !== undefined && !isCancelled && "sessionId" in ends) {
            const { sessionId } = ends;
            [slow, isCancelled] = [true, true];
            await memory.commit(
              [{ type: "request_cancel", sessionId, mode: "graceful", graceMs: 60_000 }],
              now,
            );
          }
          return memory.commit(changes, now);
        },
        claim: (claim) => (claims++, memory.claim(claim)),
        subscribe: (listener) => memory.subscribe((announce = listener)),
        reader: readerWith(memory.reader, {
          session: async (sessionId) => {
            if (slow) {
              slow = false; // The next read is answered before this one.
              await turns(10);
            }
            return memory.reader.session(sessionId);
          },
        }),
      }),
    });
    const agent = agentOf(async (ctx) => {
      lives++;
      await ctx.run("t", () => 1);
      return ctx.isCancellationRequested() ? "tidied" : "whole";
    });
    const { sessionId, settled } = await runtime.start(agent);
    await until(() => isCancelled, "the cancel");
    await turns(3);
    announce({ sessionId, awaited: true });
    expect(await settled()).toMatchObject({ status: "cancelled", output: "tidied" });
    expect({ lives, claims }).toEqual({ lives: 2, claims: 0 }); // The session stays claimed all the time.
  });
});

test("a wait for a session that ends elsewhere just before it is claimed here gets its end", async () => {
  const memory = new MemoryStorage();
  let settled: Promise<unknown> | undefined;
  const storage = storageWith(memory, {
    async claim(claim) {
      const { sessionId } = claim;
      settled = runtime.handle(sessionId).settled(); // The session is about to run here.
      await turns(5);
      const { token } = (await memory.claim({ ...claim, owner: "elsewhere" })) as { readonly token: number };
      const nothing = { firstSeq: 0, records: [], entries: [], consumed: [] };
      const session = { status: "completed", output: "7" } as const;
      await memory.commit([{ type: "commit_batch", sessionId, token, ...nothing, session }], 1);
      return memory.claim(claim);
    },
  });
  const agent = agentOf(async (ctx) => ctx.waitForSignal("go"));
  const { runtime } = open({ storage, agents: [agent], adopt: false });
  const ref = { name: agent.name, version: agent.version };
  await memory.commit(
    [
      {
        type: "create_session",
        sessionId: "s",
        agent: ref,
        input: undefined,
        seed: 1,
        flags: BEHAVIOUR_FLAGS,
        format: JOURNAL_FORMAT,
      },
    ],
    0,
  );
  await runtime.resume("s");
  expect(await settled).toEqual({ status: "completed", output: 7 });
});

describe("closing", () => {
  test("closing leaves sessions as their last commit left them, and another process resumes them", async () => {
    const storage = new MemoryStorage();
    const ran: string[] = [];
    const agent = agentOf(async (ctx) => {
      await ctx.run("short", () => void ran.push("short"));
      await ctx.run("long", ({ signal, attempt }) => {
        ran.push(`long ${attempt}`);
        return attempt > 1
          ? 1
          : new Promise((_, reject) =>
              signal.addEventListener("abort", () => reject(signal.reason as Error)),
            );
      });
      return "done";
    });
    const first = open({ storage });
    const handle = await first.runtime.start(agent);
    await until(() => ran.length === 2, "the long task");
    const settled = handle.settled();
    await first.runtime.close();
    expect(await settled).toEqual({ status: "released", error: undefined });
    await expect(first.runtime.start(agent)).rejects.toMatchObject({ code: "usage" });
    const second = open({ storage, agents: [agent] });
    expect(await second.runtime.recover()).toEqual([handle.sessionId]);
    expect(await second.runtime.handle(handle.sessionId).result()).toBe("done");
    expect(ran).toEqual(["short", "long 1", "long 2"]);
  });

  test("recover resumes all sessions with something to do, and no others", async () => {
    const storage = new MemoryStorage();
    const clock = new TestClock();
    const agent = agentOf(async (ctx) => {
      const { kind } = ctx.input as { kind: string };
      if (kind === "task") return ctx.run("t", () => "task");
      if (kind === "sleep") return ctx.sleep(1_000).then(() => "slept");
      return ctx.waitForSignal("go");
    });
    const first = open({ storage, clock });
    const ids: Record<string, string> = {};
    for (const kind of ["sleep", "signal", "waiting"])
      ids[kind] = (await first.runtime.start(agent, { kind })).sessionId;
    await turns(20);
    await first.runtime.close();
    const outside = open({ storage, clock, adopt: false });
    await outside.runtime.signal(ids["signal"]!, "go", 1);
    await outside.runtime.close();
    await clock.advance(2_000);
    const second = open({ storage, clock, agents: [agent] });
    expect(new Set(await second.runtime.recover())).toEqual(new Set([ids["signal"], ids["sleep"]]));
    expect(await second.runtime.handle(ids["signal"]!).result()).toBe(1);
    expect(await second.runtime.handle(ids["sleep"]!).result()).toBe("slept");
    expect((await storage.reader.session(ids["waiting"]!))?.status).toBe("waiting");
  });
});

describe("divergence in a running process", () => {
  test("a divergence parks the session with both sides and the agent's line, and the old code resumes it", async () => {
    const storage = new MemoryStorage();
    const agent = (kind: string) =>
      agentOf(async (ctx) => {
        await ctx.run(kind, () => 1);
        await ctx.waitForSignal("go");
        return "done";
      });
    const first = open({ storage });
    const { sessionId } = await first.runtime.start(agent("old"));
    await turns(20);
    await first.runtime.close();
    const before = await journalOf(storage, sessionId);

    const changed = open({ storage, agents: [agent("new")] });
    const settled = (await changed.runtime.resume(sessionId)).settled();
    expect(await settled).toMatchObject({
      status: "paused",
      fault: {
        code: "nondeterminism",
        expected: expect.stringContaining('task "old"'),
        got: expect.stringContaining('task "new"'),
        at: expect.stringMatching(/runtime\.test\.ts:\d+:\d+$/),
      },
    });
    expect(await journalOf(storage, sessionId)).toEqual(before);
    expect(await storage.reader.session(sessionId)).toMatchObject({
      status: "paused",
      pauseReason: "nondeterminism",
    });
    expect(await changed.runtime.signal(sessionId, "go", 1)).toEqual({ status: "stored" });
    await turns(20);
    expect((await storage.reader.session(sessionId))?.status).toBe("paused"); // Only a person resumes it.
    await changed.runtime.close();

    const old = open({ storage, agents: [agent("old")] });
    expect(await (await old.runtime.resume(sessionId)).result()).toBe("done");
  });

  test("a divergence without a faulty command of the agent shows no line of the runtime", async () => {
    const storage = new MemoryStorage();
    const first = open({ storage });
    const { sessionId } = await first.runtime.start(
      agentOf(async (ctx) => Promise.all([ctx.run("a", () => 1), ctx.waitForSignal("go")])),
    );
    await turns(20);
    await first.runtime.close();
    const changed = open({ storage, agents: [agentOf((ctx) => ctx.run("a", () => 1))] });
    const settled = await (await changed.runtime.resume(sessionId)).settled();
    expect(settled).toMatchObject({ status: "paused", fault: { code: "nondeterminism" } });
    expect(settled).not.toHaveProperty("fault.at");
  });

  test("a session with accepted drift continues, also in the next process", async () => {
    const storage = new MemoryStorage();
    const agent = (input: number) =>
      agentOf(async (ctx) => {
        ctx.appendEntry({ role: "user", content: input });
        await ctx.waitForSignal("go");
        await ctx.waitForSignal("on");
        return input;
      });
    const first = open({ storage });
    const { sessionId } = await first.runtime.start(agent(1));
    await turns(20);
    await first.runtime.close();
    const drifting = open({ storage, agents: [agent(2)] });
    const handle = await drifting.runtime.resume(sessionId, { acceptDrift: true });
    await handle.signal("go");
    await turns(20);
    await drifting.runtime.close();
    const later = open({ storage, agents: [agent(2)] });
    const again = await later.runtime.resume(sessionId);
    await again.signal("on");
    expect(await again.result()).toBe(2);
  });
});

// K2a. The line comes from a stack trace, which costs time for every wait, so only development mode takes it.
test.each([
  [true, /it: the wait for signal "go", command 0, asked at \S+runtime\.test\.ts:\d+:\d+/],
  [false, /it: the wait for signal "go", command 0(?!, asked)/],
])("a second wait names the first, in development (%s) with its line", async (development, message) => {
  const { runtime } = open({ development });
  const twice = agentOf(async (ctx) => {
    void ctx.waitForSignal("go");
    await ctx.waitForSignal("go");
  });
  const settled = await (await runtime.start(twice)).settled();
  expect(settled).toMatchObject({ fault: { code: "usage", message: expect.stringMatching(message) } });
});

function open(options: Partial<RuntimeOptions> & { storage?: AgentStorage; clock?: TestClock } = {}) {
  const storage = options.storage ?? new MemoryStorage();
  const clock = options.clock ?? new TestClock();
  const mortalStorage = mortal(storage);
  const runtime = createRuntime({
    random: countingRandom(opened.length + 1),
    development: false,
    owner: "test",
    ...options,
    storage: mortalStorage.storage,
    clock,
  });
  opened.push(runtime);
  clocks.add(clock);
  return { runtime, clock, storage, mortalStorage };
}

type Run = (ctx: Parameters<Agent["main"]>[0]) => Promise<unknown>;

function agentOf(run: Run, name = "subject"): Agent {
  return defineAgent({ name, run });
}
