// `moveSession`: moves a session from one storage to another, after any commit, without losing it and without
// two living copies (moving-1 to moving-3).
//
//   freeze it in `from` ──► everything it is, read there ──► import it into `to` ──► `from` keeps only where it went
//
//   - An interrupted move continues when it is requested again. The frozen row names the move, and a repeated
//     step has no further effect.
//   - A tombstone of the session in `to` is deleted first. Until the import, the session exists only in
//     `from`.
//   - The session stays only if `to` has refused it. While the answer of `to` is unknown, it is frozen.
//   move-session-4. Before the freeze, `to` is asked for the session: no session is frozen for a `to` that is
//       unreachable or denies access.
//
// The freeze fences a process that runs the session. Unreported tasks run again in the new storage.

import {
  type AgentStorage,
  type ChangeResult,
  type Clock,
  ConflictError,
  HoldfastError,
  type ImportSession,
  mintId,
  type Random,
  readWhole,
  type Session,
  UsageError,
} from "@holdfast/core";
import { sessionMoved, sessionNotFound } from "../session/session-errors.ts";
import { systemClock, systemRandom } from "../node/node-ports.ts";
import { unexpected } from "./session-requests.ts";

interface MoveOptions {
  readonly sessionId: string;
  readonly from: AgentStorage;
  readonly to: AgentStorage;
  /** The name of `to` that the tombstone shows to people: a file, an address. Constant over repeated calls. */
  readonly toName: string;
  readonly clock?: Clock;
  readonly random?: Random;
}

/**
 * Move a session. Answers when it lives in `to`, and only there.
 *
 * @throws NotFoundError, or ConflictError `session_ended`, `session_moved` or `session_exists`.
 * @throws UsageError when it belongs to a family that has not ended.
 * @throws UnavailableError when the state of the move is unknown: call it again.
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
        fix: "use `holdfast export` to write it to a file",
      });
    case "moved":
      throw sessionMoved(sessionId, result.to);
    case "invalid":
      throw new UsageError(`the session cannot move: ${result.reason}`, {
        fix: "wait until its session tree has ended; an ephemeral session moves after its agent has called ctx.enablePersistence()",
      });
    default:
      throw unexpected("freezing a session", result.status);
  }
}

/** The whole session. It is frozen, so all parts that are read belong to the same moment. */
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
      inbox: 0,
      home: { number: (session.home?.number ?? 0) + 1, moveId },
    },
    records,
    entries,
    signals: snapshot.signals.map(({ signalId, name, payload }) => ({ signalId, name, payload })),
    holds: snapshot.holds,
    seen: await from.reader.seenSignals(sessionId),
  };
}

/** An answer may have been lost. */
async function isThere(to: AgentStorage, sessionId: string, moveId: string): Promise<boolean> {
  return (await to.reader.session(sessionId))?.home?.moveId === moveId;
}

function refusedThere(sessionId: string, toName: string, result: ChangeResult): HoldfastError {
  if (result.status === "exists")
    return new ConflictError("session_exists", `the target already has another session ${sessionId}`, {
      at: toName,
      fix: "use `holdfast export` and `import --session ID` to make a copy under another id; nothing was moved",
    });
  const reason = result.status === "invalid" ? result.reason : result.status;
  if (result.status === "invalid" && result.isTooLarge === true)
    return new HoldfastError("too_large", `session ${sessionId} is too large for the target: ${reason}`, {
      at: toName,
      fix: "raise the coordinator's limits.batchBytes; nothing was moved",
    });
  return new HoldfastError("corrupt_record", `session ${sessionId} was refused by the target: ${reason}`, {
    at: toName,
    fix: "check its storage with `holdfast doctor`; nothing was moved",
  });
}
