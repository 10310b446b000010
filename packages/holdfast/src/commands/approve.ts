import type { Approval } from "@holdfast/core";
import { takeOnly } from "../arguments.ts";
import type { Command } from "../command.ts";

export const approve: Command = {
  name: "approve",
  summary: "Answer a session's oldest open question with yes, or with no",
  usage: "approve ID [--no] [--reason TEXT]",
  description:
    "Only for questions that ask for yes or no; what asks for something else is answered with `holdfast answer`.",
  options: {
    no: { help: "do not approve" },
    reason: { help: "why; the agent gets it", value: "TEXT" },
  },
  examples: [
    ["approve ses_019a", "yes"],
    ["approve ses_019a --no --reason 'not on a Friday'", "no, and why"],
  ],

  async run(args, io) {
    const id = takeOnly(args.positionals, "the session's id", approve.usage);
    const reason = args.text("reason");
    const approval: Approval = { approved: !args.has("no"), ...(reason === undefined ? {} : { reason }) };
    const { answerQuestion } = await import("../answer-question.ts");
    return answerQuestion(args, io, {
      id,
      payload: approval,
      isApproval: true,
      said: approval.approved ? "approved" : "not approved",
    });
  },
};
