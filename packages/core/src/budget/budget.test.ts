import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  admitAgain,
  applyCharges,
  decideAdmission,
  isLow,
  NO_AMOUNT,
  openAccount,
  raise,
  remainingOf,
  settleAll,
  type Account,
  type Budget,
  type Charge,
  type Hold,
} from "./budget.ts";
import { checkBudget } from "./check-budget.ts";
import type { Amount } from "../journal/amounts.ts";

const KINDS = ["tokens", "costMicroUsd", "steps", "turns"] as const;
const LIMIT_OF = {
  tokens: "maxTokens",
  costMicroUsd: "maxCostMicroUsd",
  steps: "maxSteps",
  turns: "maxTurns",
} as const;

const LIMIT = fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined });
const BUDGET = fc.record({
  maxTokens: LIMIT,
  maxCostMicroUsd: LIMIT,
  maxSteps: LIMIT,
  maxTurns: LIMIT,
}) as fc.Arbitrary<Budget>;

/** A worst case, and which share of it is used in the end. */
const ACT = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constant("reserve"),
      task: fc.nat({ max: 5 }),
      tokens: fc.nat({ max: 60 }),
      costMicroUsd: fc.nat({ max: 60 }),
      steps: fc.nat({ max: 1 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant("settle"),
      task: fc.nat({ max: 5 }),
      percent: fc.nat({ max: 100 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("turn") }) },
);

const isOwnTurn = (): boolean => true;

type Act = typeof ACT extends fc.Arbitrary<infer T> ? T : never;

/**
 * The charges of an honest session: it starts only admitted tasks, and uses no more than their worst case.
 */
function chargeOf(act: Act, holds: ReadonlyMap<number, Amount>): Charge | undefined {
  if (act.type === "turn") return { type: "turn" };
  if (act.type === "reserve") {
    const { task, tokens, costMicroUsd, steps } = act;
    return { type: "reserve", task, amount: { tokens, costMicroUsd, steps, turns: 0 } };
  }
  const held = holds.get(act.task);
  if (held === undefined) return undefined;
  const part = (amount: number) => Math.floor((amount * act.percent) / 100);
  const used = { ...NO_AMOUNT, tokens: part(held.tokens), costMicroUsd: part(held.costMicroUsd) };
  return { type: "settle", task: act.task, used };
}

describe("charging", () => {
  test("B1: with true worst cases nothing is ever overspent, whatever the order and how many pay", () => {
    fc.assert(
      fc.property(fc.array(BUDGET, { minLength: 1, maxLength: 3 }), fc.array(ACT), (budgets, acts) => {
        let payers: ReadonlyMap<string, Account> = new Map(budgets.map((b, i) => [`p${i}`, openAccount(b)]));
        const holds = new Map<number, Amount>();
        for (const act of acts) {
          const charge = chargeOf(act, holds);
          if (charge === undefined) continue;
          const before = payers;
          const charged = applyCharges({ payers, held: (task) => holds.get(task), isOwnTurn }, [charge], 0);
          payers = charged.payers;
          for (const [task, amount] of charged.holds) {
            if (amount === undefined) holds.delete(task);
            else holds.set(task, amount);
          }
          for (const [payer, { limits, spent, reserved }] of payers) {
            for (const kind of KINDS) {
              const max = limits[LIMIT_OF[kind]] ?? Infinity;
              expect(spent[kind] + reserved[kind], `${payer} ${kind}`).toBeLessThanOrEqual(max);
              expect(spent[kind], "what was spent only grows").toBeGreaterThanOrEqual(
                before.get(payer)!.spent[kind],
              );
              expect(Number.isSafeInteger(spent[kind]) && reserved[kind] >= 0).toBe(true); // budget-3.
            }
            const held = [...holds.values()].reduce((sum, { tokens }) => sum + tokens, 0);
            expect(reserved.tokens, "reserved is what is held").toBe(held);
          }
        }
        const over = applyCharges(
          { payers, held: (task) => holds.get(task), isOwnTurn },
          settleAll(
            [...holds].map(([task, amount]): Hold => ({ task, amount })),
            false,
          ),
          0,
        );
        for (const { reserved } of over.payers.values()) expect(reserved).toEqual(NO_AMOUNT);
      }),
    );
  });

  test("B2: many charges at once are the same charges one after another", () => {
    fc.assert(
      fc.property(BUDGET, fc.array(ACT, { maxLength: 12 }), (budget, acts) => {
        const charges = acts.flatMap((act) => chargeOf(act, new Map()) ?? []);
        const start = new Map([["p", openAccount(budget)]]);
        const atOnce = applyCharges({ payers: start, held: () => undefined, isOwnTurn }, charges, 0);
        let payers: ReadonlyMap<string, Account> = start;
        const holds = new Map<number, Amount | undefined>();
        const admissions = charges.flatMap((charge) => {
          const charged = applyCharges({ payers, held: (task) => holds.get(task), isOwnTurn }, [charge], 0);
          payers = charged.payers;
          for (const [task, amount] of charged.holds) holds.set(task, amount);
          return charged.admissions;
        });
        expect({ ...atOnce, holds: [...atOnce.holds] }).toEqual({ admissions, payers, holds: [...holds] });
      }),
    );
  });

  test("the nearest payer that refuses decides, before any that would only let it wait", () => {
    const busy = { ...openAccount({ maxTokens: 10 }), reserved: { ...NO_AMOUNT, tokens: 10 } };
    const spent = { ...openAccount({ maxTokens: 10 }), spent: { ...NO_AMOUNT, tokens: 10 } };
    const amount = { ...NO_AMOUNT, tokens: 1 };
    expect(decideAdmission(new Map([["near", busy]]), amount, 0)).toEqual({ status: "queued" });
    const both = new Map([
      ["near", busy],
      ["far", spent],
    ]);
    expect(decideAdmission(both, amount, 0)).toMatchObject({ status: "refused", payer: "far" });
    expect(decideAdmission(both, NO_AMOUNT, 0)).toEqual({ status: "admitted" });
  });

  test("only the reservations are known of charges that were decided before", () => {
    const amount = { ...NO_AMOUNT, tokens: 1 };
    const charges: Charge[] = [
      { type: "reserve", task: 1, amount },
      { type: "settle", task: 1, used: amount },
      { type: "reserve", task: 2, amount },
      { type: "turn" },
    ];
    const statuses = (isPaid: boolean) =>
      admitAgain(charges, isPaid, [{ task: 1, amount }]).map(({ status }) => status);
    expect(statuses(true)).toEqual(["admitted", "queued", "queued"]);
    expect(statuses(false)).toEqual(["admitted", "admitted", "admitted"]);
  });
});

describe("the remaining amount", () => {
  test("the remaining amount is the least of all payers, never below zero, and absent without a limit", () => {
    const over = { ...openAccount({ maxTokens: 10 }), spent: { ...NO_AMOUNT, tokens: 15 } };
    const other = openAccount({ maxTokens: 7, maxSteps: 3 });
    expect(remainingOf([over, other], 0)).toEqual({ tokens: 0, steps: 3 });
    expect(remainingOf([openAccount({})], 0)).toEqual({});
  });

  test("an account is low when less than a tenth is left, and not low once raised", () => {
    const at = (tokens: number, limits: Budget = { maxTokens: 100 }): Account => {
      return { ...openAccount(limits), spent: { ...NO_AMOUNT, tokens }, low: true };
    };
    expect(isLow(at(90), 0)).toBe(false);
    expect(isLow(at(91), 0)).toBe(true);
    expect(raise(at(91), { maxTokens: 1_000 }, 0).low).toBe(false);
    expect(raise(at(91), { maxSteps: 5 }, 0).low).toBe(true);
    expect(raise(at(91), { maxSteps: 5 }, 0).limits).toEqual({ maxTokens: 100, maxSteps: 5 });
    const unset = { maxTokens: undefined, maxSteps: 5 } as unknown as Budget;
    expect(raise(at(91), unset, 0).limits).toEqual({ maxTokens: 100, maxSteps: 5 });
  });
});

test.each([{ maxTokens: 0 }, { maxTokens: 1.5 }, { maxSteps: -1 }, { max: 1 }, { onExhausted: "wait" }])(
  "%j is no budget",
  (budget) => {
    expect(() => checkBudget(budget as Budget)).toThrow(expect.objectContaining({ code: "usage" }));
  },
);
