// Waiters: a waiter gets the end of its session, whichever process ends it, and wherever the session is by
// then.

import type { AgentStorage, HoldfastError } from "@holdfast/core";
import { gate, readerWith, storageWith, TestClock, turns, until } from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, local } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { moveSession } from "../requests/move-session.ts";
import { createRuntime, type Runtime } from "../runtime.ts";
import type { Settled } from "../session/session-outcome.ts";

const WARM_MS = 10;
const HARD_CANCEL = { type: "request_cancel", sessionId: "s", mode: "hard", graceMs: 0 } as const;
const waits = defineAgent({ name: "waits", run: async (ctx) => ctx.waitForSignal("go") });

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

interface Stand {
  readonly storage: AgentStorage;
  readonly clock: TestClock;
  readonly runtime: Runtime;
}

function open(storage: AgentStorage, clock = new TestClock()): Stand {
  const runtime = createRuntime({ storage, agents: [waits], clock, development: false, warmMs: WARM_MS });
  opened.push(runtime);
  return { storage, clock, runtime };
}

/** A session that waits for a signal, and is not in memory. */
async function parked(storage: AgentStorage = new MemoryStorage()): Promise<Stand> {
  const stand = open(storage);
  await stand.runtime.start(waits, undefined, { sessionId: "s" });
  await stand.clock.advance(WARM_MS);
  expect(stand.runtime.live).toBe(0);
  return stand;
}

/** The result of a wait during which this happens. */
async function notifiedOf(
  { runtime }: Pick<Stand, "runtime">,
  happens: () => Promise<unknown>,
): Promise<unknown> {
  const settled = runtime.handle("s").settled();
  await turns(5);
  await happens();
  return soon(settled);
}

function soon(settled: Promise<Settled>): Promise<unknown> {
  return Promise.race([settled, turns(100).then(() => "nothing")]);
}

function move({ storage }: Pick<Stand, "storage">): Promise<void> {
  return moveSession({ sessionId: "s", from: storage, to: new MemoryStorage(), toName: "there" });
}

const MOVED = { status: "released", error: { code: "session_moved", at: "there" } };

describe("a wait for a parked session", () => {
  test("a wait for a parked session ends when its process closes the runtime", async () => {
    const stand = await parked();
    expect(await notifiedOf(stand, () => stand.runtime.close())).toEqual({
      status: "released",
      error: undefined,
    });
  });

  test("a wait for a parked session gets its pause, as a later wait does", async () => {
    const stand = await parked();
    const outcome = await notifiedOf(stand, () => stand.runtime.pause("s"));
    expect(outcome).toMatchObject({ status: "paused", fault: { code: "session_paused" } });
    expect(await soon(stand.runtime.handle("s").settled())).toEqual(outcome);
  });

  test("a wait for a session names the one that a person paused, and how to resume it", async () => {
    const stand = await parked();
    const parkedOutcome = (await notifiedOf(stand, () => stand.runtime.pause("s"))) as {
      fault: HoldfastError;
    };
    const driven = open(new MemoryStorage());
    await driven.runtime.start(waits, undefined, { sessionId: "s" });
    const drivenOutcome = (await notifiedOf(driven, () => driven.runtime.pause("s"))) as {
      fault: HoldfastError;
    };
    for (const { fault } of [parkedOutcome, drivenOutcome])
      expect(fault).toMatchObject({
        code: "session_paused",
        message: "session s is paused (by_user)",
        fix: "`holdfast resume s` resumes it where it stopped",
      });
    await expect(stand.runtime.handle("s").result()).rejects.toEqual(parkedOutcome.fault);
  });

  test("a wait for a session names the one that a used-up budget has paused, and its payer", async () => {
    const stand = open(new MemoryStorage());
    const worker = defineAgent({ name: "worker", run: async (ctx) => ctx.run("work", () => 1) });
    const parent = defineAgent({
      name: "parent",
      agents: [worker],
      run: async (ctx) => {
        await ctx.run("first", () => 0);
        return ctx.waitForChild(ctx.spawnAgent(local(worker)));
      },
    });
    await stand.runtime.start(parent, undefined, { sessionId: "s", budget: { maxSteps: 1 } });
    const child = stand.runtime.handle("s-1");
    const statusOf = async (): Promise<string | undefined> =>
      (await stand.storage.reader.session("s-1"))?.status;
    await until(async () => (await statusOf()) === "paused", "the budget is used up");
    await turns(10);
    await expect(child.result()).rejects.toMatchObject({
      code: "budget_exceeded",
      message: expect.stringMatching(
        /^session s-1 is paused \(budget_exceeded\): the budget of session s is used up/,
      ),
      fix: "raise the budget of session s, then `holdfast resume s-1` resumes it where it stopped",
    });
  });

  test("a wait for a parked session gets its move once it is done, not while it is under way", async () => {
    const stand = await parked();
    const moving = { sessionId: "s", moveId: "mov-1" };
    const begin = () => stand.storage.commit([{ type: "begin_move", ...moving, to: "there" }], 0);
    expect(await notifiedOf(stand, begin)).toBe("nothing");
    const end = () => stand.storage.commit([{ type: "end_move", ...moving, outcome: "moved" }], 0);
    expect(await notifiedOf(stand, end)).toMatchObject(MOVED);
    expect(await soon(stand.runtime.handle("s").settled())).toMatchObject(MOVED);
  });

  test("a wait for a parked session rejects when the session was deleted", async () => {
    const stand = await parked();
    const remove = { type: "delete_session", sessionId: "s", subtree: "refuse" } as const;
    const outcome = await notifiedOf(stand, () => stand.storage.commit([HARD_CANCEL, remove], 0));
    expect(outcome).toMatchObject({ status: "released", error: { code: "session_not_found" } });
  });

  test("a wait for a parked session rejects when the session cannot be read", async () => {
    const memory = new MemoryStorage();
    const load = async (): Promise<never> => Promise.reject(new Error("damaged"));
    const stand = await parked(storageWith(memory, { load }));
    const outcome = await notifiedOf(stand, () => stand.runtime.signal("s", "go", 1));
    expect(outcome).toMatchObject({ status: "released", error: { message: "damaged" } });
  });

  test("a wait for a parked session gets its end in another process after a signal that both received", async () => {
    const stand = await parked();
    const other = open(stand.storage, stand.clock);
    await other.runtime.resume("s");
    const outcome = await notifiedOf(stand, () => other.runtime.signal("s", "go", 1));
    expect(outcome).toEqual({ status: "completed", output: 1 });
  });

  test("a wait without notices from storage ends when another process runs the session", async () => {
    const memory = new MemoryStorage();
    const { follow: _, ...unfollowed } = storageWith(memory, {});
    const stand = await parked(unfollowed);
    const other = open(memory, stand.clock);
    await other.runtime.resume("s");
    const outcome = await notifiedOf(stand, () => other.runtime.signal("s", "go", 1));
    expect(outcome).toMatchObject({ status: "released", error: { code: "session_claimed" } });
  });

  test("a wait for a parked session gets an end that happens while the session is read", async () => {
    const memory = new MemoryStorage();
    let held: ReturnType<typeof gate<void>> | undefined;
    const reader = readerWith(memory.reader, {
      async session(sessionId) {
        const row = await memory.reader.session(sessionId);
        const waiting = held?.opened;
        held = undefined;
        await waiting;
        return row;
      },
    });
    const stand = await parked(storageWith(memory, { reader }));
    const answer = (held = gate());
    const settled = stand.runtime.handle("s").settled();
    await turns(5);
    await stand.runtime.signal("s", "go", 1);
    await turns(20);
    answer.open();
    expect(await soon(settled)).toEqual({ status: "completed", output: 1 });
  });
});

test("a wait for a session that is driven here gets its move to another storage", async () => {
  const stand = open(new MemoryStorage());
  await stand.runtime.start(waits, undefined, { sessionId: "s" });
  await turns(5);
  expect(stand.runtime.live).toBe(1);
  expect(await notifiedOf(stand, () => move(stand))).toMatchObject(MOVED);
  expect(stand.runtime.live).toBe(0);
});

test("storage is no longer followed for a session without a waiter", async () => {
  const memory = new MemoryStorage();
  let followed = 0;
  const storage = storageWith(memory, {
    follow(sessionId, onNotice) {
      followed++;
      const leave = memory.follow(sessionId, onNotice);
      return () => {
        followed--;
        leave();
      };
    },
  });
  const stand = await parked(storage);
  const settled = stand.runtime.handle("s").settled();
  await turns(5);
  expect(followed).toBe(1);
  await stand.runtime.signal("s", "go", 1);
  expect(await soon(settled)).toEqual({ status: "completed", output: 1 });
  expect(followed).toBe(0);
});
