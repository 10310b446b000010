// Budgets in plain units, as people write and read them: "5.00usd,200000tokens,0.50usd/day", "10m".
//
// Integers inside: money is counted in millionths of a dollar, time in milliseconds, and what is written is
// never rounded.

import {
  type Account,
  type Amount,
  type Budget,
  type BudgetWindow,
  didYouMean,
  parseDuration,
  type Per,
  PERIODS,
  UsageError,
  usesOf,
} from "@holdfast/core";
import { exactUsdText } from "@holdfast/proto/view";
import type { Arguments } from "../frame/command.ts";
import { duration, table } from "../frame/plain-text.ts";

/** The units of limits: how each is written, which limit it sets, and which usage counts against it. */
const UNITS = {
  usd: { limit: "maxCostMicroUsd", kind: "costMicroUsd", title: "cost" },
  tokens: { limit: "maxTokens", kind: "tokens", title: "tokens" },
  steps: { limit: "maxSteps", kind: "steps", title: "steps" },
  turns: { limit: "maxTurns", kind: "turns", title: "turns" },
} as const satisfies Record<string, { limit: keyof Budget; kind: keyof Amount; title: string }>;

type Unit = keyof typeof UNITS;
type UnitLimit = (typeof UNITS)[Unit]["limit"];
const UNIT_NAMES = Object.keys(UNITS) as Unit[];
const BUDGET_EXAMPLE = "5.00usd,200000tokens,0.50usd/day";
/** How a limit without a window may be written, and is shown. */
const LIFETIME = "lifetime";
const PER_NAMES: readonly string[] = [LIFETIME, ...PERIODS];

/** @throws UsageError naming the part that is no limit. */
export function parseBudget(text: string, at: string): Budget {
  const limitsPer = new Map<string, { -readonly [limit in UnitLimit]?: number }>();
  for (const part of text.split(",")) {
    const [, digits, fraction = "", unit = "", window = LIFETIME] =
      /^(\d+)(?:\.(\d+))?([a-z]*)(?:\/([a-z]+))?$/i.exec(part.trim()) ?? [];
    if (digits === undefined) throw wrong(`"${part.trim()}" is no limit`, at, text);
    const known = UNIT_NAMES.find((name) => name === unit.toLowerCase());
    if (known === undefined) {
      const what = unit === "" ? `"${digits}" has no unit` : `there is no unit "${unit}"`;
      throw wrong(`${what}${didYouMean(unit, UNIT_NAMES)}`, at, text);
    }
    const { limit, title } = UNITS[known];
    const per = window.toLowerCase();
    if (!PER_NAMES.includes(per))
      throw wrong(`there is no window "${window}"${didYouMean(per, PER_NAMES)}`, at, text);
    if (per === "turn" && limit === "maxTurns") throw wrong("a turn has no turns to limit", at, text);
    const limits = limitsPer.get(per) ?? {};
    if (limits[limit] !== undefined)
      throw wrong(`the limit of ${title}${perText(per)} is given twice`, at, text);
    const places = known === "usd" ? 6 : 0;
    if (fraction.length > places) throw wrong(`"${part.trim()}" is too exact`, at, text, EXACTNESS[places]);
    const amount = Number(digits + fraction.padEnd(places, "0"));
    if (!Number.isSafeInteger(amount) || amount === 0)
      throw wrong(`"${part.trim()}" is ${amount === 0 ? "nothing" : "too much"}`, at, text);
    limits[limit] = amount;
    limitsPer.set(per, limits);
  }
  const windows = PERIODS.flatMap((per): BudgetWindow[] => {
    const limits = limitsPer.get(per);
    return limits === undefined ? [] : [{ per, ...limits }];
  });
  return { ...limitsPer.get(LIFETIME), ...(windows.length === 0 ? {} : { windows }) };
}

/** @throws UsageError for anything that is no window. */
export function parsePer(text: string, at: string): Per {
  const per = PERIODS.find((name) => name === text.toLowerCase());
  if (per !== undefined) return per;
  throw new UsageError(`there is no window "${text}"${didYouMean(text, PERIODS)}`, {
    at,
    expected: `one of ${PERIODS.join(", ")}`,
  });
}

/** " per day"; nothing for a limit per lifetime. */
export function perText(per: string | undefined): string {
  return per === undefined || per === LIFETIME ? "" : ` per ${per}`;
}

const EXACTNESS: Readonly<Record<number, string>> = {
  0: "a whole number",
  6: "at most six digits after the point: millionths of a dollar",
};

function wrong(message: string, at: string, got: string, expected?: string): UsageError {
  return new UsageError(message, {
    at,
    got,
    expected:
      expected ??
      `amounts above 0 with a unit of ${UNIT_NAMES.join(", ")}, between commas; behind a slash the window, one of ${PERIODS.join(", ")}: ${BUDGET_EXAMPLE}`,
  });
}

/** The values of `--budget` and `--ttl`. */
export function readLimits(args: Arguments): { readonly budget?: Budget; readonly timeoutMs?: number } {
  const budget = args.text("budget");
  const ttl = args.text("ttl");
  return {
    ...(budget === undefined ? {} : { budget: parseBudget(budget, "--budget") }),
    ...(ttl === undefined ? {} : { timeoutMs: parseDuration(ttl, "--ttl") }),
  };
}

function thousands(amount: number): string {
  return String(amount).replaceAll(/\B(?=(\d{3})+$)/g, ",");
}

/** A limit, and the spent, reserved and remaining parts of it. */
export interface LimitUse {
  readonly limit: UnitLimit;
  readonly per: Per | "lifetime";
  /** "cost", "cost per day". */
  readonly title: string;
  readonly max: number;
  readonly spent: number;
  /** The part of `spent` that was charged for lost attempts. */
  readonly lost: number;
  readonly reserved: number;
  readonly left: number;
}

/** Those per lifetime first, then by window, the shortest first. @param now for what windows hold. */
export function limitUses(account: Account, now: number): LimitUse[] {
  const { reserved, lost } = account;
  const uses = usesOf(account, now);
  return [undefined, ...PERIODS].flatMap((per) =>
    UNIT_NAMES.flatMap((unit) => {
      const { limit, kind, title } = UNITS[unit];
      const use = uses.find((one) => one.per === per && one.limit === limit);
      if (use === undefined) return [];
      const { max, spent } = use;
      const left = Math.max(0, max - spent - reserved[kind]);
      const lostPart = per === undefined ? (lost?.[kind] ?? 0) : 0;
      const parts = { spent, lost: lostPart, reserved: reserved[kind], left };
      return [{ limit, per: per ?? LIFETIME, title: `${title}${perText(per)}`, max, ...parts }];
    }),
  );
}

const COLUMNS = ["max", "spent", "lost", "reserved", "left"] as const;

/** The table of one account, a line for each limit. */
export function accountLines(account: Account, now: number): string[] {
  const uses = limitUses(account, now);
  if (uses.length === 0) return [];
  const isShort = uses.every(({ lost }) => lost === 0);
  const columns = COLUMNS.filter((column) => column !== "lost" || !isShort);
  const titles = columns.map((column) => (column === "max" ? "LIMIT" : column.toUpperCase()));
  const rows = uses.map(({ title, ...use }) => {
    return [title, ...columns.map((column) => amountText(use.limit, use[column]))];
  });
  return table([["", ...titles], ...rows]);
}

/** "cost $0.01 of $5.00, tokens 1,200 of 200,000 (100 for lost attempts)". */
export function accountText(account: Account, now: number): string {
  return limitUses(account, now)
    .map(({ limit, title, spent, lost, reserved, max }) => {
      const parts = [
        ...(lost === 0 ? [] : [`${amountText(limit, lost)} for lost attempts`]),
        ...(reserved === 0 ? [] : [`and ${amountText(limit, reserved)} reserved`]),
      ];
      const more = parts.length === 0 ? "" : ` (${parts.join(", ")})`;
      return `${title} ${amountText(limit, spent)} of ${amountText(limit, max)}${more}`;
    })
    .join(", ");
}

/** "cost $5.00, cost $0.50 per day, time 10 min 0 s". */
export function limitsText(limits: Budget): string {
  const amounts = [{ per: LIFETIME, ...limits }, ...(limits.windows ?? [])].flatMap((inWindow) =>
    UNIT_NAMES.flatMap((unit) => {
      const { limit, title } = UNITS[unit];
      const max = inWindow[limit];
      return max === undefined ? [] : `${title} ${amountText(limit, max)}${perText(inWindow.per)}`;
    }),
  );
  const time = limits.ttlMs === undefined ? [] : [`time ${duration(limits.ttlMs)}`];
  return [...amounts, ...time].join(", ");
}

/** A limit as `--raise` reads it: "400000tokens", "0.50usd/day". */
export function writtenLimit(limit: UnitLimit, amount: number, per?: Per): string {
  const unit = unitOf(limit);
  if (per !== undefined) return `${writtenLimit(limit, amount)}/${per}`;
  if (unit !== "usd") return `${amount}${unit}`;
  const digits = String(amount).padStart(7, "0");
  return `${digits.slice(0, -6)}.${digits.slice(-6).replace(/0{1,4}$/, "")}${unit}`;
}

function unitOf(limit: UnitLimit): Unit {
  return UNIT_NAMES.find((unit) => UNITS[unit].limit === limit)!;
}

export function amountText(limit: UnitLimit, amount: number): string {
  return limit === "maxCostMicroUsd" ? exactUsdText(amount) : thousands(amount);
}
