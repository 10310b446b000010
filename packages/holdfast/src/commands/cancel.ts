import { defined, isEnded } from "@holdfast/core";
import { SESSION_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { findDatabase } from "../place/project.ts";
import { withSession } from "../place/find-session.ts";
import { requestsOver } from "@holdfast/runtime";
import { isIdle } from "../sessions/send-signal.ts";
import { cleanUp } from "../run/clean-up.ts";

export const cancel: Command = {
  name: "cancel",
  takes: [SESSION_ARGUMENT],
  description:
    "The agent is notified and may clean up for ten seconds; after a cancel it cannot complete any more. With --hard the session " +
    "ends at once and the agent is not notified. An external agent that no process runs is ended by this command. A cancel covers the tree: all sessions below the session are cancelled with it.",
  options: {
    hard: { help: "end it at once" },
    reason: { help: "why; it is recorded", value: "TEXT" },
  },
  examples: [
    ["cancel ses_019a", "ask it, and every session below it, to end"],
    ["cancel ses_019a --hard", "end it"],
  ],

  async run(args, io) {
    const [id = ""] = args.positionals;
    const hard = args.has("hard");
    const reason = args.text("reason");
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
  },
};
