// Raises the limits of a session whose budget is used up.

import { useState, type FormEvent } from "react";
import type { Session } from "../api/types.ts";
import { Button } from "./parts.tsx";
import { sessionPath, useDraft } from "./use-session.ts";
import { raisedLimit, usdText } from "@holdfast/proto/view";

export interface RaisedBudget {
  readonly maxCostMicroUsd?: number;
  readonly maxTokens?: number;
}

const MICRO = 1_000_000;

export function RaiseBudget(props: {
  readonly session: Partial<Pick<Session, "sessionId" | "account" | "exhausted">>;
  /** The name under which typed limits are kept until they are set. */
  readonly draft: string;
  readonly isBusy: boolean;
  /** @returns whether the limits are set. */
  readonly onRaise: (budget: RaisedBudget) => Promise<boolean>;
}) {
  const { session, draft, isBusy, onRaise } = props;
  const { sessionId, account, exhausted } = session;
  // The budget of a session above is known only by the limit that is used up.
  const limits: NonNullable<NonNullable<Session["account"]>["limits"]> =
    exhausted === undefined || exhausted.payer === sessionId
      ? (account?.limits ?? {})
      : { [exhausted.limit]: exhausted.max };
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
  const hasCost = limits.maxCostMicroUsd !== undefined || limits.maxTokens === undefined;
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
  const field = "w-28 rounded-md border border-line bg-ground px-2 py-1";
  return (
    <form
      onSubmit={(event) => void raise(event)}
      noValidate
      className="flex flex-wrap items-center gap-x-3 gap-y-2"
    >
      {hasCost ? (
        <label className="flex items-center gap-2">
          <span>
            Limit in dollars
            {limits.maxCostMicroUsd === undefined ? "" : `, now ${usdText(limits.maxCostMicroUsd)}`}
          </span>
          <input
            inputMode="decimal"
            value={cost}
            onChange={(event) => setCost(event.target.value)}
            className={field}
          />
        </label>
      ) : null}
      {limits.maxTokens === undefined ? null : (
        <label className="flex items-center gap-2">
          <span>Limit in tokens, now {limits.maxTokens.toLocaleString()}</span>
          <input
            inputMode="numeric"
            value={tokens}
            onChange={(event) => setTokens(event.target.value)}
            className={field}
          />
        </label>
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

/** The budget that a session is paused for: its own, or that of a session above it. */
export function payerPath({ sessionId, exhausted }: Session): string {
  return sessionPath(exhausted?.payer ?? sessionId, "budget");
}

function problemOf(text: string, limit: number, before: number | undefined): string | undefined {
  if (text === "") return undefined;
  if (!Number.isSafeInteger(limit) || limit < 1) return "a limit is a number above zero";
  return before !== undefined && limit <= before ? "the new limit is not above the present one" : undefined;
}
