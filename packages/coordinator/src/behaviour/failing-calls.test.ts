// The loops of a coordinator survive an error of every call to storage, whatever the error is. They are its
// sweeps, its schedules, its time and its dispatch.
//
// Each scenario runs once without an error, and its calls are counted. It then runs again for each kind of
// call, each of its first calls and each error, which that call fails with once.

import { HoldfastError, UnavailableError } from "@holdfast/core";
import { countingRandom, failingCalls, MemoryStorage, TestClock } from "@holdfast/testkit/test-runtime";
import { describe, expect, test } from "vitest";
import { createCoordinator } from "../coordinator.ts";
import { creation, openDispatch } from "../testing/dispatch-stand.ts";

type Failing = (method: string, n: number) => Error | undefined;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** This many calls of each method are made to fail, one at a time. Later calls have the same reasons. */
const CALLS_MAX = 8;

const ERRORS: Readonly<Record<string, () => Error>> = {
  storage_unavailable: () => new UnavailableError("storage_unavailable", "away"),
  storage_full: () => new HoldfastError("storage_full", "the disk is full"),
  "an error that is not ours": () => new TypeError("a bug of a driver"),
};

/** The outcome of a scenario, and how often it called each method. */
type Scenario = (error: Failing) => Promise<{ counts: ReadonlyMap<string, number>; outcome: object }>;

/** A session that no runner serves, a schedule, and a clock that is set forward while a dead runner's lease is held. */
const sweeps: Scenario = async (error) => {
  const inner = new MemoryStorage();
  const clock = new TestClock(1_700_000_000_000);
  const began = clock.now();
  const schedule = {
    scheduleId: "every-minute",
    cron: "* * * * *",
    timeZone: "UTC",
    nextAt: began,
    createdAt: began,
    action: { type: "start", agent: { name: "agent", version: "1" }, input: undefined },
  } as const;
  await inner.commit([creation("unserved"), { type: "put_schedule", schedule }], began);
  const { storage, counts } = failingCalls(inner, error);
  const coordinator = createCoordinator({
    storage,
    clock,
    random: countingRandom(),
    schedules: {
      readCron: () => ({ after: (moment) => moment + MINUTE_MS }),
      firingName: (scheduleId, dueAt) => `${scheduleId}-${dueAt}`,
    },
  });
  const listen = () => coordinator.listen({ host: "127.0.0.1", port: 0 });
  await listen().catch(listen); // It is refused while storage is away: the caller starts it again.
  await clock.advance(7 * MINUTE_MS);
  await inner.commit([creation("held")], clock.now());
  await inner.claim({ sessionId: "held", owner: "dead", now: clock.now(), leaseMs: 15_000 });
  clock.jump(HOUR_MS);
  await clock.advance(MINUTE_MS);
  const written = await inner.reader.document("coordinator", "time");
  const [next] = await inner.reader.schedules();
  const unserved = await inner.reader.session("unserved");
  await coordinator.close();
  const outcome = {
    unserved: unserved?.status,
    why: unserved?.error?.code,
    hasFollowed: (written?.updatedAt ?? 0) >= began + HOUR_MS,
    hasFired: (next?.nextAt ?? 0) > began + HOUR_MS,
  };
  return { counts, outcome };
};

/** A runner whose poll waits, and a session that is created meanwhile. */
const dispatch: Scenario = async (error) => {
  const calls = new Map<string, number>();
  let isOpen = false;
  const { clock, poll, create, dispatcher } = await openDispatch({
    changes: (storage) =>
      failingCalls(storage, (method) => {
        if (!isOpen) return undefined; // The runner registers.
        const n = (calls.get(method) ?? 0) + 1;
        calls.set(method, n);
        return error(method, n);
      }).storage,
  });
  isOpen = true;
  const polled = async (pollId: string): Promise<readonly string[]> => {
    const answer = poll(pollId, 30_000);
    await clock.advance(2_000);
    await create(pollId);
    await clock.advance(40_000);
    return (await answer).claims.map(({ sessionId }) => sessionId);
  };
  const outcome = { claimed: await polled("p1").catch(() => polled("p1")) };
  await dispatcher.close();
  return { counts: calls, outcome };
};

describe.each([
  [
    "sweeps, schedules and time",
    sweeps,
    { unserved: "failed", why: "no_matching_runner", hasFollowed: true, hasFired: true },
  ],
  ["dispatch", dispatch, { claimed: ["p1"] }],
] as const)("%s", async (_, scenario, expected) => {
  const whole = await scenario(() => undefined);
  const planned = [...whole.counts].flatMap(([method, count]) =>
    Object.keys(ERRORS).map((error) => ({ method, error, calls: Math.min(count, CALLS_MAX) })),
  );

  test("the loops work without an error", () => expect(whole.outcome).toEqual(expected));

  test.each(planned)(
    "the loops work after $error from each of the first $calls calls of $method",
    async ({ method, error, calls }) => {
      for (let failing = 1; failing <= calls; failing++) {
        const { outcome } = await scenario((asked, n) =>
          asked === method && n === failing ? ERRORS[error]!() : undefined,
        );
        expect.soft(outcome, `call ${failing} of ${method}`).toEqual(expected);
      }
    },
  );
});
