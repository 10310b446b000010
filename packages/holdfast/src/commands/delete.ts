import { ConflictError, HoldfastError, type ChangeResult } from "@holdfast/core";
import { SESSION_ARGUMENT, type Command, type Io } from "@holdfast/terminal/frame/command";
import { findDatabase } from "@holdfast/place/project";
import { withSession } from "@holdfast/place/find-session";
import { removeLog } from "../run/background.ts";
import { dropFileSnapshots, idsBelow } from "../agents/workspaces/deleted-sessions.ts";

export const deleteSession: Command = {
  name: "delete",
  takes: [SESSION_ARGUMENT],
  description:
    "The session's journal, conversation, output and signals are removed from the database; `holdfast export` saves them to a file. " +
    "Its file snapshots in this project are forgotten, and its worktree stays. " +
    "A session that has not ended cannot be deleted: cancel it first. A session that has children is deleted only together with them, " +
    "and only if all of them have ended.",
  options: { subtree: { help: "also delete all sessions below it" } },
  examples: [
    ["delete ses_019a", "forget it"],
    ["delete ses_019a --subtree", "delete it with all sessions below it"],
  ],

  async run(args, io) {
    const [id = ""] = args.positionals;
    const subtree = args.has("subtree") ? "delete" : "refuse";
    return withSession(findDatabase(args, io), id, async ({ sessionId }, { storage }) => {
      const below = subtree === "delete" ? await idsBelow(storage.reader, sessionId) : [];
      const [result] = await storage.commit([{ type: "delete_session", sessionId, subtree }], Date.now());
      const sessions = deletedOf(sessionId, result, io);
      await dropFileSnapshots([sessionId, ...below], io);
      for (const gone of [sessionId, ...below]) removeLog(gone, io);
      io.result({ sessionId, sessions }, "");
      io.note(
        sessions === 1
          ? `session ${sessionId} is deleted`
          : `session ${sessionId} is deleted, and ${sessions - 1} below it`,
      );
      return 0;
    });
  },
};

/** How many there were. @throws ConflictError when something stands in the way. */
function deletedOf(sessionId: string, result: ChangeResult | undefined, io: Pick<Io, "call">): number {
  switch (result?.status) {
    case "deleted":
      return result.sessions;
    case "not_found":
      return 1; // Somebody else has just done it.
    case "has_children":
      throw new ConflictError("session_has_children", `session ${sessionId} has children`, {
        expected: "a session without any, or --subtree",
        fix: `delete all of them with \`${io.call(`delete ${sessionId} --subtree`)}\``,
      });
    case "not_ended": {
      const { sessionId: other, sessionStatus } = result;
      const below = other === sessionId ? "" : ` below ${sessionId}`;
      throw new ConflictError("session_not_ended", `session ${other}${below} is ${sessionStatus}`, {
        expected: "sessions that have ended",
        fix: `wait for it, or end it with \`${io.call(`cancel ${other} --hard`)}\``,
      });
    }
    default:
      throw new HoldfastError("internal", `deleting cannot end as "${result?.status ?? "nothing"}"`);
  }
}
