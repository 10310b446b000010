// Why a session stands still until a person does something, and what that is.

import type { PauseReason, Session } from "@holdfast/core";
import { amountText } from "./budget-text.ts";
import type { Io } from "./command.ts";

export interface PauseAdvice {
  readonly why: string;
  /** The commands that let it go on, once what is wrong is mended. */
  readonly commands: readonly string[];
}

/** Nothing for a session that is not paused. */
export function pauseAdvice(session: Session, io: Pick<Io, "call">): PauseAdvice | undefined {
  const { status, pauseReason, sessionId } = session;
  if (status !== "paused" || pauseReason === undefined) return undefined;
  const resume = io.call(`resume ${sessionId}`);
  const advice: { readonly [reason in PauseReason]: () => PauseAdvice } = {
    by_user: () => ({ why: "somebody paused it", commands: [io.call(`unpause ${sessionId}`)] }),
    budget_exceeded: () => budgetAdvice(session, io),
    nondeterminism: () => ({
      why: "its agent asked for something else than its journal holds: correct the code, or accept changed inputs",
      commands: [resume, `${resume} --accept-drift`],
    }),
    agent_fault: () => ({ why: "its agent made a mistake: correct the code", commands: [resume] }),
    poison: () => ({
      why: "its agent kept the process busy without awaiting: correct the code",
      commands: [resume],
    }),
    no_matching_runner: () => ({
      why: "its agent, of the version it was started with, is not here",
      commands: [`${resume} --agent FILE`],
    }),
  };
  return advice[pauseReason]();
}

function budgetAdvice({ sessionId, exhausted }: Session, io: Pick<Io, "call">): PauseAdvice {
  const payer = exhausted?.payer ?? sessionId;
  if (exhausted === undefined)
    return { why: "a budget is used up", commands: [io.call(`budget ${payer} --raise LIMITS`)] };
  const { limit, used, max } = exhausted;
  const { unit, title } = RAISES[limit];
  const whose = payer === sessionId ? "its budget" : `the budget of ${payer}`;
  return {
    why: `${whose} has too little left: ${amountText(limit, used)} of ${amountText(limit, max)}${title} spent`,
    commands: [io.call(`budget ${payer} --raise ${unit}`)],
  };
}

const RAISES = {
  maxCostMicroUsd: { unit: "DOLLARSusd", title: "" },
  maxTokens: { unit: "Ntokens", title: " tokens" },
  maxSteps: { unit: "Nsteps", title: " steps" },
  maxTurns: { unit: "Nturns", title: " turns" },
} as const;
