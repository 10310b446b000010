// LeaseKeeper: a keeper with a storage that answers, refuses, or is silent. Then two runtimes on one storage,
// one of which is cut off or suspended.

import { UnavailableError, type AgentStorage, type Change } from "@holdfast/core";
import {
  countingRandom,
  gate,
  journalOf,
  storageWith,
  TestClock,
  turns,
} from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { defineAgent, defineTask, type TaskContext } from "../agents/define.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime, type Runtime } from "../runtime.ts";

const LEASE_MS = 15_000;

const opened: Runtime[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((runtime) => runtime.close()));
});

describe("a keeper", () => {
  test("a keeper renews all claims by one call every quarter of the lease while any claim is held", async () => {
    const { keeper, clock, stand } = keeperOf();
    keeper.claiming();
    keeper.claiming();
    await clock.advance(3 * 3_750);
    expect(stand.renewals).toBe(3);
    stand.isHolding = false;
    await clock.advance(60_000);
    expect(stand).toMatchObject({ renewals: 3, lost: 0 });
    expect(clock.armed).toBe(0);
  });

  test("a keeper lets go of all sessions once, three seconds before a lease without renewal ends", async () => {
    const { keeper, clock, stand } = keeperOf();
    keeper.claiming();
    stand.answers = "nothing";
    await clock.advance(LEASE_MS - 3_001);
    expect(stand.lost).toBe(0);
    await clock.advance(1);
    expect(stand.lost).toBe(1);
    await clock.advance(60_000);
    expect(stand).toMatchObject({ lost: 1, renewals: 3 });
  });

  test("O5: a keeper announces when it will let go, after each renewal and when no claim is left", async () => {
    const { keeper, clock, stand } = keeperOf();
    expect(stand.abandonAt).toBeUndefined();
    const began = clock.monotonic();
    keeper.claiming();
    expect(stand.abandonAt).toBe(began + LEASE_MS - 3_000);
    await clock.advance(3_750);
    expect(stand.abandonAt).toBe(began + 3_750 + LEASE_MS - 3_000);
    stand.answers = "nothing";
    await clock.advance(LEASE_MS);
    expect(stand).toMatchObject({ lost: 1, abandonAt: undefined });
    keeper.claiming();
    keeper.close();
    expect(stand.abandonAt).toBeUndefined();
  });

  // The renewal got lost on its way, and its sender gives it up only at the end of the lease.
  test("a keeper does not wait for a lost renewal, and the next one keeps the claims", async () => {
    const { keeper, clock, stand } = keeperOf();
    keeper.claiming();
    stand.answers = "nothing";
    await clock.advance(2 * 3_750);
    stand.answers = "yes";
    await clock.advance(60_000);
    expect(stand.lost).toBe(0);
  });

  test("a check lets go of all sessions at once after the process was suspended for too long", () => {
    const { keeper, clock, stand } = keeperOf();
    keeper.claiming();
    clock.stall(LEASE_MS - 3_001);
    keeper.check();
    expect(stand.lost).toBe(0);
    clock.stall(1);
    keeper.check();
    keeper.check();
    expect(stand.lost).toBe(1);
  });

  // The time of the request counts, as storage may answer long after it.
  test("a keeper counts a renewal from before its request", async () => {
    const { keeper, clock, stand } = keeperOf();
    keeper.claiming();
    stand.answers = "late";
    await clock.advance(10_000); // Asked at 3,750 and 7,500.
    stand.answers = "nothing";
    stand.late.open();
    await clock.advance(7_500 + 12_000 - 10_000 - 1);
    expect(stand.lost).toBe(0);
    await clock.advance(1);
    expect(stand.lost).toBe(1);
  });

  test("a keeper counts an older claim from the earliest time it may have been made", async () => {
    const { keeper, clock, stand } = keeperOf();
    keeper.claiming(2_000);
    stand.answers = "nothing";
    await clock.advance(1_750);
    expect(stand.renewals).toBe(1); // The renewal comes sooner, too.
    await clock.advance(9_999 - 1_750);
    expect(stand.lost).toBe(0);
    await clock.advance(1);
    expect(stand.lost).toBe(1);
    keeper.claiming();
    await clock.advance(1_000);
    keeper.claiming(2_000);
    await clock.advance(8_999);
    expect(stand.lost).toBe(1);
    await clock.advance(1_001);
    expect(stand.lost).toBe(2);
  });

  test("a keeper retries soon after a refused renewal, and keeps the claims once one is confirmed", async () => {
    const { keeper, clock, stand } = keeperOf();
    keeper.claiming();
    stand.answers = "error";
    await clock.advance(11_000);
    expect(stand.renewals).toBe(1 + Math.floor((11_000 - 3_750) / 250));
    stand.answers = "yes";
    await clock.advance(60_000);
    expect(stand.lost).toBe(0);
  });

  test("a keeper renews nothing when it is too late, as after its process was suspended", async () => {
    const { keeper, clock, stand } = keeperOf();
    keeper.claiming();
    clock.stall(LEASE_MS);
    await clock.advance(0);
    expect(stand).toMatchObject({ renewals: 0, lost: 1 });
  });

  test("a jump of the wall clock does not affect a keeper", async () => {
    const { keeper, clock, stand } = keeperOf();
    keeper.claiming();
    clock.jump(3_600_000);
    await clock.advance(3_000);
    clock.jump(-7_200_000);
    await clock.advance(60_000);
    expect(stand.lost).toBe(0);
  });

  test("a late answer does not count for claims made after all sessions were let go", async () => {
    const { keeper, clock, stand } = keeperOf();
    keeper.claiming();
    stand.answers = "late";
    await clock.advance(12_000);
    expect(stand.lost).toBe(1);
    keeper.claiming();
    stand.late.open();
    await turns(5);
    stand.answers = "nothing";
    await clock.advance(11_999);
    expect(stand.lost).toBe(1);
    await clock.advance(1);
    expect(stand.lost).toBe(2);
  });

  test.each([
    { leaseMs: 15_000, renewMs: 5_001 },
    { leaseMs: 0, renewMs: 1 },
    { leaseMs: 15_000, renewMs: Number.NaN },
  ])("a lease of $leaseMs ms renewed every $renewMs ms is refused", ({ leaseMs, renewMs }) => {
    expect(() => keeperOf(leaseMs, renewMs)).toThrow(/cannot be renewed/);
  });

  function keeperOf(leaseMs = LEASE_MS, renewMs?: number) {
    const clock = new TestClock();
    const stand = {
      isHolding: true,
      lost: 0,
      renewals: 0,
      answers: "yes" as "yes" | "nothing" | "error" | "late",
      late: gate(),
      abandonAt: undefined as number | undefined,
    };
    const keeper = new LeaseKeeper({
      clock,
      leaseMs,
      renewMs,
      isHolding: () => stand.isHolding,
      abandonAll: () => {
        stand.lost++;
      },
      watch: (abandonInMs) => {
        stand.abandonAt = abandonInMs === undefined ? undefined : clock.monotonic() + abandonInMs;
      },
      async renew() {
        stand.renewals++;
        if (stand.answers === "error") throw new UnavailableError("storage_unavailable", "away");
        if (stand.answers === "nothing") await new Promise(() => {});
        if (stand.answers === "late") await stand.late.opened;
      },
    });
    return { keeper, clock, stand };
  }
});

describe("two runtimes on one storage", () => {
  test("a session that one runtime holds stays with it, however long it takes", async () => {
    const stand = open();
    const handle = await stand.first.runtime.start(stand.agent, undefined, { sessionId: "s" });
    await stand.clock.advance(10 * LEASE_MS);
    expect(stand.second.runtime.live).toBe(0);
    stand.first.work.open("by the first");
    expect(await handle.result()).toBe("by the first");
    expect(stand.begun).toEqual(["first"]);
  });

  test("a runtime that is cut off stops its tasks before its lease ends, and the other resumes its session", async () => {
    const stand = open();
    const handle = await stand.first.runtime.start(stand.agent, undefined, { sessionId: "s" });
    await stand.clock.advance(1_000);
    stand.first.cutOff();
    await stand.clock.advance(10_999);
    expect(stand.first.aborted).toBe(false);
    await stand.clock.advance(1);
    expect(stand.first.aborted).toBe(true);
    expect(stand.begun).toEqual(["first"]);
    expect(await handle.settled()).toMatchObject({
      status: "released",
      error: { code: "storage_unavailable" },
    });
    await stand.clock.advance(5_000);
    expect(stand.begun).toEqual(["first", "second"]);

    // A late result of the first runtime is ignored; the second one's is the outcome.
    stand.first.work.open("by the first");
    stand.first.comeBack();
    await stand.clock.advance(5_000);
    stand.second.work.open("by the second");
    await stand.clock.advance(1_000);
    expect(await stand.storage.reader.session("s")).toMatchObject({
      status: "completed",
      output: '"by the second"',
    });
    expect(await outcomesOf(stand.storage)).toEqual(['"by the second"']);
  });

  // No code of the suspended process ran: after it wakes up, it checks the lease first.
  test("a runtime that was suspended past its lease commits and starts nothing when it wakes up", async () => {
    const own = new TestClock();
    const stand = open({ firstClock: own });
    const handle = await stand.first.runtime.start(stand.agent, undefined, { sessionId: "s" });
    await turns(20);
    await stand.clock.advance(LEASE_MS + 5_000);
    expect(stand.begun).toEqual(["first", "second"]);
    own.stall(LEASE_MS + 5_000);
    stand.first.work.open("by the first");
    expect(await handle.settled()).toMatchObject({
      status: "released",
      error: { code: "storage_unavailable" },
    });
    await own.advance(10_000);
    expect(stand.first.runtime.live).toBe(0);
    expect(stand.begun).toEqual(["first", "second"]);
    expect(await outcomesOf(stand.storage)).toEqual([]);
    stand.second.work.open("by the second");
    await stand.clock.advance(1_000);
    expect(await outcomesOf(stand.storage)).toEqual(['"by the second"']);
  });

  test("a runtime that was suspended past its lease starts no task that waited for a slot", async () => {
    const own = new TestClock();
    const stand = open({ firstClock: own, hasSecond: false, concurrency: 1 });
    const begun: string[] = [];
    const two = defineAgent({
      name: "two",
      run: async (ctx) =>
        Promise.all([ctx.scheduleTask("work"), ctx.run("waits", async () => void begun.push("waits"))]),
    });
    const handle = await stand.first.runtime.start(two, undefined, { sessionId: "s" });
    await turns(20);
    expect(stand.begun).toEqual(["first"]);
    own.stall(LEASE_MS);
    stand.first.work.open("by the first");
    expect(await handle.settled()).toMatchObject({ status: "released" });
    await turns(20);
    expect(begun).toEqual([]);
  });

  test("a task that was suspended past its lease finds its signal aborted and reports no progress", async () => {
    const own = new TestClock();
    const stand = open({ firstClock: own, hasSecond: false });
    const found: unknown[] = [];
    const looks = defineAgent({
      name: "looks",
      run: async (ctx) =>
        ctx.run("look", async (task) => {
          await stand.quick.opened;
          task.progress("late");
          found.push(task.signal.aborted);
        }),
    });
    await stand.first.runtime.start(looks, undefined, { sessionId: "s" });
    await turns(20);
    own.stall(LEASE_MS);
    stand.quick.open();
    await turns(20);
    expect(found).toEqual([true]);
    expect(stand.first.progress).toEqual([]);
  });

  test("a runtime that is fenced aborts the session's other tasks", async () => {
    const own = new TestClock();
    const stand = open({ firstClock: own });
    const two = defineAgent({
      name: "two",
      run: async (ctx) => Promise.all([ctx.scheduleTask("work"), ctx.run("quick", () => stand.quick.opened)]),
    });
    await stand.first.runtime.start(two, undefined, { sessionId: "s" });
    await turns(20);
    await stand.storage.claim({
      sessionId: "s",
      owner: "third",
      now: own.now() + LEASE_MS,
      leaseMs: LEASE_MS,
    });
    stand.quick.open();
    await turns(20);
    expect(stand.first.aborted).toBe(true);
  });

  test("a single runtime that was cut off resumes its session once storage answers again", async () => {
    const stand = open({ hasSecond: false });
    const handle = await stand.first.runtime.start(stand.agent, undefined, { sessionId: "s" });
    await stand.clock.advance(1_000);
    stand.first.cutOff();
    await stand.clock.advance(60_000);
    expect(stand.first.runtime.live).toBe(0);
    stand.first.comeBack();
    await stand.clock.advance(60_000);
    expect(stand.begun).toEqual(["first", "first"]);
    stand.first.work.open("at last");
    await stand.clock.advance(1_000);
    expect(await handle.session()).toMatchObject({ status: "completed", output: '"at last"' });
  });

  test("a claim that is answered after all sessions were let go is released", async () => {
    const stand = open({ hasSecond: false });
    await stand.storage.commit([creation("s")], stand.clock.now());
    const answer = stand.first.holdClaims();
    const resumed = expect(stand.first.runtime.resume("s")).rejects.toMatchObject({
      code: "storage_unavailable",
    });
    await turns(20);
    stand.first.cutOff();
    await stand.clock.advance(LEASE_MS);
    stand.first.comeBack();
    answer.open();
    await resumed;
    expect(stand.begun).toEqual([]);
    const now = stand.clock.now();
    const claim = { sessionId: "s", owner: "third", now, leaseMs: LEASE_MS };
    expect(await stand.storage.claim(claim)).toMatchObject({ status: "claimed" });
  });

  test.each([
    ["", LEASE_MS],
    [", also where that takes longer than a lease", 6_000],
  ])("a runtime that closes releases what it held after its tasks have ended%s", async (_, leaseMs) => {
    const stand = open({ leaseMs });
    await stand.first.runtime.start(stand.agent, undefined, { sessionId: "s" });
    await turns(20);
    stand.first.endsSlowly = true;
    const closing = stand.first.runtime.close();
    await stand.clock.advance(9_000);
    expect(stand.begun).toEqual(["first"]);
    stand.first.ended.open();
    await closing;
    expect(await stand.storage.heldClaims({ now: stand.clock.now(), limit: 1 })).toEqual([]);
    await stand.clock.advance(5_000);
    expect(stand.begun).toEqual(["first", "second"]);
  });
});

interface OpenOptions {
  readonly hasSecond?: boolean;
  /** The clock of the first runtime, if it is not the shared one. */
  readonly firstClock?: TestClock;
  readonly leaseMs?: number;
  readonly concurrency?: number;
}

function open({ hasSecond = true, firstClock, leaseMs = LEASE_MS, concurrency = 8 }: OpenOptions = {}) {
  const storage = new MemoryStorage();
  const clock = new TestClock();
  const begun: string[] = [];
  const agent = defineAgent({ name: "agent", run: async (ctx) => ctx.scheduleTask("work") });
  const start = (name: string, by: TestClock) =>
    processOf({ name, storage, clock: by, begun, agent, leaseMs, concurrency });
  return {
    storage,
    clock,
    begun,
    agent,
    quick: gate(),
    first: start("first", firstClock ?? clock),
    second: hasSecond ? start("second", clock) : (undefined as never),
  };
}

function creation(sessionId: string): Change {
  const agent = { name: "agent", version: "1" };
  return { type: "create_session", sessionId, agent, input: undefined, seed: 1, flags: 0, format: 1 };
}

function processOf(options: {
  readonly name: string;
  readonly storage: MemoryStorage;
  readonly clock: TestClock;
  readonly begun: string[];
  readonly agent: ReturnType<typeof defineAgent>;
  readonly leaseMs: number;
  readonly concurrency: number;
}) {
  const { name, storage, clock, begun, agent, leaseMs, concurrency } = options;
  let isCutOff = false;
  let claims: Promise<void> = Promise.resolve();
  const asked = <T>(ask: () => Promise<T>): Promise<T> =>
    isCutOff ? Promise.reject(new UnavailableError("storage_unavailable", "cut off")) : ask();
  const reached: AgentStorage = storageWith(storage, {
    commit: (changes, now) => asked(() => storage.commit(changes, now)),
    claim: async (claim) => {
      const answer = await asked(() => storage.claim(claim));
      await claims;
      return answer;
    },
    load: (sessionId) => asked(() => storage.load(sessionId)),
    arrivals: (sessionId, after) => asked(() => storage.arrivals(sessionId, after)),
    due: (query) => asked(() => storage.due(query)),
    renew: (renewal) => asked(() => storage.renew(renewal)),
  });
  const process = {
    work: gate<string>(),
    ended: gate(),
    aborted: false,
    progress: [] as unknown[],
    endsSlowly: false,
    runtime: undefined as unknown as Runtime,
    cutOff: () => void (isCutOff = true),
    comeBack: () => void (isCutOff = false),
    holdClaims() {
      const answer = gate();
      claims = answer.opened;
      return answer;
    },
  };
  const work = defineTask({
    name: "work",
    run: async (_input: unknown, { signal }: TaskContext) => {
      begun.push(name);
      const aborted = new Promise<string>((resolve) => {
        signal.addEventListener("abort", () => {
          process.aborted = true;
          if (process.endsSlowly) void process.ended.opened.then(() => resolve("aborted"));
          else resolve("aborted");
        });
      });
      return Promise.race([process.work.opened, aborted]);
    },
  });
  process.runtime = createRuntime({
    storage: reached,
    clock,
    random: countingRandom(name.length),
    owner: name,
    leaseMs,
    concurrency,
    tracer: {
      trace(event) {
        if (event.type === "task_delta") process.progress.push(event.delta);
      },
    },
    agents: [agent],
    tasks: [work],
    adopt: true,
    development: false,
  });
  opened.push(process.runtime);
  void process.runtime.recover();
  return process;
}

async function outcomesOf(storage: AgentStorage): Promise<readonly (string | undefined)[]> {
  const journal = await journalOf(storage, "s");
  return journal.flatMap((record) => (record.type === "task_completed" ? [record.payload] : []));
}
