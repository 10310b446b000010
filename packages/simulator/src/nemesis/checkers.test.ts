// Tests of `check`: each checker finds a violation that is planted for it, and that no other checker finds.

import { expect, test } from "vitest";
import { check, CHECKERS } from "./checkers.ts";
import type { Effect, FinalSession, Observed, Request } from "./observed.ts";

const [A, B] = ["rnr_a", "rnr_b"];

function session(sessionId: string, agent: string, more: Partial<FinalSession> = {}): FinalSession {
  return {
    sessionId,
    agent,
    key: `key-${sessionId}`,
    isChild: false,
    status: "completed",
    pauseReason: undefined,
    error: undefined,
    waits: [],
    output: undefined,
    input: {},
    isJournalWhole: true,
    handedOver: [],
    ...more,
  };
}

function request(op: Request["op"], about: string, at: number, more: Partial<Request> = {}): Request {
  return { op, about, invokedAt: at, answeredAt: at + 10, outcome: "ok", status: 200, ...more };
}

function effect(at: number, phase: Effect["phase"], more: Partial<Effect> = {}): Effect {
  const one = { name: "step", runner: "a", pid: 1, sessionId: "walk", taskId: "walk-0", attempt: 1 };
  return { at, phase, ...one, ...more };
}

const FREE = { token: 0, holder: undefined, until: -Infinity };
const walk = session("walk", "walker", { input: { count: 2 }, output: [0, 1], handedOver: [9] });
const collect = session("collect", "collector", { output: { left: [0, 1], right: [0] } });
const stop = session("stop", "endless", { status: "cancelled" });
const sleep = session("sleep", "sleeper", { input: { sleepMs: 1_000 }, output: [1_004] });
const pay = session("pay", "once-payer", { output: ["pay-3"] });
const sick = session("sick", "poison", { status: "paused", pauseReason: "poison" });

/** Observations without a violation: runner A was lost with a task begun, and B continued. */
const WELL: Observed = {
  requests: [
    ...[walk, collect, stop, sleep, pay, sick].map(({ sessionId }, i) =>
      request("start", `key-${sessionId}`, i, { sessionId, status: 201 }),
    ),
    request("signal", "collect", 20, { name: "left", number: 0 }),
    request("signal", "collect", 40, { name: "left", number: 1, outcome: "info" }),
    request("signal", "collect", 60, { name: "left", number: 1 }),
    request("signal", "collect", 60, { name: "right", number: 0 }),
    request("signal", "collect", 90, { outcome: "fail", status: 503, code: "storage_unavailable" }),
    request("cancel", "stop", 100, { seen: "cancelling" }),
    request("read", "stop", 200, { seen: "cancelling" }),
    request("read", "stop", 300, { seen: "cancelled" }),
  ],
  effects: [
    effect(1_100, "begin"),
    effect(1_300, "beat"),
    effect(8_100, "begin", { runner: "b", pid: 2, attempt: 2 }),
    effect(8_300, "end", { runner: "b", pid: 2, attempt: 2 }),
    ...[1, 2, 3].map((attempt) =>
      effect(9_000 + attempt, "begin", { name: "limited", runner: "b", taskId: "walk-9", attempt }),
    ),
  ],
  claims: [
    { at: 1_000, sessionId: "walk", token: 1, holder: A, before: FREE, isEnded: false },
    {
      at: 8_000,
      sessionId: "walk",
      token: 2,
      holder: B,
      before: { token: 1, holder: A, until: 7_900 },
      isEnded: false,
    },
    {
      at: 9_500,
      sessionId: "walk",
      token: 2,
      holder: undefined,
      before: { token: 2, holder: B, until: 14_000 },
      isEnded: true,
    },
    { at: 1_000, sessionId: "pay", token: 3, holder: A, before: FREE, isEnded: false },
    {
      at: 9_000,
      sessionId: "pay",
      token: 4,
      holder: B,
      before: { token: 3, holder: A, until: 8_900 },
      isEnded: false,
    },
  ],
  batches: [
    { at: 1_050, sessionId: "walk", seq: 0, count: 2, token: 1, asked: [0], done: [] },
    { at: 8_400, sessionId: "walk", seq: 2, count: 1, token: 2, asked: [], done: [0] },
    { at: 1_050, sessionId: "pay", seq: 0, count: 2, token: 3, asked: [3], done: [] },
    { at: 9_050, sessionId: "pay", seq: 2, count: 1, token: 4, asked: [], done: [3] },
  ],
  sightings: [
    { at: 1_200, pid: 11, runner: "a", runnerPid: 1, sessionId: "walk" },
    { at: 8_200, pid: 12, runner: "b", runnerPid: 2, sessionId: "walk" },
  ],
  freezes: [{ runner: "a", from: 2_000, to: 9_000 }],
  watched: [{ sessionId: "walk", seqs: [0, 1, 2], isOver: true }],
  sessions: [walk, collect, stop, sleep, pay, sick],
  starts: { a: [0], b: [0] },
  runnerIds: { a: A, b: B },
  outputs: { a: "Runner started - waiting for runs\n" },
};

/** By the checker that must find it. */
const PLANTED: Readonly<Record<string, Readonly<Record<string, Partial<Observed>>>>> = {
  startedOnce: {
    "one that was acknowledged is lost": {
      sessions: WELL.sessions.filter(({ sessionId }) => sessionId !== "sleep"),
    },
    "one key is two sessions": { sessions: [...WELL.sessions, { ...walk, sessionId: "again" }] },
    "one key is answered twice": {
      requests: [...WELL.requests, request("start", "key-walk", 9, { sessionId: "stop" })],
    },
  },
  receivedInOrder: {
    "one is lost": received([0]),
    "one comes twice": received([0, 1, 1]),
    "one overtakes": received([1, 0]),
    "one comes from nowhere": received([0, 1, 7]),
  },
  endsAreFinal: {
    "an end changes": { requests: [...WELL.requests, request("read", "stop", 400, { seen: "working" })] },
    "what was cancelled completes": {
      requests: [...WELL.requests, request("cancel", "collect", 400, { seen: "cancelling" })],
    },
  },
  claimsAreExclusive: {
    "a lease is taken too early": claimed({ before: { token: 1, holder: A, until: 9_000 } }),
    "a token is given again": claimed({ token: 1 }),
    "an older token commits": { batches: [WELL.batches[0]!, { ...WELL.batches[1]!, token: 0 }] },
  },
  nobodyWorksForOthers: {
    "one that was cut off goes on": { effects: [...WELL.effects, effect(8_200, "beat")], freezes: [] },
    "one that stood still begins another": {
      effects: [...WELL.effects, effect(9_100, "begin", { taskId: "walk-3" })],
    },
  },
  nothingIsLeftRunning: {
    "a process outlives its lease": {
      sightings: [{ at: 8_200, pid: 11, runner: "a", runnerPid: 1, sessionId: "walk" }],
      freezes: [],
    },
    "a process outlives its machine's sleep": {
      sightings: [{ at: 12_100, pid: 11, runner: "a", runnerPid: 1, sessionId: "walk" }],
    },
  },
  committedIsNotRepeated: {
    "a task begins again": {
      effects: [...WELL.effects, effect(8_600, "begin", { runner: "b", attempt: 3 })],
    },
  },
  attemptsAreLimited: {
    "once too often": {
      effects: [
        ...WELL.effects,
        effect(9_003, "begin", { name: "limited", runner: "b", taskId: "walk-9", attempt: 4 }),
      ],
    },
  },
  unbegunIsCertain: {
    "its own process says so": {
      claims: WELL.claims.map((change) => (change.token === 4 ? { ...change, holder: A } : change)),
    },
  },
  journalsAreWhole: {
    "a journal has a gap": final(walk, { isJournalWhole: false }),
    "a watcher misses one": { watched: [{ sessionId: "walk", seqs: [0, 2], isOver: true }] },
    "a watcher is told twice": { watched: [{ sessionId: "walk", seqs: [0, 1, 1], isOver: true }] },
  },
  everythingEnds: {
    "one stands still": final(walk, { status: "waiting", output: undefined }),
    "one says something else": final(walk, { output: [0] }),
    "poison is run again": final(sick, { status: "working" }),
    "what was cancelled goes on": {
      ...final(stop, { status: "working" }),
      requests: WELL.requests.slice(0, -1),
    },
  },
  timersAreNotEarly: { "one is early": final(sleep, { output: [700] }) },
  nothingBreaks: {
    "an answer is our fault": {
      requests: [
        ...WELL.requests,
        request("read", "walk", 9, { status: 500, code: "internal", outcome: "info" }),
      ],
    },
    "an output has a stack": { outputs: { a: "Error: no\n    at run (file:///x/main.ts:1:2)\n" } },
  },
};

test("where all is well nothing is found", () => {
  expect(check(WELL)).toEqual([]);
});

test("a claim may be shorter than the difference of the clocks", () => {
  const given = [A, B, A].map((holder, i) => {
    const before = { token: 9 + i, holder: undefined, until: -Infinity };
    return { at: 20_000 + 40 * i, sessionId: "sick", token: 10 + i, holder, before, isEnded: false };
  });
  const swallow = { name: "swallow", sessionId: "sick", taskId: "sick-0" };
  const effects = [...WELL.effects, effect(20_060, "begin", { ...swallow, runner: "b", pid: 2 })];
  expect(check({ ...WELL, effects, claims: [...WELL.claims, ...given] })).toEqual([]);
});

test("each checker has something that only it finds", () => {
  expect(Object.keys(PLANTED)).toEqual(Object.values(CHECKERS).map(({ name }) => name));
});

const planted = Object.entries(PLANTED).flatMap(([checker, cases]) =>
  Object.entries(cases).map(([what, change]) => ({ checker, what, change })),
);
test.each(planted)("$checker: $what", ({ checker, change }) => {
  const found = Object.values(CHECKERS).filter((look) => look({ ...WELL, ...change }).length > 0);
  expect(found.map(({ name }) => name)).toEqual([checker]);
});

function final(which: FinalSession, more: Partial<FinalSession>): Partial<Observed> {
  return { sessions: WELL.sessions.map((one) => (one === which ? { ...one, ...more } : one)) };
}

function received(left: readonly number[]): Partial<Observed> {
  return final(collect, { output: { left, right: [0] } });
}

function claimed(more: Partial<Observed["claims"][number]>): Partial<Observed> {
  return { claims: WELL.claims.map((change, i) => (i === 1 ? { ...change, ...more } : change)) };
}
