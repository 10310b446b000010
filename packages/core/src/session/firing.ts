// What a schedule does when it fires, as a change: the same whoever fires it. Pure.

import { JOURNAL_FORMAT } from "../journal/record.ts";
import type { Schedule } from "./schedules.ts";
import type { CreateSession, SendSignal } from "./changes.ts";
import { BEHAVIOUR_FLAGS, type AgentRef } from "./session.ts";

export interface Firing {
  /** What it starts or sends is called: made of the schedule and the time, so that firing it again finds it there. */
  readonly name: string;
  /** The agent as it is now, of what it starts. */
  readonly agent: (recorded: AgentRef) => Promise<AgentRef>;
  readonly seed: number;
  readonly now: number;
}

export async function effectOfFiring(
  { action }: Pick<Schedule, "action">,
  { name, agent, seed, now }: Firing,
): Promise<CreateSession | SendSignal> {
  if (action.type === "signal") return { ...action, type: "send_signal", signalId: name };
  const { budget, input, placement } = action;
  return {
    type: "create_session",
    sessionId: name,
    agent: await agent(action.agent),
    input,
    seed,
    flags: BEHAVIOUR_FLAGS,
    format: JOURNAL_FORMAT,
    ...(placement === undefined ? {} : { placement }),
    ...(budget === undefined ? {} : { budget }),
    ...(budget?.ttlMs === undefined ? {} : { deadlineAt: now + budget.ttlMs }),
  };
}
