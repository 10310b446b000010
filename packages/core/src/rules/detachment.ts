// `detached`, `missingAnswers`: an imported session without its relations to sessions that were not imported
// with it.
//
//   detachment-1. An imported row names as parent, payer and successor only sessions that were imported with
//       it. It is no relative of another session that has such an id.
//   detachment-2. A session that was imported without its parent replays as a child of it. Its later effects
//       on that parent reach no session, as if the parent had ended.
//   - A session that was imported without a child receives that child's end, as a failure, unless it has
//     received an end before. A request to an absent parent is answered as by one that has ended.

import { positionId } from "../ids.ts";
import type { JournalRecord } from "../journal/record.ts";
import { repliedRequest, senderChild } from "../journal/signal-names.ts";
import type { ImportedSession, SendSignal } from "../session/changes.ts";
import type { ParentRef, Session } from "../session/session.ts";
import { absentEnd, isLastEvent, lastWords, refuseRequest, type ChildEvent } from "./consequences.ts";

/** Whether a session was imported in the same change. */
export type IsHere = (sessionId: string) => boolean;

/** detachment-1. The row of an imported session. */
export function detached(session: Session, isHere: IsHere): Session {
  const { sessionId, parent, handedOffTo, exhausted } = session;
  const row: Mutable<Session> = { ...session, payers: session.payers.filter((id) => isHere(id)) };
  if (parent !== undefined && !isHere(parent.sessionId)) {
    row.detachedFrom = parent;
    delete row.parent;
  }
  if (handedOffTo !== undefined && !isHere(handedOffTo)) delete row.handedOffTo;
  if (exhausted !== undefined && !isHere(exhausted.payer)) row.exhausted = { ...exhausted, payer: sessionId };
  return row;
}

type Mutable<T> = { -readonly [key in keyof T]: T[key] };

export function missingAnswers(imported: ImportedSession, isHere: IsHere): readonly SendSignal[] {
  const { sessionId, session, records } = imported;
  // The kernel of a fork that is yet to begin rejects these waits.
  if (session.fork !== undefined && records.length <= session.fork.at) return [];
  const { children, requests } = unanswered(imported);
  const parentId = (session.parent ?? session.detachedFrom)?.sessionId;
  return [
    ...[...children].flatMap(([child, notify]) => {
      const childId = positionId(sessionId, child);
      return isHere(childId) ? [] : lastWords({ sessionId, child, ...notify }, childId, absentEnd(childId));
    }),
    ...(parentId === undefined || isHere(parentId)
      ? []
      : [...requests].map((request) => refuseRequest(sessionId, request, parentId))),
  ];
}

/** The children whose end, and the requests whose answer, is neither in the journal nor in the inbox. */
function unanswered({ records, signals = [] }: ImportedSession): {
  readonly children: ReadonlyMap<number, Pick<ParentRef, "notify">>;
  readonly requests: ReadonlySet<number>;
} {
  const children = new Map<number, Pick<ParentRef, "notify">>();
  const requests = new Set<number>();
  const names = new Map<number, string>();
  const answer = (name: string, payload: string | undefined): void => {
    const child = senderChild(name);
    if (child !== undefined && isLastEvent(JSON.parse(payload ?? "{}") as ChildEvent)) children.delete(child);
    const request = repliedRequest(name);
    if (request !== undefined) requests.delete(request);
  };
  const read = (record: JournalRecord): void => {
    switch (record.type) {
      case "spawn_child":
        if (record.handOff !== true)
          children.set(record.id, record.notify === undefined ? {} : { notify: record.notify });
        return;
      case "request_parent":
        requests.add(record.id);
        return;
      case "wait_signal":
        names.set(record.id, record.name);
        return;
      case "signal_received":
        answer(names.get(record.wait) ?? "", record.payload);
        return;
      case "forked": // Earlier asks were the origin's.
        children.clear();
        requests.clear();
        return;
      default:
    }
  };
  for (const record of records) read(record);
  for (const { name, payload } of signals) answer(name, payload);
  return { children, requests };
}
