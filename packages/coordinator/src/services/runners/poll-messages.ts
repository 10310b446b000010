// Polls of the contract in the form of dispatch, and its answers in the form of the contract.

import { defined } from "@holdfast/core";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ArrivalNoticeSchema, ClaimSchema, PollRequest } from "@holdfast/proto";
import { bytesOf } from "../../call/json-field.ts";
import type {
  GivenClaim,
  KeptSession,
  PollAnswer,
  PollRequest as DispatchPoll,
} from "../../dispatch/poller.ts";
import { offeredOf } from "../../input/announced-agents.ts";
import type { StoredRunner } from "../../store/registry.ts";
import type { ServiceHost } from "../service-host.ts";

export const POLL_TIMEOUT_MS = 30_000;

type Offers = Pick<StoredRunner, "agents" | "taskKinds" | "superseded">;

/** The agents and kinds of tasks that a runner offers. */
export function offersOf({ agents, taskKinds, superseded }: PollRequest): Offers {
  return {
    agents: agents.map(offeredOf),
    taskKinds: [...taskKinds],
    ...(superseded === undefined ? {} : { superseded: true as const }),
  };
}

/** @param process the hash of the process that polls. */
export function pollOf(request: PollRequest, offers: Offers, process: string | undefined): DispatchPoll {
  const { ackPollId, ackCommandIds, pollId, runnerId, free, waitMs = POLL_TIMEOUT_MS } = request;
  const kept = keptBy(request);
  return {
    runnerId,
    pollId,
    free,
    waitMs,
    ackCommandIds,
    ...offers,
    startsTrials: request.startsTrials,
    ...defined({ kept, ackPollId, process }),
    ...(request.number === undefined ? {} : { number: Number(request.number) }),
  };
}

function keptBy({ superseded }: PollRequest): readonly KeptSession[] | undefined {
  return superseded?.kept.map(({ sessionId, nextSeq }) => ({ sessionId, nextSeq: Number(nextSeq) }));
}

/** @param at when the answer is made, by the wall clock and by the monotonic one. */
export function claimMessage(
  { sessionId, token, before, askedAt, leaseMs, snapshot, mayReturn }: GivenClaim,
  at: { readonly now: number; readonly monotonic: number },
): MessageInitShape<typeof ClaimSchema> {
  return {
    sessionId,
    mayReturn,
    token: BigInt(token),
    ...(before === undefined ? {} : { before: BigInt(before) }),
    leaseMs: BigInt(leaseMs),
    snapshot: bytesOf(snapshot),
    claimedAt: BigInt(Math.floor(at.now - (at.monotonic - askedAt))),
  };
}

/** Arrivals larger than this are not sent with their notice, so that the answer to a poll stays small. */
const CONTENT_CHARS = 64 * 1024;

/** A notice with the arrivals, if it is known how far the runner has read. */
export async function withContent(
  { storage, dispatcher: { holdings } }: ServiceHost,
  runnerId: string,
  notice: PollAnswer["arrivals"][number],
): Promise<MessageInitShape<typeof ArrivalNoticeSchema>> {
  const { sessionId } = notice;
  const after = holdings.readBy(runnerId, sessionId);
  if (after === undefined) return { ...notice };
  // Without the content, the runner asks for the arrivals and gets the error.
  const arrivals = await storage.arrivals(sessionId, after).catch(() => undefined);
  const text = arrivals && JSON.stringify(arrivals);
  if (arrivals === undefined || text === undefined || text.length > CONTENT_CHARS) return { ...notice };
  holdings.reads(runnerId, sessionId, arrivals.inbox);
  return { ...notice, arrivals: bytesOf(text), after: BigInt(after) };
}
