// Detects a tree that only a person can continue. In such a tree a session below the given one is paused, and
// no other session has anything to do. The session above only waits and is not notified, so the rows are
// read.
//
//   - These sessions continue without a person: running ones, those with an unread signal or a timer, and
//     those that have moved away. A session that is paused until a window of its budget has rolled on does,
//     too. A session that waits for its children, its parent or a reply of theirs does not.
//   - A session that waits for somebody outside the family may be answered while a process stays. With
//     `--park` no process stays.

import {
  isAwaited,
  isEnded,
  isReservedName,
  resumesAt,
  type Session,
  type StorageReader,
} from "@holdfast/core";
import type { Io } from "../frame/command.ts";
import { readBelow, walk } from "./session-tree.ts";
import { pauseAdvice, type PauseAdvice } from "./pause-advice.ts";

export interface PausedBelow {
  /** The paused sessions, each parent before its children. Never empty. */
  readonly sessions: readonly [Session, ...Session[]];
  /** The same text as long as nothing has changed in the family: rows are read one after another. */
  readonly stand: string;
}

export interface PausedAdvice extends PauseAdvice {
  readonly sessionId: string;
}

/** The paused sessions of a family that nothing else moves on. `parks`: whether the process leaves. */
export async function findPausedBelow(
  reader: StorageReader,
  session: Session,
  parks: boolean,
): Promise<PausedBelow | undefined> {
  if (session.children === 0 || session.status === "paused") return undefined;
  // One indexed read spares all the others in a database where nothing is paused.
  if ((await reader.sessions({ status: "paused", limit: 1 })).length === 0) return undefined;
  const below = [...walk(await readBelow(reader, session, Infinity))].map((node) => node.session);
  const living = [session, ...below].filter(({ status }) => !isEnded(status));
  const [first, ...others] = living.filter(({ status, move }) => status === "paused" && move === undefined);
  if (first === undefined || (!parks && living.some((one) => resumesAt(one) !== undefined))) return undefined;
  for (const one of living)
    if (one !== first && !others.includes(one) && (await movesOn(reader, one, parks))) return undefined;
  const stand = living
    .map(({ sessionId, nextSeq, status }) => `${sessionId} ${nextSeq} ${status}`)
    .join("\n");
  return { sessions: [first, ...others], stand };
}

async function movesOn(reader: StorageReader, session: Session, parks: boolean): Promise<boolean> {
  if (session.move !== undefined) return true;
  if (session.status !== "waiting" && session.status !== "input_required") return true;
  for (const wait of session.waits) {
    if (parks) continue;
    if (wait.type !== "signal" || wait.until !== undefined || !isReservedName(wait.name)) return true;
  }
  return (await reader.pendingSignals(session.sessionId)).some(({ name }) => isAwaited(session, name));
}

/**
 * Why sessions below another one are paused, and the commands that help: each command once, with the first
 * that it helps.
 */
export function adviceBelow(
  sessions: readonly Session[],
  io: Pick<Io, "call">,
  isElsewhere: boolean,
): readonly PausedAdvice[] {
  const seen = new Set<string>();
  return sessions.flatMap((session) => {
    const advice = pauseAdvice(session, io, isElsewhere);
    if (advice === undefined) return [];
    const commands = advice.commands.filter((command) => !seen.has(command));
    for (const command of commands) seen.add(command);
    return [{ sessionId: session.sessionId, why: advice.why, commands }];
  });
}
