// The common part of `signal`, `approve` and `answer`: one signal to one session, through the process that
// owns the database.

import { setTimeout as delay } from "node:timers/promises";
import {
  ConflictError,
  defined,
  HoldfastError,
  isAwaited,
  isEnded,
  mintId,
  UnavailableError,
  type AgentStorage,
  type JsonText,
  type Session,
  type SignalReceipt,
  type StorageReader,
} from "@holdfast/core";
import { requestsOver, type SessionRequests } from "@holdfast/runtime";
import { programOf } from "@holdfast/machine/agent-source";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { withSession, type Access } from "@holdfast/place/find-session";
import { recordingAnswers } from "@holdfast/place/answer-principals";
import { findDatabase } from "@holdfast/place/project";
import { randomU32 } from "@holdfast/terminal/frame/random";

export interface Sending {
  /** The id of the session, or its beginning. */
  readonly id: string;
  /** Chooses the signal once the session and its pending signals are known. May throw. */
  readonly choose: (
    session: Session,
    pending: PendingSignals,
    reader: StorageReader,
  ) => Message | Promise<Message>;
}

/** Names of the signals that were not taken yet. */
export type PendingSignals = ReadonlySet<string>;

export interface Message {
  /** The name of the signal. */
  readonly name: string;
  readonly send: (requests: SessionRequests, sessionId: string, signalId: string) => Promise<SignalReceipt>;
  /** The text for a signal that was stored. */
  readonly said: string;
  /** The text for a signal that was already stored. */
  readonly repeated: string;
  /** A clause about the work that waits while no process runs the session. */
  readonly undone?: string;
  /** Called when it was there before, with the recorded payload if nobody has consumed it. May reject. */
  readonly compare?: (recorded: JsonText | undefined) => Promise<void>;
}

/**
 *   - The process that owns the database may end between storing a signal and reporting it. The storage then
 *     sends the signal again to the next owner, under the same id, so that it is stored once. Its answer is
 *     then `duplicate`, or a refusal if the signal has ended the session. If a commit has already consumed
 *     the signal, the journal shows that.
 */
export async function sendSignal(args: Arguments, io: Io, sending: Sending): Promise<number> {
  const signalId = mintId("sig", Date.now(), randomU32);
  let chosen: Message | undefined;
  try {
    return await withSession(findDatabase(args, io), sending.id, async (session, access) => {
      const storage = access.role === "remote" ? access.storage : recordingAnswers(access.storage);
      const { reader } = storage;
      if (isEnded(session.status)) throw sessionEnded(session, io);
      const pending = await reader.pendingSignals(session.sessionId);
      chosen = await sending.choose(session, new Set(pending.map(({ name }) => name)), reader);
      const status = await send(storage, session, chosen, signalId, io);
      return report(io, access, { session, message: chosen, status });
    });
  } catch (error) {
    const isLost =
      HoldfastError.is(error) && (error.code === "storage_unavailable" || error.code === "locked");
    throw chosen !== undefined && isLost ? unknownWhether(error, sending.id, io) : error;
  }
}

const JOURNAL_PAGE = 1_000;

function unknownWhether(cause: unknown, id: string, io: Io): UnavailableError {
  return new UnavailableError(
    "storage_unavailable",
    "no process that owns the database has answered; the signal may or may not be stored",
    { fix: `run ${io.call(`show ${id}`)} to see whether the signal has arrived`, cause },
  );
}

/** Whether a signal waits to be consumed, or was. */
async function isStored(reader: StorageReader, sessionId: string, signalId: string): Promise<boolean> {
  const pending = await reader.pendingSignals(sessionId);
  if (pending.some((signal) => signal.signalId === signalId)) return true;
  for (let from = 0; ; from += JOURNAL_PAGE) {
    const records = await reader.journal(sessionId, from, JOURNAL_PAGE);
    for (const record of records) {
      if ("signalId" in record && record.signalId === signalId) return true;
      if ("signalIds" in record && record.signalIds.includes(signalId)) return true;
    }
    if (records.length < JOURNAL_PAGE) return false;
  }
}

async function send(
  storage: AgentStorage,
  { sessionId }: Session,
  message: Message,
  signalId: string,
  io: Io,
): Promise<"stored" | "duplicate"> {
  const receipt = await message.send(requestsOver(storage), sessionId, signalId);
  // The owner of the database may have ended between storing the signal and its answer.
  if (receipt.status !== "stored" && (await isStored(storage.reader, sessionId, signalId))) return "stored";
  if (receipt.status === "duplicate" && message.compare !== undefined) {
    const pending = await storage.reader.pendingSignals(sessionId);
    await message.compare(pending.find(({ name }) => name === message.name)?.payload);
  }
  if (receipt.status !== "refused") return receipt.status;
  const now = await storage.reader.session(sessionId);
  if (now !== undefined && isEnded(now.status)) throw sessionEnded(now, io);
  throw new ConflictError("session_ended", receipt.reason);
}

/** The receipts for messages to an external agent at work, which follow the signal. */
const RECEIPTS: Readonly<Record<string, string>> = {
  steer: "whether it joined the turn",
  follow_up: "when it is the request",
};

interface Sent {
  readonly session: Session;
  readonly message: Message;
  readonly status: "stored" | "duplicate";
}

async function report(io: Io, access: Access, { session, message, status }: Sent): Promise<number> {
  const { sessionId } = session;
  const { name, said, repeated } = message;
  const isWaiting = isAwaited(session, name);
  const resume =
    isWaiting && (await isIdle(access, [sessionId])) ? io.call(`resume ${sessionId}`) : undefined;
  io.result({ sessionId, name, status, awaited: isWaiting, ...defined({ resume }) }, "");
  io.note(status === "stored" ? said : repeated);
  const receipt = programOf(session.agent.file) === undefined ? undefined : RECEIPTS[name];
  if (isWaiting && receipt !== undefined)
    io.note(io.notes.paint.dim(`${io.call(`logs ${sessionId}`)} says ${receipt}`));
  if (resume !== undefined)
    io.note(`no process runs the session${message.undone ?? ""}; continue with: ${resume}`);
  if (!isWaiting && status === "stored" && !isEnded(session.status)) {
    io.note(
      io.notes.paint.dim("the session does not wait for this signal now; the signal is kept until it does"),
    );
  }
  return 0;
}

/** How long a process that has released a waiting session may take to resume it. */
const TAKEN_MS = 2_000;
const LOOK_MS = 20;

/** Whether one of these sessions has something to do and no process does it. */
export async function isIdle({ role, storage }: Access, sessionIds: readonly string[]): Promise<boolean> {
  if (role === "remote") return false; // Its runners see to it.
  for (const until = performance.now() + TAKEN_MS; ; await delay(LOOK_MS)) {
    const due = await storage.due({ now: Date.now(), limit: Number.MAX_SAFE_INTEGER });
    if (!due.sessionIds.some((sessionId) => sessionIds.includes(sessionId))) return false;
    if (role === "owner" || performance.now() >= until) return true;
  }
}

export function sessionEnded({ sessionId, status, agent }: Session, io: Pick<Io, "call">): ConflictError {
  const name = programOf(agent.file);
  return new ConflictError(
    "session_ended",
    `session ${sessionId} has ended (${status}): it takes no more signals`,
    {
      fix:
        name === undefined
          ? `run \`${io.call(`show ${sessionId}`)}\` to see how it ended, or start another session`
          : `let the agent go on in a new session: \`${io.call(`fork ${sessionId} --agent ${name} --input '"…"'`)}\`; next time begin a conversation, which waits for signals after its answer: \`${io.call(`run ${name} "…" --conversation`)}\``,
    },
  );
}
