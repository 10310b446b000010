// Why a session stands still until a person does something, and what that is.

import { mayAcceptDrift, resumesAt, type Exhausted, type PauseReason, type Session } from "@holdfast/core";
import { isCutOffByStops, pauseText, raisedLimit, type PlainPause } from "@holdfast/proto/view";
import { amountText, limitTitle, perText, writtenLimit } from "./budget-text.ts";
import { moment } from "./describe-session.ts";
import type { Io } from "../frame/command.ts";
import { runnerCommand } from "./runner-advice.ts";

export interface PauseAdvice {
  readonly why: string;
  /** The commands that continue the session once the cause of the pause is fixed. */
  readonly commands: readonly string[];
}

/**
 * Nothing for a session that is not paused.
 *
 * @param isElsewhere whether the session is at a coordinator, whose runners resume it once it is unpaused.
 */
export function pauseAdvice(
  session: Session,
  io: Pick<Io, "call">,
  isElsewhere: boolean,
): PauseAdvice | undefined {
  const { status, pauseReason, sessionId, agent } = session;
  if (status !== "paused" || pauseReason === undefined) return undefined;
  const unpause = io.call(`unpause ${sessionId}`);
  const resume = io.call(`resume ${sessionId}`);
  const mayDrift = mayAcceptDrift(session.error);
  const why = (reason: PlainPause): string => pauseText(reason, isElsewhere, mayDrift);
  const continueCommand = isElsewhere ? unpause : resume;
  const advice: { readonly [reason in PauseReason]: () => PauseAdvice } = {
    by_user: () => ({ why: why("by_user"), commands: [unpause] }),
    budget_exceeded: () => budgetAdvice(session, io),
    quota: () => ({ why: `${wantedBy(session)}${resetText(session)}`, commands: [continueCommand] }),
    auth_required: () => ({ why: wantedBy(session), commands: [continueCommand] }),
    nondeterminism: () => ({
      why: why("nondeterminism"),
      commands: mayDrift ? [continueCommand, `${resume} --accept-drift`] : [continueCommand],
    }),
    agent_fault: () => ({
      why: isCutOffByStops(session) ? wantedBy(session) : why("agent_fault"),
      commands: [continueCommand],
    }),
    poison: () => ({ why: why("poison"), commands: [continueCommand] }),
    no_matching_runner: () =>
      isElsewhere
        ? {
            why: `no matching runner came in time: start one (${runnerCommand(session, io)}), then unpause it${agent.file === undefined ? "" : ", or continue it here"}`,
            commands: agent.file === undefined ? [unpause] : [unpause, resume],
          }
        : {
            why: why("no_matching_runner"),
            commands: [
              `${resume} --agent FILE`,
              ...(session.error?.code === "agent_version" ? [`${resume} --accept-drift`] : []),
            ],
          },
  };
  return advice[pauseReason]();
}

/** The thing that is missing, and how it is supplied, in the words of the task that paused the session. */
function wantedBy({ error, pauseReason }: Session): string {
  if (error === undefined)
    return pauseReason === "quota" ? "a usage limit is reached" : "credentials are missing";
  return error.fix === undefined ? error.message : `${error.message.replace(/[.\s]+$/, "")}: ${error.fix}`;
}

function resetText(session: Session): string {
  const now = Date.now();
  const at = resumesAt(session);
  if (at !== undefined) return `; it continues by itself ${moment(at, now)}`;
  const resetsAt = session.quota?.resetsAt;
  return resetsAt === undefined ? "" : `; the limit is reset ${moment(resetsAt, now)}`;
}

/** Whether one call needs more than a whole window has, so that no grant and no waiting helps. */
export function isBeyondWindow({ per, max, asked = 0 }: Exhausted): boolean {
  return per !== undefined && asked > max;
}

function budgetAdvice(session: Session, io: Pick<Io, "call">): PauseAdvice {
  const { sessionId, exhausted } = session;
  const payer = exhausted?.payer ?? sessionId;
  if (exhausted === undefined) return { why: "a budget is used up", commands: [io.call(`budget ${payer}`)] };
  const { limit, per, used, max, asked = 0 } = exhausted;
  const title = limit === "maxCostMicroUsd" ? "" : ` ${limitTitle(limit)}`;
  const at = resumesAt(session);
  const when = at === undefined ? "" : `; it continues by itself ${moment(at, Date.now())}`;
  const whose = payer === sessionId ? "its budget" : `the budget of ${payer}`;
  return {
    why: `${whose} has too little left: ${amountText(limit, used)} of ${amountText(limit, max)}${title} spent${perText(per)}${neededText(limit, asked)}${when}`,
    commands: [
      ...(per === undefined || isBeyondWindow(exhausted) ? [] : [io.call(`budget ${payer} --grant ${per}`)]),
      io.call(`budget ${payer} --raise ${writtenLimit(limit, raisedLimit(exhausted), per)}`),
    ],
  };
}

function neededText(limit: Exhausted["limit"], asked: number): string {
  return asked === 0 || limit === "maxTurns" || limit === "maxSteps"
    ? ""
    : `, and the next call may need ${amountText(limit, asked)}`;
}
