import { SESSION_ARGUMENT, type Command } from "@holdfast/terminal/frame/command";
import { answerQuestion, questionIn } from "../../sessions/answer-question.ts";
import { readJson } from "@holdfast/terminal/frame/input";

export const answer: Command = {
  name: "answer",
  takes: [
    { ...SESSION_ARGUMENT, ifMissing: "run `holdfast inbox` to see all open questions" },
    { name: "QUESTION", is: "the question", optional: true },
    { name: "JSON", is: "the answer", ifMore: "put the JSON in single quotes" },
  ],
  description:
    "QUESTION is the number in the command that `holdfast inbox` shows. It may be left out while the session has one open question. A question that asks " +
    'for yes or no takes only {"approved": true} or {"approved": false, "reason": "…"}.',
  options: {},
  examples: [
    [`answer ses_019a '"blue"'`, "a text, in the quotes of JSON"],
    [`answer ses_019a 12 '{"amount": 100}'`, "question 12"],
  ],

  async run(args, io) {
    const [id = ""] = args.positionals;
    const given = args.positionals.length > 2 ? args.positionals[1] : undefined;
    const question = questionIn(given, args);
    const payload = readJson(args.positionals.at(-1) ?? "", "the answer", "JSON");
    return answerQuestion(args, io, {
      id,
      payload,
      isApproval: false,
      said: "answered",
      ...question,
    });
  },
};
