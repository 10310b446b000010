// `sendSignal` stores a signal of a caller for a session. A signal with a key that is sent again gets the
// answer of the first one, also after the end of the session (session-service-1).

import { hash } from "node:crypto";
import {
  ConflictError,
  defined,
  HoldfastError,
  type JournalRecord,
  mintId,
  type Session,
  type StorageReader,
} from "@holdfast/core";
import type { SignalResponse } from "@holdfast/proto";
import { auditOf, type Call } from "../../call/call.ts";
import { audited, sessionNotFound, sessionObject, unexpected, type ServiceHost } from "../service-host.ts";

const JOURNAL_PAGE = 500;

type Receipt = Pick<SignalResponse, "status" | "signalId">;

interface Sent {
  readonly sessionId: string;
  readonly name: string;
  readonly text: string | undefined;
  readonly dedupKey: string | undefined;
  /** The caller's id of the message; its session takes it once. */
  readonly messageId: string | undefined;
}

/** Sends a signal. It is stored before the answer. */
export async function sendSignal(
  host: ServiceHost,
  sent: Sent,
  action: string,
  call: Call,
): Promise<Receipt> {
  const { sessionId, name, text, dedupKey, messageId } = sent;
  const signalId =
    messageId !== undefined
      ? messageSignalId(sessionId, messageId)
      : dedupKey === undefined
        ? mintId("sig", host.clock.now(), () => host.random.u32())
        : keyedSignalId(sessionId, name, dedupKey, text);
  const result = await audited(
    host,
    {
      type: "send_signal",
      sessionId,
      signalId,
      name,
      payload: text,
      ...defined({ dedupKey }),
    },
    auditOf(call, action, sessionObject({ sessionId })),
  );
  switch (result.status) {
    case "stored":
    case "duplicate":
      return { status: result.status, signalId };
    case "ended":
      // session-service-1. The first answer may have been lost, and may have ended the session.
      if ((dedupKey ?? messageId) !== undefined && (await wasConsumed(host, sessionId, signalId)))
        return { status: "duplicate", signalId };
      throw hasEnded({ sessionId, status: result.sessionStatus });
    case "not_found":
      throw sessionNotFound(sessionId);
    case "invalid":
      throw new HoldfastError("limit_exceeded", result.reason);
    default:
      throw unexpected(action, result);
  }
}

/** An id that stays the same for a repeated signal, so that it is recognised after the session's end, too. */
export function keyedSignalId(
  sessionId: string,
  name: string,
  key: string,
  text: string | undefined,
): string {
  const sent = JSON.stringify([sessionId, name, key, text ?? null]);
  return `sig_${hash("sha256", sent).slice(0, 32)}`;
}

/** The id of the signal that a message becomes, whatever the signal's name is. */
export function messageSignalId(sessionId: string, messageId: string): string {
  const sent = JSON.stringify(["message", sessionId, messageId]);
  return `sig_${hash("sha256", sent).slice(0, 32)}`;
}

async function wasConsumed({ storage }: ServiceHost, sessionId: string, signalId: string): Promise<boolean> {
  for await (const record of recordsOf(storage.reader, sessionId)) {
    if (record.type === "take_signals" && record.signalIds.includes(signalId)) return true;
    if (record.type === "signal_received" && record.signalId === signalId) return true;
  }
  return false;
}

export async function* recordsOf(
  reader: StorageReader,
  sessionId: string,
): AsyncGenerator<JournalRecord, void> {
  for (let from = 0; ;) {
    const page = await reader.journal(sessionId, from, JOURNAL_PAGE);
    yield* page;
    if (page.length < JOURNAL_PAGE) return;
    from += page.length;
  }
}

export const AFTER_END = "fork it to continue from where it was, or start another session";

export function hasEnded({ sessionId, status }: Pick<Session, "sessionId" | "status">): ConflictError {
  return new ConflictError("session_ended", `session ${sessionId} has ended (${status})`, {
    expected: "a session that has not ended",
    fix: AFTER_END,
  });
}
