// `readTree`: a session and all sessions below it, as they stood at one moment, for a file.
//
//   - The rows and the unread signals of all sessions belong to one moment. Rows are read before and after
//     the signals, until no row has changed in between. Each change of a session changes its row. Records and
//     entries are only added, so the rows say which of them existed at that moment.
//   - A session comes after its parent, and after the session that it took over from.
//   - Sessions above the first one are not in the file. Its share of their budgets becomes a budget of its
//     own, which pays for all sessions that they paid for.

import { ConflictError, NotFoundError } from "../errors/errors.ts";
import type { StorageReader } from "../ports/storage.ts";
import type { StoredSignal } from "../session/changes.ts";
import type { Session } from "../session/session.ts";
import { withOwnBudget } from "./whole-session.ts";

/** A row as a file has it, with signals of which a later record may have consumed some. */
export interface ReadSession {
  readonly session: Session;
  readonly pending: readonly StoredSignal[];
}

const PAGE = 500;
const TRIES = 100;

/** @throws NotFoundError, ConflictError `conflict` when the sessions change all the time. */
export async function readTree(reader: StorageReader, sessionId: string): Promise<readonly ReadSession[]> {
  let before = await readRows(reader, sessionId);
  for (let tried = 0; tried < TRIES; tried++) {
    const found: ReadSession[] = [];
    for (const session of before)
      found.push({ session, pending: await reader.pendingSignals(session.sessionId) });
    const after = await readRows(reader, sessionId);
    if (JSON.stringify(before) === JSON.stringify(after)) return withBudgetOfFirst(reader, found);
    before = after;
  }
  throw new ConflictError(
    "conflict",
    `the sessions below ${sessionId} changed in each of ${TRIES} readings`,
    {
      fix: `pause session ${sessionId} with \`holdfast pause\`, and export it again`,
    },
  );
}

async function readRows(reader: StorageReader, sessionId: string): Promise<readonly Session[]> {
  const first = await reader.session(sessionId);
  if (first === undefined) throw new NotFoundError("session_not_found", `there is no session ${sessionId}`);
  const { owner } = first.placement ?? {};
  const found = new Map([[sessionId, first]]);
  for (const session of found.values()) {
    const { handedOffTo } = session;
    const next = handedOffTo === undefined ? undefined : await reader.session(handedOffTo);
    const below = await readChildren(reader, session.sessionId);
    for (const each of next === undefined ? below : [...below, next]) {
      // Another owner's session is no relative (ST36).
      const isOwners = owner === undefined || each.placement?.owner === owner;
      if (isOwners && !found.has(each.sessionId)) found.set(each.sessionId, each);
    }
  }
  return [...found.values()];
}

/** The oldest first. */
async function readChildren(reader: StorageReader, parent: string): Promise<readonly Session[]> {
  const children: Session[] = [];
  for (let before: string | undefined; ;) {
    const more = before === undefined ? {} : { before };
    const page = await reader.sessions({ parent, limit: PAGE, ...more });
    children.push(...page);
    before = page.at(-1)?.sessionId;
    if (page.length < PAGE || before === undefined) return children.toReversed();
  }
}

async function withBudgetOfFirst(
  reader: StorageReader,
  found: readonly ReadSession[],
): Promise<readonly ReadSession[]> {
  const first = await withOwnBudget(reader, found[0]!.session);
  const isHere = new Set(found.map(({ session }) => session.sessionId));
  const payerOf = (id: string): string => (isHere.has(id) ? id : first.sessionId);
  return found.map(({ session, pending }, i) => {
    if (i === 0) return { session: first, pending };
    const { payers, exhausted } = session;
    const row = {
      ...session,
      payers: first.account === undefined ? payers : [...new Set(payers.map(payerOf))],
      ...(exhausted === undefined ? {} : { exhausted: { ...exhausted, payer: payerOf(exhausted.payer) } }),
    };
    return { session: row, pending };
  });
}
