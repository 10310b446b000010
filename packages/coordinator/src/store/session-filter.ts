// `filterOf`, `searchSessions`: sessions by filters that no index serves.
//
//   session-filter-1. One search reads at most `SEARCH_MAX` rows, and says where the next one begins. The
//       size of the table does not change the cost of an answer.
//   session-filter-2. Only the beginnings of an input and of an output are searched, because they may have
//       megabytes. Both are in the row that is read in any case. Outputs of calls are in the journal, which is
//       larger than its row without a limit, so a search does not read them.

import { defined, type Session, type StorageReader } from "@holdfast/core";
import type { ListSessionsRequest } from "@holdfast/proto";

export type UnindexedFilters = Pick<
  ListSessionsRequest,
  "text" | "label" | "endedFrom" | "endedBefore" | "costFromMicroUsd"
>;
type Query = Parameters<StorageReader["sessions"]>[0];
type Matches = (session: Session) => boolean;

const SEARCH_MAX = 2_000;
const SEARCH_PAGE = 500;
const VALUE_CHARS = 10_000;

/** The test of a session by the filters without an index; `undefined` when none is given. */
export function filterOf(filters: UnindexedFilters): Matches | undefined {
  const { text, label, endedFrom, endedBefore, costFromMicroUsd } = filters;
  const parts: Matches[] = [];
  if (text !== undefined && text !== "") parts.push(hasText(text.toLowerCase()));
  if (label !== undefined && label !== "") parts.push(hasLabel(label));
  if (endedFrom !== undefined) parts.push(({ endedAt }) => endedAt !== undefined && endedAt >= endedFrom);
  if (endedBefore !== undefined) parts.push(({ endedAt }) => endedAt !== undefined && endedAt < endedBefore);
  if (costFromMicroUsd !== undefined)
    parts.push(({ cost, account }) =>
      [cost, account?.spent].some((spent) => spent !== undefined && spent.costMicroUsd >= costFromMicroUsd),
    );
  return parts.length === 0 ? undefined : (session) => parts.every((part) => part(session));
}

function hasText(wanted: string): Matches {
  return ({ sessionId, title, agent, placement, status, waits, input, output, error }) => {
    const waited = waits.flatMap((wait) => [
      "name" in wait ? wait.name : undefined,
      "prompt" in wait ? wait.prompt : undefined,
    ]);
    const texts = [sessionId, title, agent.name, placement?.owner, status, error?.message, ...waited];
    const values = [input, output].map((value) => value?.slice(0, VALUE_CHARS)); // session-filter-2.
    const all = [...texts, ...values];
    return all.some((each) => each !== undefined && each.toLowerCase().includes(wanted));
  };
}

function hasLabel(label: string): Matches {
  const at = label.indexOf("=");
  const [name, value] = at < 0 ? [label] : [label.slice(0, at), label.slice(at + 1)];
  return ({ placement }) => {
    const demands = placement?.demands ?? {};
    if (!Object.hasOwn(demands, name)) return false;
    return value === undefined || demands[name] === value;
  };
}

export interface Searched {
  readonly sessions: readonly Session[];
  /** The last session that was read, if there are more behind it. */
  readonly next: string | undefined;
  readonly searched: number;
}

/** The next sessions that match, at most `query.limit` (session-filter-1). */
export async function searchSessions(
  reader: Pick<StorageReader, "sessions">,
  query: Query,
  matches: Matches,
): Promise<Searched> {
  const sessions: Session[] = [];
  let { before } = query;
  let searched = 0;
  while (searched < SEARCH_MAX) {
    const page = await reader.sessions({
      ...query,
      limit: SEARCH_PAGE,
      ...defined({ before }),
    });
    for (const session of page) {
      searched++;
      before = session.sessionId;
      if (matches(session)) sessions.push(session);
      if (sessions.length === query.limit) return { sessions, next: before, searched };
    }
    if (page.length < SEARCH_PAGE) return { sessions, next: undefined, searched };
  }
  return { sessions, next: before, searched };
}
