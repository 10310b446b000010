// Ends the work of a session of an external agent that is cancelled (`endCancelled`): its program, and its
// work at another place.
//
//   - The session waits for the end of its program, and records which step ended it. A hard cancel that
//     follows shortens the steps, and ends the record at once.
//   - Processes that a killed process of ours has left running are ended before the session is.

import { HoldfastError } from "@holdfast/core";
import { SESSION_CANCELLED } from "@holdfast/proto/view";
import type { AgentContext, TaskContext } from "@holdfast/runtime";

import type { EventEntries } from "../event-entries.ts";
import type { ExternalEnd } from "../external-agent-protocol.ts";
import type { ExternalState } from "../external-state.ts";
import { REPORT_SIGNAL, type StoredReport } from "../turn-reports.ts";
import { tagOf } from "../turn-task.ts";
import { stopText } from "../turn-texts.ts";
import type { QuestionParts } from "../questions/permission-questions.ts";

type Context = AgentContext<unknown, ExternalState>;

/** @param entries those of the present run of the program; `undefined` where none has begun. */
export async function endCancelled(
  ctx: Context,
  { intent, boundId }: ExternalState,
  parts: QuestionParts,
  entries: EventEntries | undefined,
): Promise<void> {
  if (intent === null) return;
  const { protocol, live } = parts;

  const isRemote = protocol.endRemote !== undefined;
  const stop = async ({ sessionId }: TaskContext): Promise<{ readonly end: ExternalEnd | null }> => {
    const turn = live.get(sessionId);
    // A killed process of ours may have left processes running.
    if (turn === undefined) await protocol.endLost(tagOf(intent));
    return { end: (await turn?.agent.abort()) ?? null };
  };
  if (entries !== undefined) {
    const stopped = isRemote
      ? undefined
      : await ctx
          .cleanup((inner) => inner.run("end_turn", stop, { retry: { maxAttempts: 1 } }))
          .catch(ignored);
    // The id of remote work may be in a report that was not taken yet.
    for (const { payload } of ctx.drainSignals<StoredReport>(REPORT_SIGNAL)) entries.take(payload);
    entries.closeCalls();
    const end = stopped?.end;
    const how = end?.type === "aborted" ? stopText(protocol.name, end) : "";
    ctx.appendEntry({ role: "user", content: `${SESSION_CANCELLED}${how})` });
  }
  const id = entries?.boundId ?? boundId;
  if (!isRemote || id === null) return;
  await ctx
    .cleanup((inner) => inner.run("end_remote", () => protocol.endRemote?.({ intent, boundId: id })))
    .catch(ignored); // The remote work may have ended.
}

function ignored(error: unknown): undefined {
  if (!HoldfastError.is(error)) throw error;
}
