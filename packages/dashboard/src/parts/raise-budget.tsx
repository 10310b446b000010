// Raises the limits of a session whose budget is used up.

import { useState, type FormEvent, type ReactNode } from "react";
import type { Session } from "../api/types.ts";
import { Button } from "./parts.tsx";
import { sessionPath, useDraft } from "./use-session.ts";
import { exactUsdText, raisedLimit } from "@holdfast/proto/view";
import { MICRO } from "./text.ts";

export interface RaisedBudget {
  readonly maxCostMicroUsd?: number;
  readonly maxTokens?: number;
}

interface RaiseProps {
  readonly session: Partial<Pick<Session, "sessionId" | "account" | "exhausted">>;
  /** The name under which typed limits are kept until they are set. */
  readonly draft: string;
  readonly isBusy: boolean;
  /** @returns whether the limits are set. */
  readonly onRaise: (budget: RaisedBudget) => Promise<boolean>;
}

export function RaiseBudget(props: RaiseProps) {
  const { isBusy } = props;
  const limits = limitsOf(props.session);
  const { cost, setCost, tokens, setTokens, problem, raise } = useRaise(props, limits);
  return (
    <form
      onSubmit={(event) => void raise(event)}
      noValidate
      className="flex flex-wrap items-center gap-x-3 gap-y-2"
    >
      {limits.maxCostMicroUsd !== undefined || limits.maxTokens === undefined ? (
        <LimitBox inputMode="decimal" value={cost} onChange={setCost}>
          Limit in dollars
          {limits.maxCostMicroUsd === undefined ? "" : `, now ${exactUsdText(limits.maxCostMicroUsd)}`}
        </LimitBox>
      ) : null}
      {limits.maxTokens === undefined ? null : (
        <LimitBox inputMode="numeric" value={tokens} onChange={setTokens}>
          Limit in tokens, now {limits.maxTokens.toLocaleString()}
        </LimitBox>
      )}
      <Button type="submit" kind="main" isDisabled={isBusy}>
        Raise
      </Button>
      {problem === undefined ? null : (
        <span role="alert" className="text-bad">
          {problem}
        </span>
      )}
    </form>
  );
}

type Limits = NonNullable<NonNullable<Session["account"]>["limits"]>;

/** The budget of a session above is known only by the limit that is used up. */
function limitsOf({ sessionId, account, exhausted }: RaiseProps["session"]): Limits {
  return exhausted === undefined || exhausted.payer === sessionId
    ? (account?.limits ?? {})
    : { [exhausted.limit]: exhausted.max };
}

/** The limits that a person types, and the check before they are set. */
function useRaise({ session, draft, onRaise }: RaiseProps, limits: Limits) {
  const { exhausted } = session;
  /** A limit that is enough for the next call. */
  const enough = (name: string): number | undefined =>
    exhausted?.limit === name && exhausted.per === undefined ? raisedLimit(exhausted) : undefined;
  const [dollars, count] = [enough("maxCostMicroUsd"), enough("maxTokens")];
  const [cost, setCost] = useDraft(
    `${draft} in dollars`,
    dollars === undefined ? "" : String(dollars / MICRO),
  );
  const [tokens, setTokens] = useDraft(`${draft} in tokens`, count === undefined ? "" : String(count));
  const [problem, setProblem] = useState<string>();
  const raise = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const [maxCostMicroUsd, maxTokens] = [Math.round(Number(cost) * MICRO), Number(tokens)];
    const found =
      problemOf(cost, maxCostMicroUsd, limits.maxCostMicroUsd) ??
      problemOf(tokens, maxTokens, limits.maxTokens);
    setProblem(cost === "" && tokens === "" ? "write a new limit" : found);
    if (found !== undefined || (cost === "" && tokens === "")) return;
    const budget = {
      ...(cost === "" ? {} : { maxCostMicroUsd }),
      ...(tokens === "" ? {} : { maxTokens }),
    };
    if (!(await onRaise(budget))) return;
    setCost("");
    setTokens("");
  };
  return { cost, setCost, tokens, setTokens, problem, raise };
}

function LimitBox(props: {
  readonly inputMode: "decimal" | "numeric";
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly children: ReactNode;
}) {
  const { inputMode, value, onChange, children } = props;
  return (
    <label className="flex items-center gap-2">
      <span>{children}</span>
      <input
        inputMode={inputMode}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className="w-28 rounded-md border border-line bg-ground px-2 py-1"
      />
    </label>
  );
}

/** The budget that a session is paused for: its own, or that of a session above it. */
export function payerPath({ sessionId, exhausted }: Session): string {
  return sessionPath(exhausted?.payer ?? sessionId, "budget");
}

function problemOf(text: string, limit: number, before: number | undefined): string | undefined {
  if (text === "") return undefined;
  if (!Number.isSafeInteger(limit) || limit < 1) return "a limit is a number above zero";
  return before !== undefined && limit <= before ? "the new limit is not above the present one" : undefined;
}
