// A session moves from one storage to another, at any commit, without being lost and without living twice (MV1 to moving-3).
//
//   freeze it in `from` ──► everything it is, read there ──► import it into `to` ──► `from` keeps only where it went
//
//   move-session-1. Whatever cuts it off, asking again goes on: which move it is stands in the frozen row, and every
//       step done twice is done once.
//   move-session-2. What it left in `to` when it lived there is deleted first: until it is imported it is nowhere but here.
//   move-session-3. It stays only when `to` has said that it does not take it. When that is not known, it is frozen.
//   move-session-4. Nothing is frozen for a `to` that cannot be reached, or does not let its caller in: it is asked first.
//
// A process that was running it is fenced by the freeze; what its tasks had not reported is done again where it lives now.

import {
  ConflictError,
  HoldfastError,
  mintId,
  UsageError,
  type AgentStorage,
  type ChangeResult,
  type Clock,
  type ImportSession,
  type Random,
  type SeenSignals,
  type Session,
} from "@holdfast/core";
import { readWhole } from "@holdfast/core/internal";
import { sessionMoved, sessionNotFound } from "../session/session-errors.ts";
import { systemClock, systemRandom } from "../node/node-ports.ts";
import { unexpected } from "./session-requests.ts";

export interface MoveOptions {
  readonly sessionId: string;
  readonly from: AgentStorage;
  readonly to: AgentStorage;
  /** Says in `from` where it went, for people: a file, an address. The same every time it is asked for. */
  readonly toName: string;
  readonly clock?: Clock;
  readonly random?: Random;
}

/**
 * Move a session. Answers when it lives in `to`, and only there.
 *
 * @throws NotFoundError, ConflictError (`session_ended`, `session_moved`, `session_exists`), UsageError when it belongs to a family
 * that has not ended, UnavailableError when it is not known how far it came: ask again.
 */
export async function moveSession(options: MoveOptions): Promise<void> {
  const { sessionId, from, to, toName } = options;
  const clock = options.clock ?? systemClock;
  const random = options.random ?? systemRandom();
  const apply = async (storage: AgentStorage, change: Parameters<AgentStorage["commit"]>[0][number]) => {
    const [result] = await storage.commit([change], clock.now());
    return result!;
  };

  const session = await from.reader.session(sessionId);
  if (session === undefined) throw sessionNotFound(sessionId);
  if (session.move !== undefined && session.move.to !== toName)
    throw sessionMoved(sessionId, session.move.to);
  if (session.move?.isDone === true) return;
  await to.reader.session(sessionId); // move-session-4.
  const moveId = session.move?.moveId ?? mintId("mov", clock.now(), () => random.u32());
  refuseUnlessFrozen(session, await apply(from, { type: "begin_move", sessionId, moveId, to: toName }));

  const end = (outcome: "moved" | "stayed") => apply(from, { type: "end_move", sessionId, moveId, outcome });
  const before = await to.reader.session(sessionId);
  if (before?.move?.isDone === true)
    await apply(to, { type: "delete_session", sessionId, subtree: "refuse" });
  const imported = await apply(to, await pack(from, sessionId, moveId));
  if (imported.status !== "created" && !(await isThere(to, sessionId, moveId))) {
    await end("stayed");
    throw refusedThere(sessionId, toName, imported);
  }
  const ended = await end("moved");
  if (ended.status !== "requested") throw unexpected("ending a move", ended.status);
}

function refuseUnlessFrozen({ sessionId }: Session, result: ChangeResult): void {
  switch (result.status) {
    case "requested":
      return;
    case "ended":
      throw new ConflictError("session_ended", `session ${sessionId} has ended (${result.sessionStatus})`, {
        fix: "`holdfast export` takes it along as a file",
      });
    case "moved":
      throw sessionMoved(sessionId, result.to);
    case "invalid":
      throw new UsageError(`it cannot move: ${result.reason}`, {
        fix: "let its family end first; of an ephemeral one, have its agent call ctx.enablePersistence()",
      });
    default:
      throw unexpected("freezing a session", result.status);
  }
}

/** Everything it is. It is frozen, so what is read piece by piece is of one moment. */
async function pack(from: AgentStorage, sessionId: string, moveId: string): Promise<ImportSession> {
  const snapshot = await from.load(sessionId);
  if (snapshot === undefined) throw sessionNotFound(sessionId);
  const { move: _move, ...session } = snapshot.session;
  const { records, entries } = await readWhole(from.reader, snapshot.session);
  return {
    type: "import_session",
    sessionId,
    session: {
      ...session,
      ...startingOver(session),
      inbox: 0,
      home: { number: (session.home?.number ?? 0) + 1, moveId },
    },
    records,
    entries,
    signals: snapshot.signals.map(({ signalId, name, payload }) => ({ signalId, name, payload })),
    holds: snapshot.holds,
    seen: seenThere(session, await from.reader.seenSignals(sessionId)),
  };
}

/** It counts those that it asks for there. */
function startingOver({ persistence }: Session): Partial<Session> {
  return persistence === undefined ? {} : { children: 0 };
}

/**
 * Who keeps no journal starts over there, and asks for its children again: others than those that stay, of the same ids. What these
 * have told, those are yet to tell.
 */
function seenThere({ sessionId, persistence }: Session, { ids, ...seen }: SeenSignals): SeenSignals {
  if (persistence === undefined) return { ...seen, ids };
  const below = `${sessionId}-`;
  return { ...seen, ids: ids.filter((id) => !id.startsWith(below) || !/^\d/.test(id.slice(below.length))) };
}

/** move-session-1: an answer may have been lost. */
async function isThere(to: AgentStorage, sessionId: string, moveId: string): Promise<boolean> {
  return (await to.reader.session(sessionId))?.home?.moveId === moveId;
}

function refusedThere(sessionId: string, toName: string, result: ChangeResult): HoldfastError {
  if (result.status === "exists")
    return new ConflictError("session_exists", `another session ${sessionId} is there already`, {
      at: toName,
      fix: "it stays where it was; `holdfast export` and `import --session ID` make a copy under another id",
    });
  const reason = result.status === "invalid" ? result.reason : result.status;
  if (result.status === "invalid" && result.isTooLarge === true)
    return new HoldfastError("too_large", `session ${sessionId} is too large to move there: ${reason}`, {
      at: toName,
      fix: "it stays where it was; have the coordinator's limits.batchBytes raised",
    });
  return new HoldfastError("corrupt_record", `session ${sessionId} is refused there: ${reason}`, {
    at: toName,
    fix: "it stays where it was; `holdfast doctor` checks its storage",
  });
}
