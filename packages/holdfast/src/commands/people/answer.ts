import { refuse } from "@holdfast/terminal/frame/arguments";
import type { Command } from "@holdfast/terminal/frame/command";
import { answerQuestion, questionIn } from "../../sessions/answer-question.ts";
import { readJson } from "@holdfast/terminal/frame/input";

export const answer: Command = {
  name: "answer",
  usage: "answer ID [QUESTION] JSON",
  description:
    "QUESTION is the number in the command that `holdfast inbox` shows. It may be left out while the session has one open question. A question that asks " +
    'for yes or no takes only {"approved": true} or {"approved": false, "reason": "…"}.',
  options: {},
  examples: [
    [`answer ses_019a '"blue"'`, "a text, in the quotes of JSON"],
    [`answer ses_019a 12 '{"amount": 100}'`, "question 12"],
  ],

  async run(args, io) {
    const [id, ...others] = args.positionals;
    if (id === undefined)
      throw refuse("the session's id is missing", answer.usage, {
        fix: "run `holdfast inbox` to see all open questions",
      });
    const text = others.at(-1);
    if (text === undefined) throw refuse("the answer is missing", answer.usage);
    const [given, extra] = others.slice(0, -1);
    if (extra !== undefined)
      throw refuse(`"${extra}" is one argument too many`, answer.usage, {
        fix: "put the JSON in single quotes",
      });
    const question = questionIn(given, answer.usage);
    const payload = readJson(text, "the answer", "JSON");
    return answerQuestion(args, io, {
      id,
      payload,
      isApproval: false,
      said: "answered",
      ...question,
    });
  },
};
