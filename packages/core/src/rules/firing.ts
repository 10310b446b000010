// `effectOfFiring`, `replaceSchedule`, `decideFire`: the rules for schedules.

import { JOURNAL_FORMAT } from "../journal/record.ts";
import { NEVER, type Schedule } from "../session/schedules.ts";
import type { ChangeResult, CreateSession, FireSchedule, SendSignal } from "../session/changes.ts";
import { findEffectProblem } from "./batches.ts";
import { BEHAVIOUR_FLAGS, type AgentRef } from "../session/session.ts";

export interface Firing {
  /**
   * Id of the started session or of the sent signal. It is made of schedule and time, so firing again finds
   * the first one.
   */
  readonly name: string;
  /** The current definition of the agent that it starts. */
  readonly agent: (recorded: AgentRef) => Promise<AgentRef>;
  readonly seed: number;
  readonly now: number;
}

export async function effectOfFiring(
  { action }: Pick<Schedule, "action">,
  { name, agent, seed, now }: Firing,
): Promise<CreateSession | SendSignal> {
  if (action.type === "signal") return { ...action, type: "send_signal", signalId: name };
  const { budget, environment, input, placement } = action;
  return {
    type: "create_session",
    sessionId: name,
    agent: await agent(action.agent),
    input,
    seed,
    flags: BEHAVIOUR_FLAGS,
    format: JOURNAL_FORMAT,
    ...(environment === undefined ? {} : { environment }),
    ...(placement === undefined ? {} : { placement }),
    ...(budget === undefined ? {} : { budget }),
    ...(budget?.ttlMs === undefined ? {} : { deadlineAt: now + budget.ttlMs }),
  };
}

/**
 * The stored schedule after a put (ST34). The stored times count, because the caller may have read the
 * schedule before it fired.
 */
export function replaceSchedule(known: Schedule | undefined, put: Schedule): Schedule {
  if (known === undefined) return pausedOrNot(put, put.isPaused === true, put.nextAt);
  const { lastAt = put.lastAt, unread = put.unread, createdAt } = known;
  const isSame = known.cron === put.cron && known.timeZone === put.timeZone;
  const wasPaused = known.isPaused === true;
  // mutant: schedule-put-restarts
  const nextAt = isSame && !wasPaused ? known.nextAt : put.nextAt;
  return {
    ...pausedOrNot(put, put.isPaused ?? wasPaused, nextAt),
    ...(lastAt === undefined ? {} : { lastAt }),
    ...(unread === undefined ? {} : { unread }),
    createdAt,
  };
}

/** A paused schedule is never due. It continues with the first time after its pause. */
function pausedOrNot(put: Schedule, isPaused: boolean, nextAt: number): Schedule {
  const { isPaused: _, ...schedule } = put;
  return isPaused ? { ...schedule, nextAt: NEVER, isPaused } : { ...schedule, nextAt };
}

/** Whether a schedule fires, and the stored schedule then (ST34). The caller applies the effect. */
export function decideFire(
  schedule: Schedule | undefined,
  { scheduleId, dueAt: firesAt, nextAt, effect }: FireSchedule,
): { readonly result: ChangeResult; readonly schedule?: Schedule } {
  if (schedule === undefined) return { result: { status: "not_found" } };
  if (schedule.nextAt !== firesAt) return { result: { status: "fenced" } };
  const problem = findEffectProblem([effect]);
  if (problem !== undefined)
    return { result: { status: "invalid", reason: `schedule ${scheduleId} ${problem}` } };
  return { result: { status: "done" }, schedule: { ...schedule, nextAt, lastAt: firesAt } };
}
