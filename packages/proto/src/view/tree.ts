// `inTreeOrder`, `nodeFacts`, `budgetUses`: the sessions of a tree, as the command and the page show them.

import { exactUsdText } from "./cost.ts";

interface Amounts {
  readonly tokens: number;
  readonly costMicroUsd: number;
  readonly steps: number;
  readonly turns: number;
}

interface AmountLimits {
  readonly maxCostMicroUsd?: number;
  readonly maxTokens?: number;
  readonly maxSteps?: number;
  readonly maxTurns?: number;
}

export interface PlainAccount {
  readonly limits?: AmountLimits & {
    /** The limits of each hour, day, month, run or turn. */
    readonly windows?: readonly (AmountLimits & { readonly per: string })[];
  };
  readonly spent?: Amounts;
  readonly reserved?: Amounts;
  /** The amount that is spent in each window now. Absent where it is not known. */
  readonly windows?: readonly { readonly per: string; readonly spent?: Amounts }[];
}

/** A limit for the whole life of a session or for one window, and how far it is used up. */
export interface BudgetUse {
  /** The window; absent for the whole life. */
  readonly per?: string;
  readonly name: "cost" | "tokens" | "steps" | "turns";
  readonly max: number;
  readonly used: number;
  readonly reserved: number;
  /** Whether less than a tenth is left. */
  readonly isTight: boolean;
  /** "cost $0.03 of $5.00". */
  readonly text: string;
}

const UNITS = [
  ["cost", "maxCostMicroUsd", "costMicroUsd"],
  ["tokens", "maxTokens", "tokens"],
  ["steps", "maxSteps", "steps"],
  ["turns", "maxTurns", "turns"],
] as const;

export function budgetUses({
  limits = {},
  spent,
  reserved,
  windows = [],
}: PlainAccount): readonly BudgetUse[] {
  const inWindows = windows.flatMap(({ per, spent: used }) =>
    usesOf(limits.windows?.find((limit) => limit.per === per) ?? {}, used, undefined, per),
  );
  return [...usesOf(limits, spent, reserved), ...inWindows];
}

function usesOf(
  limits: AmountLimits,
  spent: Amounts | undefined,
  reserved: Amounts | undefined,
  per?: string,
): readonly BudgetUse[] {
  return UNITS.flatMap(([name, limit, kind]) => {
    const max = limits[limit];
    if (max === undefined) return [];
    const [used, held] = [spent?.[kind] ?? 0, reserved?.[kind] ?? 0];
    const amount = (value: number): string =>
      name === "cost" ? exactUsdText(value) : value.toLocaleString("en");
    const window = per === undefined ? "" : ` per ${per}`;
    const text = `${name} ${amount(used)} of ${amount(max)}${window}${held === 0 ? "" : `, ${amount(held)} reserved`}`;
    const isTight = used + held > max * 0.9;
    return [{ name, max, used, reserved: held, isTight, text, ...(per === undefined ? {} : { per }) }];
  });
}

/** The progress that a session reported, and its budget. They stand beside it in a tree. Untrusted text. */
export function nodeFacts(node: {
  readonly progress?: unknown;
  readonly account?: PlainAccount | undefined;
}): readonly string[] {
  const { progress, account } = node;
  return [
    ...(progress === undefined || progress === null
      ? []
      : [typeof progress === "string" ? progress : (JSON.stringify(progress) ?? "")]),
    ...(account === undefined ? [] : budgetUses(account).map(({ text }) => text)),
  ];
}

/** The children of a session, the oldest first. */
export function inTreeOrder<S extends { readonly createdAt: number; readonly sessionId: string }>(
  children: readonly S[],
): readonly S[] {
  return children.toSorted((a, b) => a.createdAt - b.createdAt || childNumber(a) - childNumber(b));
}

/** Children of one turn begin in the same millisecond. */
function childNumber({ sessionId }: { readonly sessionId: string }): number {
  return Number(/-(\d+)$/.exec(sessionId)?.[1] ?? 0);
}
