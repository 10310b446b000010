// The random requests of the model-based test to a storage: changes in groups, claims, and looks for due
// sessions.

import fc from "fast-check";

export const PATCHED = [
  "working",
  "waiting",
  "input_required",
  "paused",
  "completed",
  "failed",
  "cancelled",
  "cancelling",
] as const;

/** Few, so that they are each other's parents and targets. */
const SESSION = fc.nat({ max: 2 });
const NAME = fc.constantFrom("go", "other", "answer:0");

const CHANGE = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("create"),
      session: SESSION,
      claimed: fc.boolean(),
      lifeMs: fc.option(fc.integer({ min: 20, max: 120 }), { nil: undefined }),
      budget: fc.option(fc.integer({ min: 1, max: 30 }), { nil: undefined }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant("signal"),
      session: SESSION,
      id: fc.nat({ max: 7 }),
      key: fc.option(fc.nat({ max: 2 }), { nil: undefined }),
      name: NAME,
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("cancel"), session: SESSION, hard: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constantFrom("pause", "resume"), session: SESSION }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("budget"),
      session: SESSION,
      tokens: fc.integer({ min: 1, max: 50 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant("batch"),
      session: SESSION,
      /** Which of the tokens that were given out, from the newest back. */
      token: fc.constantFrom(0, 0, 0, 0, 1),
      at: fc.constantFrom("end", "end", "end", "end", "again", "gap", "overwrite"),
      records: fc.nat({ max: 2 }),
      entries: fc.nat({ max: 2 }),
      consumed: fc.uniqueArray(fc.nat({ max: 7 }), { maxLength: 1 }),
      status: fc.option(fc.constantFrom(...PATCHED), { nil: undefined }),
      wakeInMs: fc.option(fc.nat({ max: 40 }), { nil: undefined }),
      effect: fc.option(
        fc.record({
          type: fc.constantFrom("spawn", "signal", "cancel"),
          session: SESSION,
          leave: fc.boolean(),
          hard: fc.boolean(),
          id: fc.nat({ max: 7 }),
        }),
        { nil: undefined },
      ),
      charges: fc.array(
        fc.record({
          type: fc.constantFrom("reserve", "reserve", "settle"),
          task: fc.nat({ max: 2 }),
          tokens: fc.nat({ max: 12 }),
        }),
        { maxLength: 2 },
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant("release"), session: SESSION, token: fc.constantFrom(0, 0, 1) }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("delete"), session: SESSION, all: fc.boolean() }) },
);

export const STEP = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant("group"),
      pauseMs: fc.nat({ max: 20 }),
      changes: fc.array(CHANGE, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant("claim"),
      pauseMs: fc.nat({ max: 20 }),
      session: SESSION,
      owner: fc.constantFrom("owner-1", "owner-2"),
      leaseMs: fc.constantFrom(30, Infinity),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("renew"),
      pauseMs: fc.nat({ max: 20 }),
      owner: fc.constantFrom("owner-1", "owner-2"),
      leaseMs: fc.constantFrom(10, 60),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("due"), pauseMs: fc.nat({ max: 20 }) }) },
);

export type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;
export type Asked = typeof CHANGE extends fc.Arbitrary<infer T> ? T : never;
export type AskedBatch = Extract<Asked, { type: "batch" }>;
