// Why a session stands still until a person does something, and what that is.

import {
  defined,
  mayAcceptDrift,
  resumesAt,
  type Exhausted,
  type PauseReason,
  type Session,
} from "@holdfast/core";
import {
  causeText,
  isBlameless,
  pauseText,
  raisedLimit,
  restartText,
  type PlainPause,
} from "@holdfast/proto/view";
import { writtenLimit } from "./budget-text.ts";
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
    quota: () => ({ why: whyOf(session), commands: [continueCommand] }),
    auth_required: () => ({ why: whyOf(session), commands: [continueCommand] }),
    nondeterminism: () => ({
      why: why("nondeterminism"),
      commands: mayDrift ? [continueCommand, `${resume} --accept-drift`] : [continueCommand],
    }),
    agent_fault: () => ({
      why: isBlameless(session) ? whyOf(session) : why("agent_fault"),
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

/** The cause of a pause, with the time at which it is over where that is known. */
function whyOf(session: Session): string {
  const at = resumesAt(session);
  const restart = restartText({ ...defined({ quota: session.quota, resumesAt: at }) }, (time) =>
    moment(time, Date.now()),
  );
  return [restart, causeText(session)].filter((text) => text !== "").join("; ");
}

/** Whether one call needs more than a whole window has, so that no grant and no waiting helps. */
export function isBeyondWindow({ per, max, asked = 0 }: Exhausted): boolean {
  return per !== undefined && asked > max;
}

function budgetAdvice(session: Session, io: Pick<Io, "call">): PauseAdvice {
  const { sessionId, exhausted } = session;
  const payer = exhausted?.payer ?? sessionId;
  const why = whyOf(session);
  if (exhausted === undefined) return { why, commands: [io.call(`budget ${payer}`)] };
  const { limit, per } = exhausted;
  return {
    why,
    commands: [
      ...(per === undefined || isBeyondWindow(exhausted) ? [] : [io.call(`budget ${payer} --grant ${per}`)]),
      io.call(`budget ${payer} --raise ${writtenLimit(limit, raisedLimit(exhausted), per)}`),
    ],
  };
}
