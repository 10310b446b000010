// `listSessions`, `countSessions` and `listCosts`: the lists of sessions, their numbers by status, and their costs.
//
//   - A user's lists have only sessions of that user. For a user, other users have no sessions.
//   - A list of costs reads about `RECORDS_MAX` records for one answer, and then leaves the rest to the next
//     page.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { defined, isEnded, type Session, type SessionStatus } from "@holdfast/core";
import type {
  CountSessionsRequest,
  CountSessionsResponseSchema,
  ListCostsRequest,
  ListCostsResponseSchema,
  ListSessionsRequest,
  ListSessionsResponseSchema,
  SessionCostSchema,
} from "@holdfast/proto";
import type { Caller } from "../call/caller.ts";
import type { Call } from "../call/call.ts";
import { filterOf, searchSessions } from "../store/session-filter.ts";
import type { CostPart, SessionCosts } from "../store/session-costs.ts";
import { unknownCursor, type ServiceHost } from "./service-host.ts";
import { sessionMessage, time, type SessionMessage } from "./session-message.ts";
import { childrenOf, mayTouch } from "./session-scope.ts";

const PAGE = 100;
const RECORDS_MAX = 20_000;
/** Sessions that are counted of each status, or with filters in all. */
const COUNTED_MAX = 10_000;

type Page = MessageInitShape<typeof ListSessionsResponseSchema>;
type Counts = MessageInitShape<typeof CountSessionsResponseSchema>;
type Costs = MessageInitShape<typeof ListCostsResponseSchema>;
type CostMessage = MessageInitShape<typeof SessionCostSchema>;
type MessageFor = (session: Session) => SessionMessage;

/** A session as lists have it: without what a second read would cost. */
export function listedMessage(
  host: ServiceHost,
  session: Session,
  pending?: ReadonlySet<string>,
): SessionMessage {
  const { sessionId } = session;
  // The coordinator forgets the needs of an ended session a little later.
  const present = isEnded(session.status)
    ? { runnerId: undefined, blocked: undefined }
    : {
        runnerId: host.dispatcher.holdings.find(sessionId)?.runnerId,
        blocked: host.unmatched.reasonFor(sessionId),
      };
  return sessionMessage(session, {
    ...present,
    pending,
    now: host.clock.now(),
  });
}

export async function listSessions(
  host: ServiceHost,
  request: ListSessionsRequest,
  caller: Caller,
): Promise<Page> {
  const { limit = PAGE, cursor, status, agent, parentSessionId, owner } = request;
  const { reader } = host.storage;
  const messageFor: MessageFor = (session) => listedMessage(host, session);
  if (caller.kind === "job") return listOfJob(host, caller.name, request, messageFor);
  if (isForeign(caller, owner)) return { sessions: [] };
  if (cursor !== undefined) await checkCursor(host, caller, cursor);
  const query = {
    limit,
    ...defined({ before: cursor }),
    ...(status === undefined ? {} : { status: status as SessionStatus }),
    ...defined({ agent, parent: parentSessionId }),
    ...ownerOf(caller, owner),
  };
  const matches = filterOf(request);
  if (matches !== undefined) {
    const { sessions, next, searched } = await searchSessions(reader, query, matches);
    return {
      sessions: sessions.map(messageFor),
      ...defined({ nextCursor: next }),
      searched,
    };
  }
  const sessions = await reader.sessions(query);
  const last = sessions.length < limit ? undefined : sessions.at(-1)?.sessionId;
  return {
    sessions: sessions.map(messageFor),
    ...defined({ nextCursor: last }),
  };
}

export async function countSessions(
  { storage }: ServiceHost,
  { agent, parentSessionId, owner }: CountSessionsRequest,
  caller: Caller,
): Promise<Counts> {
  if (isForeign(caller, owner)) return { counts: [] };
  const filters = { ...defined({ agent, parent: parentSessionId }), ...ownerOf(caller, owner) };
  const found = Object.entries(await storage.reader.counts({ limit: COUNTED_MAX, ...filters }));
  const isFiltered = Object.keys(filters).length > 0;
  const sum = found.reduce((all, [, sessions]) => all + sessions, 0);
  return {
    counts: found.map(([status, sessions]) => ({
      status,
      sessions,
      isCut: (isFiltered ? sum : sessions) >= COUNTED_MAX,
    })),
  };
}

/** @param known the costs that were read before. */
export async function listCosts(
  host: ServiceHost,
  known: SessionCosts,
  { limit = PAGE, cursor, owner }: ListCostsRequest,
  { caller, signal }: Call,
): Promise<Costs> {
  if (isForeign(caller, owner)) return { costs: [] };
  if (cursor !== undefined) await checkCursor(host, caller, cursor);
  const sessions = await host.storage.reader.sessions({
    limit,
    ...defined({ before: cursor }),
    ...ownerOf(caller, owner),
  });
  const costs: CostMessage[] = [];
  let records = 0;
  for (const session of sessions) {
    if (records > RECORDS_MAX || signal.aborted) break;
    const read = session.persistence === undefined ? await known.of(session) : undefined;
    records += read?.records ?? 0;
    costs.push(costMessage(session, read?.parts ?? []));
  }
  const isLast = costs.length === sessions.length && sessions.length < limit;
  const last = isLast ? undefined : costs.at(-1)?.sessionId;
  return { costs, ...defined({ nextCursor: last }) };
}

function costMessage(session: Session, parts: readonly CostPart[]): CostMessage {
  const { sessionId, agent, placement, createdAt, persistence } = session;
  return {
    sessionId,
    agent: agent.name,
    ...defined({ owner: placement?.owner }),
    createdAt: time(createdAt),
    unrecorded: persistence !== undefined,
    parts: parts.map(({ model, day, cost }) => ({
      model,
      day,
      calls: BigInt(cost.calls),
      unpriced: BigInt(cost.unpriced),
      costMicroUsd: BigInt(cost.costMicroUsd),
      inputTokens: BigInt(cost.inputTokens),
      outputTokens: BigInt(cost.outputTokens),
    })),
  };
}

function isForeign({ kind, name }: Caller, owner: string | undefined): boolean {
  return kind === "user" && owner !== undefined && owner !== name;
}

function ownerOf({ kind, name }: Caller, owner: string | undefined): { readonly owner?: string } {
  const of = kind === "user" ? name : owner;
  return of === undefined ? {} : { owner: of };
}

async function checkCursor(host: ServiceHost, caller: Caller, cursor: string): Promise<void> {
  const last = await host.storage.reader.session(cursor);
  if (last !== undefined && (await mayTouch(host, caller, last))) return;
  throw unknownCursor();
}

/** A running agent lists only its own session and its children. */
async function listOfJob(
  host: ServiceHost,
  sessionId: string,
  request: ListSessionsRequest,
  messageFor: MessageFor,
): Promise<Page> {
  const { limit = PAGE, cursor, status, agent, parentSessionId, owner } = request;
  const matches = filterOf(request) ?? (() => true);
  const own = await host.storage.reader.session(sessionId);
  const all = own === undefined ? [] : [own, ...(await childrenOf(host, own))];
  const seen = all.findIndex((session) => session.sessionId === cursor);
  if (cursor !== undefined && seen < 0) throw unknownCursor();
  const asked = all
    .slice(seen + 1)
    .filter(
      (session) =>
        (status === undefined || session.status === status) &&
        (agent === undefined || session.agent.name === agent) &&
        (parentSessionId === undefined || session.parent?.sessionId === parentSessionId) &&
        (owner === undefined || session.placement?.owner === owner) &&
        matches(session),
    );
  const last = asked.length > limit ? asked[limit - 1]?.sessionId : undefined;
  return {
    sessions: asked.slice(0, limit).map(messageFor),
    ...defined({ nextCursor: last }),
  };
}
