// `cancelSession`: asks a session and all below it to end.

import { defined, isEnded } from "@holdfast/core";
import { requestsOver } from "@holdfast/runtime";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { findDatabase } from "@holdfast/place/project";
import { withSession } from "@holdfast/place/find-session";
import { cleanUp } from "../run/clean-up.ts";
import { isIdle } from "./send-signal.ts";

export interface Cancelling {
  /** Whether it ends at once, without its agent. */
  readonly hard: boolean;
  readonly reason: string | undefined;
}

/** @returns the exit code. */
export async function cancelSession(
  id: string,
  { hard, reason }: Cancelling,
  args: Arguments,
  io: Io,
): Promise<number> {
  const database = findDatabase(args, io);
  const cancelled = await withSession(database, id, async (session, access) => {
    const { sessionId } = session;
    const { storage } = access;
    const receipt = await requestsOver(storage).cancel(sessionId, {
      hard,
      ...defined({ reason }),
    });
    const status = (await storage.reader.session(sessionId))?.status ?? session.status;
    const idle = !isEnded(status) && (await isIdle(access, [sessionId]));
    return { session, receipt, status, isIdle: idle };
  });
  const { session, receipt } = cancelled;
  const { sessionId } = session;
  const isCleanedUp = cancelled.isIdle && (await cleanUp(session, database, args, io));
  const status = isCleanedUp ? "cancelled" : cancelled.status;
  const resume = cancelled.isIdle && !isCleanedUp ? io.call(`resume ${sessionId}`) : undefined;
  io.result(
    {
      sessionId,
      status: receipt.status,
      sessionStatus: status,
      ...defined({ resume }),
    },
    "",
  );
  // Success: what was asked for is so already, and a script that repeats it must not fail.
  if (receipt.status === "already_ended") io.note(`session ${sessionId} had already ended (${status})`);
  else if (isEnded(status))
    io.note(`session ${sessionId} is ${status}${session.children > 0 ? ", and all below it" : ""}`);
  else io.note(`session ${sessionId} was asked to end${session.children > 0 ? ", and all below it" : ""}`);
  if (resume !== undefined)
    io.note(`no process runs it; its agent may clean up with: ${resume}   (or end it with --hard)`);
  return 0;
}
