import { NotFoundError, type Approval } from "@holdfast/core";
import { refuse, takeOnly } from "../../frame/arguments.ts";
import type { Arguments, Command, Io } from "../../frame/command.ts";

export const approve: Command = {
  name: "approve",
  summary: "Answer a session's oldest open question with yes, or with no",
  usage: "approve (ID | --last) [--no] [--reason TEXT]",
  description: "Only for questions that ask for yes or no; answer other questions with `holdfast answer`.",
  options: {
    last: { help: "the newest session that has an open question" },
    no: { help: "do not approve" },
    reason: { help: "the reason, which the agent receives", value: "TEXT" },
  },
  examples: [
    ["approve ses_019a", "yes"],
    ["approve --last", "whichever asked last"],
    ["approve ses_019a --no --reason 'not on a Friday'", "no, and why"],
  ],

  async run(args, io) {
    const id = args.has("last") ? await newestAsking(args, io) : idIn(args);
    const reason = args.text("reason");
    const approval: Approval = { approved: !args.has("no"), ...(reason === undefined ? {} : { reason }) };
    const { answerQuestion } = await import("../../ask/answer-question.ts");
    return answerQuestion(args, io, {
      id,
      payload: approval,
      isApproval: true,
      said: approval.approved ? "approved" : "not approved",
    });
  },
};

function idIn({ positionals }: Arguments): string {
  return takeOnly(positionals, "the session (its id, or --last)", approve.usage);
}

async function newestAsking(args: Arguments, io: Io): Promise<string> {
  if (args.positionals.length > 0)
    throw refuse("an id and --last exclude each other", approve.usage, { fix: "give one of them" });
  const { findDatabase } = await import("../../place/project.ts");
  const { withReader } = await import("../../place/find-session.ts");
  const database = findDatabase(args, io);
  const [newest] = await withReader(
    database,
    async (reader) => (await reader?.sessions({ limit: 1, status: "input_required" })) ?? [],
  );
  if (newest !== undefined) return newest.sessionId;
  throw new NotFoundError("session_not_found", "no session has an open question", {
    at: database.path,
    fix: "run `holdfast list` to see what each session waits for",
  });
}
