// A process that looks for work survives an error of every call to its storage, whatever the error is.
//
// The process runs once without an error, and its calls are counted. It then runs again for each kind of
// call, each of its first calls and each error, which that call fails with once.

import { HoldfastError, UnavailableError, type CreateSession } from "@holdfast/core";
import { countingRandom, failingCalls, TestClock } from "@holdfast/testkit/test-runtime";
import { describe, expect, test } from "vitest";
import { defineAgent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";

const LEASE_MS = 15_000;
/** This many calls of each method are made to fail, one at a time. Later calls have the same reasons. */
const CALLS_MAX = 12;

const ERRORS: Readonly<Record<string, () => Error>> = {
  storage_unavailable: () => new UnavailableError("storage_unavailable", "away"),
  storage_full: () => new HoldfastError("storage_full", "the disk is full"),
  "an error that is not ours": () => new TypeError("a bug of a driver"),
};

const AGENTS = [
  defineAgent({
    name: "sleeper",
    run: async (ctx) => {
      await ctx.sleep(5_000);
      return ctx.run("work", () => "slept");
    },
  }),
  defineAgent({ name: "waiter", run: (ctx) => ctx.waitForSignal("go") }),
  defineAgent({ name: "orphan", run: async () => "adopted" }),
  defineAgent({ name: "scheduled", run: async () => "fired" }),
];

function creating(name: string): CreateSession {
  const agent = { name, version: "1" };
  return { type: "create_session", sessionId: name, agent, input: undefined, seed: 1, flags: 0, format: 1 };
}

async function play(leaseMs: number, error: (method: string, n: number) => Error | undefined) {
  const inner = new MemoryStorage();
  const clock = new TestClock(1_700_000_000_000);
  const schedule = {
    scheduleId: "every-minute",
    cron: "* * * * *",
    timeZone: "UTC",
    nextAt: clock.now(),
    createdAt: clock.now(),
    action: { type: "start", agent: { name: "scheduled", version: "1" }, input: undefined },
  } as const;
  await inner.commit(
    [creating("sleeper"), creating("waiter"), creating("orphan"), { type: "put_schedule", schedule }],
    clock.now(),
  );
  // Another process held it, and died.
  await inner.claim({ sessionId: "orphan", owner: "dead", now: clock.now(), leaseMs: LEASE_MS });
  const { storage, counts } = failingCalls(inner, error);
  const runtime = createRuntime({
    storage,
    agents: AGENTS,
    clock,
    random: countingRandom(),
    leaseMs,
    adopt: true,
    schedules: {},
    development: false,
  });
  await runtime.recover().catch(() => {}); // Its caller would be told, and the loop goes on.
  await clock.advance(20_000);
  await inner.commit(
    [{ type: "send_signal", sessionId: "waiter", signalId: "s1", name: "go", payload: '"gone"' }],
    clock.now(),
  );
  await clock.advance(280_000);
  const states: Record<string, string | undefined> = {};
  for (const { name } of AGENTS.slice(0, 3)) states[name] = (await inner.reader.session(name))?.status;
  const fired = (await inner.reader.sessions({ limit: 100, agent: "scheduled" })).map(({ status }) => status);
  const { length } = fired.filter((status) => status === "completed");
  await runtime.close();
  return { counts, states: { ...states, fired: length } };
}

describe.each([
  ["with a lease", LEASE_MS],
  ["without a lease", Infinity],
])("a process %s", async (_, leaseMs) => {
  const whole = await play(leaseMs, () => undefined);
  const planned = [...whole.counts].flatMap(([method, count]) =>
    Object.keys(ERRORS).map((error) => ({ method, error, calls: Math.min(count, CALLS_MAX) })),
  );

  test("the process does all of its work without an error", () => {
    expect(whole.states).toEqual({
      sleeper: "completed",
      waiter: "completed",
      orphan: "completed",
      fired: 6,
    });
  });

  test.each(planned)(
    "the process works after $error from each of the first $calls calls of $method",
    async ({ method, error, calls }) => {
      for (let failing = 1; failing <= calls; failing++) {
        const { states } = await play(leaseMs, (asked, n) =>
          asked === method && n === failing ? ERRORS[error]!() : undefined,
        );
        expect.soft(states, `call ${failing} of ${method}`).toEqual(whole.states);
      }
    },
  );
});
