// One signal to one session, over whoever owns the database: what `signal`, `approve` and `answer` have in common.

import {
  ConflictError,
  isAwaited,
  isEnded,
  type AgentStorage,
  type JsonText,
  type Session,
  type SignalReceipt,
  type StorageReader,
} from "@holdfast/core";
import { createRuntime, type Runtime } from "@holdfast/runtime";
import type { Arguments, Io } from "./command.ts";
import { withSession } from "./find-session.ts";
import { findDatabase } from "./project.ts";

export interface Sending {
  /** Of the session, or its beginning. */
  readonly id: string;
  /** What to send, once the session and its pending signals are known. May throw. */
  readonly choose: (
    session: Session,
    pending: PendingSignals,
    reader: StorageReader,
  ) => Message | Promise<Message>;
}

/** Payloads of the signals that were not taken yet, the oldest of each name. */
export type PendingSignals = ReadonlyMap<string, JsonText | undefined>;

export interface Message {
  /** Of the signal. */
  readonly name: string;
  readonly send: (runtime: Runtime, sessionId: string) => Promise<SignalReceipt>;
  /** What to say when it is stored. */
  readonly said: string;
  /** What to say when it was there before. */
  readonly repeated: string;
}

export async function sendSignal(args: Arguments, io: Io, { id, choose }: Sending): Promise<number> {
  return withSession(findDatabase(args, io), id, async (session, { storage }) => {
    const { sessionId } = session;
    if (isEnded(session.status)) throw sessionEnded(session);
    const signals = await storage.reader.pendingSignals(sessionId);
    const pending = new Map(signals.toReversed().map(({ name, payload }) => [name, payload]));
    const { name, send, said, repeated } = await choose(session, pending, storage.reader);
    const runtime = createRuntime({ storage, adopt: false, development: false });
    try {
      const { status, ...refusal } = await send(runtime, sessionId);
      if (status === "refused") {
        const now = await storage.reader.session(sessionId);
        if (now !== undefined && isEnded(now.status)) throw sessionEnded(now);
        throw new ConflictError(
          "session_ended",
          "reason" in refusal ? refusal.reason : "the signal was refused",
        );
      }
      const isWaiting = isAwaited(session, name);
      const resume =
        isWaiting && (await isIdle(storage, sessionId)) ? io.call(`resume ${sessionId}`) : undefined;
      io.result(
        { sessionId, name, status, awaited: isWaiting, ...(resume === undefined ? {} : { resume }) },
        "",
      );
      io.note(status === "stored" ? said : repeated);
      if (resume !== undefined) io.note(`no process runs the session; it goes on with: ${resume}`);
      if (!isWaiting && status === "stored") {
        io.note(io.notes.paint.dim("the session does not wait for it now; it is kept until it does"));
      }
      return 0;
    } finally {
      await runtime.close();
    }
  });
}

/** Whether a session has something to do and no process does it. */
export async function isIdle(storage: AgentStorage, sessionId: string): Promise<boolean> {
  const { sessionIds } = await storage.due({ now: Date.now(), limit: Number.MAX_SAFE_INTEGER });
  return sessionIds.includes(sessionId);
}

function sessionEnded({ sessionId, status }: Session): ConflictError {
  return new ConflictError(
    "session_ended",
    `session ${sessionId} has ended (${status}): it takes no more signals`,
    {
      fix: "start another session",
    },
  );
}
