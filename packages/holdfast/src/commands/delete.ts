import { ConflictError, HoldfastError, parseDuration, type ChangeResult } from "@holdfast/core";
import { refuse } from "@holdfast/terminal/frame/arguments";
import { SESSION_ARGUMENT, type Arguments, type Command, type Io } from "@holdfast/terminal/frame/command";
import { findDatabase, placesOf } from "@holdfast/place/project";
import { withSession } from "@holdfast/place/find-session";
import { removeLog } from "../run/background.ts";
import { dropFileSnapshots, idsBelow } from "../agents/workspaces/deleted-sessions.ts";
import { planRemoval, removePlanned } from "../sessions/remove-ended.ts";

export const deleteSession: Command = {
  name: "delete",
  takes: [{ ...SESSION_ARGUMENT, is: "the session's id, or --ended-before", orOption: "ended-before" }],
  description:
    "The session's journal, conversation, output and signals are removed from the database; `holdfast export` saves them to a file. " +
    "Its file snapshots in this project are forgotten, and its worktree stays. " +
    "A session that has not ended cannot be deleted: cancel it first. A session that has children is deleted only together with them, " +
    "and only if all of them have ended. With --ended-before it deletes every session that ended longer ago, of the database and of the " +
    "local stack. A session stays as long as a session below it, and while its parent or a session that continues it has not ended.",
  options: {
    subtree: { help: "also delete all sessions below it", excludes: ["ended-before"] },
    "ended-before": {
      help: "delete all sessions that ended longer ago than this, such as 30d or 12h",
      value: "TIME",
    },
    "dry-run": { help: "show what --ended-before would delete, and delete nothing" },
  },
  examples: [
    ["delete ses_019a", "forget it"],
    ["delete ses_019a --subtree", "delete it with all sessions below it"],
    ["delete --ended-before 30d --dry-run", "show the sessions that ended more than 30 days ago"],
    ["delete --ended-before 30d", "delete them"],
  ],

  async run(args, io) {
    if (args.has("ended-before")) return deleteEnded(args, io);
    if (args.has("dry-run"))
      throw refuse("--dry-run is for --ended-before", args.usage, { fix: "leave out --dry-run" });
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

async function deleteEnded(args: Arguments, io: Io): Promise<number> {
  if (args.positionals.length > 0)
    throw refuse("an id and --ended-before exclude each other", args.usage, { fix: "give one of them" });
  const endedBefore = Date.now() - parseDuration(args.text("ended-before") ?? "", "--ended-before");
  const isTrial = args.has("dry-run");
  const sessionIds: string[] = [];
  for (const place of placesOf(findDatabase(args, io))) {
    const planned = await planRemoval(place, endedBefore);
    sessionIds.push(...(isTrial ? planned : await removePlanned(place, planned, { endedBefore, io })));
  }
  const count = sessionIds.length === 1 ? "1 session" : `${sessionIds.length} sessions`;
  io.result({ sessions: sessionIds.length, sessionIds }, isTrial ? sessionIds.join("\n") : "");
  io.note(
    isTrial ? `${count} would be deleted` : `${count} ${sessionIds.length === 1 ? "is" : "are"} deleted`,
  );
  return 0;
}

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
