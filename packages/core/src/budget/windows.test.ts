// Windows that roll: never more than the limit in any of them, free again in time, and a small ledger.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Amount } from "../journal/amounts.ts";
import {
  applyCharges,
  decideAdmission,
  grantWindow,
  isLow,
  NO_AMOUNT,
  openAccount,
  raise,
  remainingOf,
  separateAccount,
  usesOf,
  type Account,
  type Budget,
  type Charge,
} from "./budget.ts";
import { checkBudget } from "./check-budget.ts";
import { book, spentIn, type WindowLedger } from "./windows.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const LENGTHS = { hour: HOUR, day: DAY, month: 30 * DAY } as const;
/** How much later than the window's length an amount may be free again (windows-2). */
const LATE = { hour: HOUR, day: HOUR, month: DAY } as const;
const ROLLING = ["hour", "day", "month"] as const;
type Rolling = (typeof ROLLING)[number];

const tokens = (count: number): Amount => ({ ...NO_AMOUNT, tokens: count });

/** Amounts with the time since the one before: often within the hour, sometimes after weeks. */
const SPENDS = fc.array(
  fc.record({
    afterMs: fc.oneof(
      { weight: 4, arbitrary: fc.nat({ max: HOUR }) },
      { weight: 2, arbitrary: fc.nat({ max: DAY }) },
      { weight: 1, arbitrary: fc.nat({ max: 20 * DAY }) },
    ),
    count: fc.integer({ min: 1, max: 40 }),
  }),
  { minLength: 1, maxLength: 60 },
);

/** An account after some charges, all of the same time. */
function charged(account: Account, now: number, ...charges: Charge[]) {
  const holds = new Map<number, Amount | undefined>();
  const funds = {
    payers: new Map([["p", account]]),
    held: (task: number) => holds.get(task),
    isOwnTurn: () => true,
  };
  const { admissions, payers } = applyCharges(funds, charges, now);
  return { admissions, account: payers.get("p")! };
}

const spending = (count: number): Charge[] => [
  { type: "reserve", task: 1, amount: tokens(count) },
  { type: "settle", task: 1, used: tokens(count) },
];

const perWindow = (per: Rolling, maxTokens: number): Budget => ({ windows: [{ per, maxTokens }] });

describe.each(ROLLING)("windows-2: the window %s", (per) => {
  test("in no stretch of its length is more spent than the limit", () => {
    fc.assert(
      fc.property(SPENDS, (spends) => {
        let account = openAccount(perWindow(per, 100));
        let now = 1_000 * DAY;
        const spent: [at: number, count: number][] = [];
        for (const { afterMs, count } of spends) {
          now += afterMs;
          const result = charged(account, now, ...spending(count));
          ({ account } = result);
          if (result.admissions[0]!.status === "admitted") spent.push([now, count]);
          const inLast = spent
            .filter(([at]) => at > now - LENGTHS[per])
            .reduce((sum, [, amount]) => sum + amount, 0);
          expect(inLast).toBeLessThanOrEqual(100);
        }
      }),
    );
  });

  test("its ledger counts all of its length, and little of what is older", () => {
    fc.assert(
      fc.property(SPENDS, (spends) => {
        let ledger: WindowLedger = [];
        let now = 1_000 * DAY;
        const spent: [at: number, count: number][] = [];
        const since = (from: number): number =>
          spent.filter(([at]) => at > from).reduce((sum, [, amount]) => sum + amount, 0);
        for (const { afterMs, count } of spends) {
          now += afterMs;
          ledger = book(ledger, per, now, tokens(count));
          spent.push([now, count]);
          for (const at of [now, now + LENGTHS[per] / 2, now + 2 * LENGTHS[per]]) {
            const counted = spentIn({ [per]: ledger }, per, at).tokens;
            expect(counted).toBeGreaterThanOrEqual(since(at - LENGTHS[per]));
            expect(counted).toBeLessThanOrEqual(since(at - LENGTHS[per] - LATE[per]));
          }
        }
      }),
    );
  });

  test("a refusal says when there is room, which is then and not before", () => {
    fc.assert(
      fc.property(SPENDS, fc.integer({ min: 1, max: 100 }), (spends, wanted) => {
        let account = openAccount(perWindow(per, 100));
        let now = 1_000 * DAY;
        for (const { afterMs, count } of spends) {
          now += afterMs;
          ({ account } = charged(account, now, ...spending(count)));
        }
        const admission = decideAdmission(new Map([["p", account]]), tokens(wanted), now);
        if (admission.status !== "refused") return;
        const { until } = admission;
        expect(admission).toMatchObject({ payer: "p", per, limit: "maxTokens", max: 100 });
        expect(until).toBeGreaterThan(now);
        const at = (time: number) => decideAdmission(new Map([["p", account]]), tokens(wanted), time).status;
        expect([at(until! - 1), at(until!)]).toEqual(["refused", "admitted"]);
      }),
    );
  });

  test("windows-3: its ledger stays small, however much and however long is spent", () => {
    let ledger: WindowLedger = [];
    let longest = 0;
    for (let now = 1_000 * DAY; now < 1_090 * DAY; now += HOUR / 3) {
      ledger = book(ledger, per, now, tokens(1));
      longest = Math.max(longest, ledger.length);
    }
    expect(longest).toBeLessThanOrEqual({ hour: 2, day: 25, month: 25 + 31 }[per]);
    const length = JSON.stringify(ledger).length;
    expect(length).toBeLessThan(2_500);
    expect(spentIn({ [per]: ledger }, per, 1_090 * DAY).tokens).toBeGreaterThanOrEqual(
      3 * (LENGTHS[per] / HOUR) - 1,
    );
  });
});

test("a refusal for more than the whole limit, or for a limit per run, has no time at which it ends", () => {
  const account = openAccount({ windows: [{ per: "day", maxTokens: 10 }] });
  expect(charged(account, 5, ...spending(11)).admissions[0]).not.toHaveProperty("until");
  const run = openAccount({ windows: [{ per: "run", maxTokens: 10 }] });
  const spent = charged(run, 5, ...spending(10)).account;
  const refused = charged(spent, 9_000 * DAY, ...spending(1)).admissions[0];
  expect(refused).toMatchObject({ status: "refused", per: "run", used: 10 });
  expect(refused).not.toHaveProperty("until");
});

test("a clock that is set back empties no window", () => {
  let { account } = charged(openAccount(perWindow("hour", 10)), 10 * DAY, ...spending(8));
  ({ account } = charged(account, 9 * DAY, ...spending(2)));
  expect(charged(account, 9 * DAY, ...spending(1)).admissions).toMatchObject([
    { status: "refused", used: 10 },
  ]);
  expect(charged(account, 10 * DAY + HOUR, ...spending(1)).admissions).toEqual([{ status: "admitted" }]);
});

test("every window and the lifetime are charged, and the first that is full refuses", () => {
  const budget: Budget = {
    maxTokens: 30,
    windows: [
      { per: "hour", maxTokens: 10 },
      { per: "day", maxTokens: 20 },
    ],
  };
  let { account } = charged(openAccount(budget), DAY, ...spending(10));
  expect(charged(account, DAY, ...spending(1)).admissions[0]).toMatchObject({
    per: "hour",
    until: DAY + HOUR,
  });
  ({ account } = charged(account, DAY + HOUR, ...spending(10)));
  expect(charged(account, DAY + 2 * HOUR, ...spending(1)).admissions[0]).toMatchObject({
    per: "day",
    until: 2 * DAY,
  });
  ({ account } = charged(account, 4 * DAY, ...spending(10)));
  const refused = charged(account, 9 * DAY, ...spending(1)).admissions[0]!;
  expect(refused).toMatchObject({ status: "refused", used: 30, max: 30 });
  expect(refused).not.toHaveProperty("per");
  expect(remainingOf([account], 4 * DAY)).toEqual({ tokens: 0 });
});

test("a turn empties the window per turn, and leaves the others as they are", () => {
  const budget: Budget = {
    windows: [
      { per: "turn", maxTokens: 10 },
      { per: "run", maxTokens: 15 },
    ],
  };
  const { account } = charged(openAccount(budget), 0, ...spending(10), { type: "turn" }, ...spending(5));
  expect(usesOf(account, 0).map(({ per, spent }) => [per, spent])).toEqual([
    ["turn", 5],
    ["run", 15],
  ]);
});

test("windows-4: a grant empties a window, and reserved amounts stay reserved", () => {
  const { account } = charged(openAccount(perWindow("day", 10)), 0, ...spending(10));
  const busy = { ...account, low: true, reserved: tokens(4) };
  const granted = grantWindow(busy, "day", 1);
  expect(granted).toMatchObject({ low: false, spent: tokens(10), reserved: tokens(4) });
  expect(remainingOf([granted], 1)).toEqual({ tokens: 6 });
});

test("an account is low while a window is, and not for good", () => {
  const { account } = charged(openAccount(perWindow("hour", 100)), 0, ...spending(91));
  expect([isLow(account, 0), isLow(account, HOUR - 1), isLow(account, HOUR)]).toEqual([true, true, false]);
});

test("a raise changes or adds windows, and keeps their other limits", () => {
  const account = openAccount({ windows: [{ per: "day", maxTokens: 10, maxSteps: 5 }] });
  const windows = [
    { per: "day", maxTokens: 20 },
    { per: "run", maxSteps: 3 },
  ] as const;
  expect(raise(account, { windows }, 0).limits).toEqual({
    windows: [
      { per: "day", maxTokens: 20, maxSteps: 5 },
      { per: "run", maxSteps: 3 },
    ],
  });
});

test("a session without its payers keeps the nearest window of each kind, and gets no limit for life from it", () => {
  const own = charged(openAccount(perWindow("day", 10)), 0, ...spending(3)).account;
  const budget: Budget = {
    maxSteps: 9,
    windows: [
      { per: "day", maxTokens: 100 },
      { per: "hour", maxTokens: 50 },
    ],
  };
  const above = charged(openAccount(budget), 0, ...spending(40)).account;
  const separate = separateAccount(own, [above]);
  expect(separate.limits).toEqual({
    maxSteps: 9,
    windows: [
      { per: "day", maxTokens: 10 },
      { per: "hour", maxTokens: 50 },
    ],
  });
  expect(usesOf(separate, 0).map(({ per, spent }) => [per, spent])).toEqual([
    [undefined, 0],
    ["day", 3],
    ["hour", 40],
  ]);
});

test.each<[string, unknown]>([
  ["no list", { per: "day", maxTokens: 1 }],
  ["another window", [{ per: "week", maxTokens: 1 }]],
  ["none", [{ maxTokens: 1 }]],
  ["a lifetime", [{ per: "lifetime", maxTokens: 1 }]],
  ["no limit", [{ per: "day" }]],
  ["a limit of nothing", [{ per: "day", maxTokens: 0 }]],
  ["a limit that is none of amounts", [{ per: "day", ttlMs: 5 }]],
  ["the turns of a turn", [{ per: "turn", maxTurns: 1 }]],
  [
    "two of a kind",
    [
      { per: "day", maxTokens: 1 },
      { per: "day", maxSteps: 1 },
    ],
  ],
])("%s is no window of a budget", (_, windows) => {
  expect(() => checkBudget({ windows } as Budget)).toThrow(expect.objectContaining({ code: "usage" }));
});
