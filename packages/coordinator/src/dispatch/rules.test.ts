import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  ALONE_MS,
  dueSince,
  fits,
  isKept,
  isPoison,
  isSuspect,
  match,
  STARVING_MS,
  TRIAL_MS,
  unmetBy,
  whyNotTaken,
  type Candidate,
  type Offer,
} from "./rules.ts";

const NOW = 10_000_000;

const offer = (runnerId: string, more: Partial<Offer> = {}): Offer => ({
  runnerId,
  labels: { runner: runnerId },
  agents: new Map([["greeter", new Set<string>()]]),
  free: 1,
  since: 0,
  held: 0,
  ...more,
});
const candidate = (sessionId: string, more: Partial<Candidate> = {}): Candidate => ({
  sessionId,
  agent: "greeter",
  version: "1",
  since: NOW - 1_000,
  ...more,
});
const pairs = (offers: readonly Offer[], candidates: readonly Candidate[], now = NOW): readonly string[] =>
  match(offers, candidates, now).map(({ sessionId, runnerId }) => `${sessionId}→${runnerId}`);

describe("which runner fits", () => {
  test("rules-8: a superseded runner gets only the sessions that come back to it", () => {
    const [old, next] = [offer("r1", { isSuperseded: true, free: 9 }), offer("r2")];
    const keepers = new Set(["r1"]);
    expect(pairs([old], [candidate("s1")])).toEqual([]);
    const back = candidate("s2", { onlyAt: keepers, keepers });
    expect(match([old, next], [back], NOW)).toMatchObject([{ runnerId: "r1", mayReturn: false }]);
    const moving = candidate("s3", { onlyAt: new Set(["r2"]), keepers });
    expect(match([old, next], [moving], NOW)).toMatchObject([{ runnerId: "r2", mayReturn: true }]);
  });

  test("a session goes only to a runner that offers its agent", () => {
    expect(pairs([offer("r1")], [candidate("s1", { agent: "other" })])).toEqual([]);
  });

  test("a session goes only to a runner that offers its version, if the runner names versions", () => {
    const [first, second] = [candidate("s1"), candidate("s2", { version: "2" })];
    const agents = new Map([["greeter", new Set(["2", "3"])]]);
    expect(pairs([offer("r1", { agents, free: 2 })], [first, second])).toEqual(["s2→r1"]);
    expect(unmetBy([offer("r1", { agents })], first)).toBe(
      'no registered runner offers version "1" of the agent "greeter"',
    );
  });

  test("a session goes only to a runner that has every demanded label with that value", () => {
    const s1 = candidate("s1", { demands: { gpu: "a100", os: "linux" } });
    expect(pairs([offer("r1", { labels: { gpu: "a100" } })], [s1])).toEqual([]);
    expect(pairs([offer("r1", { labels: { gpu: "a100", os: "mac" } })], [s1])).toEqual([]);
    expect(pairs([offer("r1", { labels: { gpu: "a100", os: "linux", more: "x" } })], [s1])).toEqual([
      "s1→r1",
    ]);
  });

  test("a property that every object inherits is no label", () => {
    expect(fits(offer("r1"), candidate("s1", { demands: { toString: "x" } }))).toBe(false);
  });

  test("a runner with an owner takes only that user's sessions, and a runner without one takes all", () => {
    const sessions = [candidate("s1", { owner: "ada" }), candidate("s2", { owner: "bob" }), candidate("s3")];
    expect(pairs([offer("r1", { owner: "ada", free: 9 })], sessions)).toEqual(["s1→r1"]);
    expect(pairs([offer("r1", { free: 9 })], sessions)).toHaveLength(3);
  });
});

describe("which session goes first", () => {
  test("the session of the highest priority goes first, then the one that has waited longest", () => {
    const sessions = [
      candidate("young", { since: NOW - 1 }),
      candidate("old", { since: NOW - 9 }),
      candidate("urgent", { since: NOW, priority: 5 }),
    ];
    expect(pairs([offer("r1", { free: 2 })], sessions)).toEqual(["urgent→r1", "old→r1"]);
  });

  test("a session that has waited for ten minutes goes before every priority", () => {
    const sessions = [
      candidate("urgent", { priority: 5 }),
      candidate("starving", { since: NOW - STARVING_MS }),
    ];
    expect(pairs([offer("r1")], sessions)).toEqual(["starving→r1"]);
  });

  test("a session that no runner can take does not delay the next one", () => {
    const sessions = [candidate("s1", { since: 0, demands: { gpu: "1" } }), candidate("s2")];
    expect(pairs([offer("r1")], sessions)).toEqual(["s2→r1"]);
  });
});

describe("which runner gets a session", () => {
  test("a session goes to the runner that had it last, if its poll waits", () => {
    const offers = [offer("r1", { free: 5 }), offer("r2")];
    expect(pairs(offers, [candidate("s1", { lastRunner: "r2" })])).toEqual(["s1→r2"]);
    expect(pairs([offers[0]!], [candidate("s1", { lastRunner: "r2" })])).toEqual(["s1→r1"]);
  });

  test("a session otherwise goes to the runner with the most free slots, then to the one that has waited longest", () => {
    expect(pairs([offer("r1"), offer("r2", { free: 2 })], [candidate("s1")])).toEqual(["s1→r2"]);
    expect(pairs([offer("r1", { since: 5 }), offer("r2", { since: 3 })], [candidate("s1")])).toEqual([
      "s1→r2",
    ]);
  });
});

// The claim log is checked against what the runners can do, for random sessions and runners.
const LABELS = fc.dictionary(fc.constantFrom("gpu", "os", "zone"), fc.constantFrom("a", "b"), { maxKeys: 3 });
const OWNER = fc.option(fc.constantFrom("ada", "bob"), { nil: undefined });
const VERSION = fc.constantFrom("1", "2");
const AGENT = fc.constantFrom("x", "y", "z");
const OFFERS = fc.uniqueArray(
  fc.record({
    runnerId: fc.constantFrom("r1", "r2", "r3", "r4", "r5"),
    owner: OWNER,
    labels: LABELS,
    agents: fc
      .uniqueArray(fc.tuple(AGENT, fc.uniqueArray(VERSION)), { selector: ([name]) => name })
      .map((names) => new Map(names.map(([name, versions]) => [name, new Set(versions)]))),
    free: fc.integer({ min: -1, max: 4 }),
    since: fc.nat(1_000),
    held: fc.nat(2),
    suspectSince: fc.option(fc.integer({ min: NOW - 2 * STARVING_MS, max: NOW }), { nil: undefined }),
  }),
  { selector: ({ runnerId }) => runnerId },
);
const CANDIDATES = fc.uniqueArray(
  fc.record({
    sessionId: fc.nat(40).map((n) => `s${n}`),
    agent: AGENT,
    version: VERSION,
    owner: OWNER,
    demands: fc.option(LABELS, { nil: undefined }),
    priority: fc.option(fc.integer({ min: -2, max: 2 }), { nil: undefined }),
    since: fc.integer({ min: NOW - 2 * STARVING_MS, max: NOW }),
    lastRunner: fc.option(fc.constantFrom("r1", "r2"), { nil: undefined }),
    suspectSince: fc.option(fc.integer({ min: NOW - 2 * ALONE_MS, max: NOW }), { nil: undefined }),
  }),
  { selector: ({ sessionId }) => sessionId },
);

describe("O11", () => {
  test("a session is claimed once, by a matching runner with a free slot, and no runner exceeds its slots", () => {
    fc.assert(
      fc.property(OFFERS, CANDIDATES, (offers, candidates) => {
        const [o, c] = [offers as Offer[], candidates as Candidate[]];
        const matches = match(o, c, NOW);
        expect(new Set(matches.map(({ sessionId }) => sessionId)).size).toBe(matches.length);
        for (const given of matches) {
          const runner = o.find(({ runnerId }) => runnerId === given.runnerId)!;
          expect(
            fits(
              runner,
              c.find(({ sessionId }) => sessionId === given.sessionId)!,
            ),
          ).toBe(true);
        }
        for (const { runnerId, free } of o) {
          const given = matches.filter((each) => each.runnerId === runnerId).length;
          expect(given).toBeLessThanOrEqual(Math.max(0, free));
        }
      }),
      { numRuns: 500 },
    );
  });

  test("every waiting runner is full, or no session that is left fits it", () => {
    fc.assert(
      fc.property(OFFERS, CANDIDATES, (offers, candidates) => {
        const [o, c] = [offers as Offer[], candidates as Candidate[]];
        const matches = match(o, c, NOW);
        const left = c.filter(({ sessionId }) => !matches.some((given) => given.sessionId === sessionId));
        // The exception is a runner that was given a suspect, or that is kept for a suspect it holds or that
        // waits.
        const isPatient = ({ suspectSince = -Infinity }: Candidate) => NOW - suspectSince < ALONE_MS;
        const apart = o.filter((runner) => {
          const given = matches.filter(({ runnerId }) => runnerId === runner.runnerId);
          const hasSuspect = given.some(
            ({ sessionId }) => c.find((each) => each.sessionId === sessionId)!.suspectSince !== undefined,
          );
          if (given.length >= runner.free || hasSuspect || isKept(runner, NOW)) return false;
          return left.some((session) => session.suspectSince === undefined && fits(runner, session));
        });
        expect(apart.length).toBeLessThanOrEqual(left.some(isPatient) ? 1 : 0);
      }),
      { numRuns: 500 },
    );
  });

  test("no session starves: each gets its turn however many of a higher priority keep coming", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 9 }), (slots, rivals) => {
        let waiting: Candidate[] = [candidate("meek", { since: 0, priority: -100 })];
        const step = STARVING_MS / 10;
        for (let round = 0; round <= 10; round++) {
          const now = round * step;
          for (let i = 0; i < slots + rivals; i++)
            waiting.push(candidate(`s${round}-${i}`, { since: now, priority: 100 }));
          const given = new Set(
            match([offer("r1", { free: slots })], waiting, now).map(({ sessionId }) => sessionId),
          );
          if (given.has("meek")) return true;
          waiting = waiting.filter(({ sessionId }) => !given.has(sessionId));
        }
        return false;
      }),
      { numRuns: 50 },
    );
  });
});

describe("rules-6: suspects", () => {
  const suspect = (sessionId: string, more: Partial<Candidate> = {}) =>
    candidate(sessionId, { suspectSince: NOW, ...more });

  test("a suspect is given to a runner that holds nothing, and no other session with it", () => {
    const sessions = [suspect("s1"), candidate("s2")];
    expect(pairs([offer("r1", { free: 8 })], sessions)).toEqual(["s1→r1"]);
    expect(pairs([offer("r1", { free: 8 }), offer("r2")], sessions)).toEqual(["s1→r1", "s2→r2"]);
    // This also holds when the suspect comes second.
    expect(pairs([offer("r1", { free: 8 })], [suspect("s1"), candidate("s2", { priority: 1 })])).toEqual([
      "s2→r1",
    ]);
  });

  test("if no runner is empty, the one that holds least is kept for one suspect, for at most a minute", () => {
    const offers = [offer("r1", { free: 5, held: 3 }), offer("r2", { free: 6, held: 2 })];
    const [one, two, other] = [suspect("s1"), suspect("s2"), candidate("s3")];
    expect(pairs(offers, [one, two, other])).toEqual(["s3→r1"]);
    expect(pairs(offers, [one, two, other], NOW + ALONE_MS)).toEqual(["s1→r2", "s2→r1", "s3→r2"]);
  });

  test("a suspect that no runner fits keeps no runner", () => {
    const offers = [offer("r1", { free: 5, held: 3 })];
    expect(pairs(offers, [suspect("s1", { demands: { gpu: "1" } }), candidate("s2")])).toEqual(["s2→r1"]);
  });

  test("no session joins a suspect that has committed nothing, for at most five minutes", () => {
    const held = offer("r1", { free: 7, held: 1, suspectSince: NOW });
    expect(pairs([held, offer("r2")], [candidate("s1")], NOW + TRIAL_MS)).toEqual(["s1→r2"]);
    expect(pairs([held], [candidate("s1")], NOW + TRIAL_MS - 1)).toEqual([]);
    expect(pairs([held], [candidate("s1")], NOW + TRIAL_MS)).toEqual(["s1→r1"]);
    expect(pairs([{ ...held, held: 2 }], [candidate("s1")])).toEqual(["s1→r1"]);
  });

  test("a runner with one slot takes a suspect when the slot is free, like any session", () => {
    expect(pairs([offer("r1")], [suspect("s1"), candidate("s2")])).toEqual(["s1→r1"]);
  });

  test("a match is alone exactly where its runner holds and gets nothing else, and a suspect gets company only late", () => {
    fc.assert(
      fc.property(OFFERS, CANDIDATES, (offers, candidates) => {
        const [o, c] = [offers as Offer[], candidates as Candidate[]];
        const matches = match(o, c, NOW);
        for (const { sessionId, runnerId, isAlone } of matches) {
          const { suspectSince } = c.find((each) => each.sessionId === sessionId)!;
          const runner = o.find((each) => each.runnerId === runnerId)!;
          expect(isKept(runner, NOW)).toBe(false);
          if (isAlone) {
            expect([runner.held, suspectSince]).toEqual([0, expect.any(Number)]);
            expect(matches.filter((each) => each.runnerId === runnerId)).toHaveLength(1);
          } else if (suspectSince !== undefined) expect(NOW - suspectSince).toBeGreaterThanOrEqual(ALONE_MS);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("a runner that starts trials gets no suspect and is kept for none, and is asked for a process", () => {
    const [starts, only] = [offer("r1", { free: 8, trials: "starts" }), offer("t1", { trials: "only" })];
    const sessions = [suspect("s1"), candidate("s2")];
    const trials: unknown[] = [];
    const given = (offers: readonly Offer[]) =>
      match(offers, sessions, NOW, (trial) => trials.push(trial)).map((of) => [of.sessionId, of.runnerId]);
    expect(given([starts])).toEqual([["s2", "r1"]]);
    expect(trials.splice(0)).toEqual([{ type: "wanted", runnerId: "r1", suspect: sessions[0] }]);
    expect(given([starts, only])).toEqual([
      ["s1", "t1"],
      ["s2", "r1"],
    ]);
    expect(trials).toEqual([]);
    // It gets the suspect in company when no process has come.
    expect(pairs([starts], sessions, NOW + ALONE_MS)).toEqual(["s1→r1", "s2→r1"]);
    expect(pairs([only], [candidate("s2")])).toEqual([]);
  });

  // One session keeps crashing its runner, and a runner comes back at once. The other sessions commit after a
  // while, and then work for a while.
  test("sessions that a guilty session takes with it never count as poison, and all of them end", () => {
    fc.assert(
      fc.property(
        fc.record({
          runners: fc.integer({ min: 1, max: 3 }),
          slots: fc.integer({ min: 1, max: 8 }),
          innocents: fc.integer({ min: 0, max: 12 }),
          proofMs: fc.integer({ min: 0, max: 3 * ALONE_MS }),
          workMs: fc.integer({ min: 0, max: 3 * ALONE_MS }),
          killsAfterMs: fc.integer({ min: 0, max: 3 * ALONE_MS }),
        }),
        (drawn) => {
          const { poisoned, ended } = live(drawn);
          expect(poisoned).toEqual(["guilty"]);
          expect(ended).toHaveLength(drawn.innocents);
        },
      ),
      { numRuns: 200 },
    );
  });
});

interface Life {
  readonly runners: number;
  readonly slots: number;
  readonly innocents: number;
  readonly proofMs: number;
  readonly workMs: number;
  readonly killsAfterMs: number;
}

/** A fleet that goes by the rules alone, in steps of five seconds, until nothing is left to do. */
function live({ runners, slots, innocents, proofMs, workMs, killsAfterMs }: Life) {
  const STEP_MS = 5_000;
  const LOSSES_MAX = 3;
  const pardon = (session: { losses: number; suspectSince: number }): void => {
    [session.losses, session.suspectSince] = [0, NaN];
  };
  interface Held {
    readonly runnerId: string;
    readonly givenAt: number;
  }
  const names = ["guilty", ...Array.from({ length: innocents }, (_, i) => `innocent-${i}`)];
  const sessions = new Map(names.map((id) => [id, { losses: 0, since: 0, suspectSince: NaN }]));
  const held = new Map<string, Held>();
  const [poisoned, ended]: [string[], string[]] = [[], []];
  for (let now = 0; sessions.size > 0; now += STEP_MS) {
    if (now > 2 * STARVING_MS * names.length) throw new Error(`starving: ${[...sessions.keys()].join()}`);
    for (const [sessionId, { runnerId, givenAt }] of held) {
      const session = sessions.get(sessionId)!;
      const age = now - givenAt;
      if (sessionId === "guilty" && age >= killsAfterMs) {
        for (const [other, { runnerId: its }] of held) {
          if (its !== runnerId) continue;
          held.delete(other);
          const lost = sessions.get(other)!;
          if (!isPoison(++lost.losses, LOSSES_MAX)) continue;
          poisoned.push(other);
          sessions.delete(other);
        }
      } else if (sessionId !== "guilty" && age >= proofMs) {
        session.losses = 0;
        session.suspectSince = NaN;
        if (age < proofMs + workMs) continue;
        ended.push(sessionId);
        held.delete(sessionId);
        sessions.delete(sessionId);
      }
    }
    const offers = Array.from({ length: runners }, (_, i) => {
      const its = [...held].filter(([, { runnerId }]) => runnerId === `r${i}`);
      const suspects = its.filter(([id]) => isSuspect(sessions.get(id)!.losses));
      const since = suspects.map(([, { givenAt }]) => givenAt);
      const suspectSince = since.length === 0 ? {} : { suspectSince: Math.max(...since) };
      return offer(`r${i}`, { free: slots - its.length, held: its.length, ...suspectSince });
    });
    const waiting = [...sessions].filter(([id]) => !held.has(id));
    const candidates = waiting.map(([sessionId, session]) => {
      if (!isSuspect(session.losses)) return candidate(sessionId, { since: session.since });
      if (Number.isNaN(session.suspectSince)) session.suspectSince = now;
      return candidate(sessionId, session);
    });
    for (const { sessionId, runnerId, isAlone } of match(offers, candidates, now)) {
      if (!isAlone) {
        for (const [other, { runnerId: its }] of held)
          if (its === runnerId && isSuspect(sessions.get(other)!.losses)) pardon(sessions.get(other)!);
        if (isSuspect(sessions.get(sessionId)!.losses)) pardon(sessions.get(sessionId)!);
      }
      held.set(sessionId, { runnerId, givenAt: now });
    }
  }
  return { poisoned, ended };
}

// In an upgrade the coordinators are newer than some runners, and start sessions with flags that these do not
// know.
describe("rules-7: a session with behaviour flags", () => {
  const old = offer("old", { behaviourFlags: 7, free: 5 });
  const newer = offer("newer", { behaviourFlags: 15 });

  test("a session goes to a runner that knows its flags, though an older one had it last and has more room", () => {
    const s1 = candidate("s1", { flags: 8, lastRunner: "old" });
    expect(pairs([old, newer], [s1])).toEqual(["s1→newer"]);
    expect(pairs([old, newer], [candidate("s1", { flags: 7 })])).toEqual(["s1→old"]);
  });

  test("a session waits where no runner knows its flags, and says so, and nothing ends it", () => {
    const s1 = candidate("s1", { flags: 8 });
    expect(pairs([old], [s1, candidate("s2")])).toEqual(["s2→old"]);
    expect(unmetBy([old], s1)).toBeUndefined();
    const runner = { ...old, isFull: false, isDraining: false, isSilent: false, quietMs: 0 };
    expect(whyNotTaken([runner], s1)).toContain("does not know the session's behaviour flags (8)");
    expect(whyNotTaken([runner, { ...runner, behaviourFlags: 15 }], s1)).toContain("will claim this session");
  });

  test("a suspect keeps no runner from others that does not know its flags", () => {
    const suspect = candidate("s1", { flags: 8, suspectSince: NOW });
    const busy = { ...old, held: 1 };
    expect(pairs([busy], [suspect, candidate("s2")])).toEqual(["s2→old"]);
  });

  test("a runner that does not say its flags is given sessions without any", () => {
    expect(pairs([offer("r1")], [candidate("s1", { flags: 0 })])).toEqual(["s1→r1"]);
    expect(pairs([offer("r1")], [candidate("s1", { flags: 1 })])).toEqual([]);
  });
});

test("a session is due since its creation, its last arrival, or its timer", () => {
  const row = { createdAt: 1, updatedAt: 5, wakeAt: 9 };
  expect(dueSince({ ...row, status: "submitted" }, 20)).toBe(1);
  expect(dueSince({ ...row, status: "waiting" }, 20)).toBe(9);
  expect(dueSince({ ...row, status: "waiting" }, 8)).toBe(5);
});
