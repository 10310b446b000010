// `foreseeSession`: what would become of a waiting session with this version of Holdfast and the agent's code as
// it is now. It loads the agent and replays the session's turn, as a process that continues it does, and writes
// nothing.

import {
  HoldfastError,
  isLost,
  refuseNewerSession,
  toHoldfastError,
  type ErrorCode,
  type Session,
  type StorageReader,
} from "@holdfast/core";
import type { Agent } from "@holdfast/runtime";
import { readTurn, replayTurn } from "./recorded-turn.ts";

/** `unknown`: nobody can tell here, because the code of its agent is elsewhere. */
export type Foreseen =
  | { readonly outcome: "continues" }
  | {
      readonly outcome: "refused" | "unknown";
      /** The reason, for people. */
      readonly why: string;
      readonly error: HoldfastError;
    };

/** @param loadAgent loads the agent of the session, `undefined` where its code is not known here. */
export async function foreseeSession(
  reader: StorageReader,
  session: Session,
  loadAgent: () => Promise<Agent | undefined>,
): Promise<Foreseen> {
  try {
    refuseNewerSession(session);
    if (isLost(session)) throw lostAtStop(session);
    const agent = await loadAgent();
    if (agent === undefined) return stopped("unknown", noAgent(session));
    // Nothing is recorded of a session that has not begun, and of one that begins again after each stop.
    if (session.nextSeq === 0 || session.persistence !== undefined) return { outcome: "continues" };
    const records = await readTurn(reader, session);
    const { fault } = await replayTurn(reader, session, records, { agent, onStep: () => {} });
    return fault === undefined ? { outcome: "continues" } : stopped("refused", fault);
  } catch (thrown) {
    return stopped("refused", toHoldfastError(thrown));
  }
}

const WHY: Readonly<Partial<Record<ErrorCode, string>>> = {
  nondeterminism: "the code of its agent was changed, and does not fit what the session has done so far",
  version_unsupported: "a newer Holdfast began it",
  file_not_found: "the file of its agent is gone",
  agent_invalid: "its agent cannot be loaded",
  agent_version: "its agent has another version than the one it began with",
  agent_not_found: "the code of its agent is not known here",
};

function stopped(outcome: "refused" | "unknown", error: HoldfastError): Foreseen {
  const why = WHY[error.code] ?? error.message;
  return { outcome, why, error };
}

function noAgent({ sessionId, agent }: Session): HoldfastError {
  return new HoldfastError("agent_not_found", `the code of agent "${agent.name}" is not known here`, {
    expected: `a file that exports the agent of session ${sessionId}`,
    fix: "give the files that its runners load: `holdfast upgrade --check --agents FILE`",
  });
}

function lostAtStop({ sessionId }: Session): HoldfastError {
  return new HoldfastError(
    "session_lost",
    `session ${sessionId} is ephemeral: it fails when the process that runs it stops`,
    { fix: "wait for its end before the upgrade" },
  );
}
