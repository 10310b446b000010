// The journal and the entries of a session from their beginning, a page at a time. They end where the row
// said when it was read, although the session may continue meanwhile. Records and entries never change; new
// ones are only added.

import { CorruptRecordError } from "../errors/errors.ts";
import type { JournalRecord } from "../journal/record.ts";
import type { StorageReader } from "../ports/storage.ts";
import type { Entry } from "../session/changes.ts";
import { separateAccount, type Account, type Budget } from "../budget/budget.ts";
import { accountsOf } from "../transaction/charges.ts";
import type { WholeSession } from "../session/fork.ts";
import type { Session } from "../session/session.ts";

const PAGE = 500;

export function recordsOf(
  reader: StorageReader,
  { sessionId, nextSeq }: Session,
): AsyncGenerator<JournalRecord> {
  return paged(`journal of ${sessionId}`, nextSeq, (from, limit) => reader.journal(sessionId, from, limit));
}

export function entriesOf(reader: StorageReader, { sessionId, entryCount }: Session): AsyncGenerator<Entry> {
  return paged(`entries of ${sessionId}`, entryCount, (from, limit) =>
    reader.entries(sessionId, from, limit),
  );
}

/** A session as a fork needs it, with the limits of its payer. */
export async function readOrigin(reader: StorageReader, session: Session): Promise<WholeSession> {
  const [whole, payerLimits] = await Promise.all([readWhole(reader, session), limitsFor(reader, session)]);
  return payerLimits === undefined ? whole : { ...whole, payerLimits };
}

/** The session with a budget of its own in place of its share in the budgets of the sessions above it. */
export async function withOwnBudget(reader: StorageReader, session: Session): Promise<Session> {
  const { sessionId, account } = session;
  const above = await payersOf(reader, {
    ...session,
    payers: session.payers.filter((id) => id !== sessionId),
  });
  if (above.length === 0) return session;
  return { ...session, account: separateAccount(account, above), payers: [sessionId] };
}

async function limitsFor(reader: StorageReader, session: Session): Promise<Budget | undefined> {
  return (await payersOf(reader, session))[0]?.limits;
}

async function payersOf(reader: StorageReader, session: Session): Promise<readonly Account[]> {
  const rows = new Map<string, { readonly session: Session }>();
  for (const payer of session.payers) {
    const row = await reader.session(payer);
    if (row !== undefined) rows.set(payer, { session: row });
  }
  return [...accountsOf({ find: (id) => rows.get(id) }, session).values()];
}

export async function readWhole(reader: StorageReader, session: Session): Promise<WholeSession> {
  const records: JournalRecord[] = [];
  for await (const record of recordsOf(reader, session)) records.push(record);
  const entries: Entry[] = [];
  for await (const entry of entriesOf(reader, session)) entries.push(entry);
  return { session, records, entries };
}

async function* paged<T>(
  what: string,
  count: number,
  read: (from: number, limit: number) => Promise<readonly T[]>,
): AsyncGenerator<T> {
  for (let from = 0; from < count;) {
    const page = await read(from, Math.min(PAGE, count - from));
    if (page.length === 0) throw new CorruptRecordError(what, `there are ${from} of ${count}`);
    yield* page;
    from += page.length;
  }
}
