import { refuse } from "../../frame/arguments.ts";
import type { Command } from "../../frame/command.ts";

export const answer: Command = {
  name: "answer",
  summary: "Answer a session's open question with any JSON",
  usage: "answer ID [QUESTION] JSON",
  description:
    "QUESTION is the number that `holdfast show` gives; without it, the command answers the oldest open question. A question that asks " +
    'for yes or no takes only {"approved": true} or {"approved": false, "reason": "…"}.',
  options: {},
  examples: [
    [`answer ses_019a '"blue"'`, "a text, in the quotes of JSON"],
    [`answer ses_019a 12 '{"amount": 100}'`, "question 12"],
  ],

  async run(args, io) {
    const [id, ...others] = args.positionals;
    if (id === undefined) throw refuse("the session's id is missing", answer.usage);
    const text = others.at(-1);
    if (text === undefined) throw refuse("the answer is missing", answer.usage);
    const [number, extra] = others.slice(0, -1);
    if (extra !== undefined)
      throw refuse(`"${extra}" is one argument too many`, answer.usage, {
        fix: "put the JSON in single quotes",
      });
    if (number !== undefined && !/^\d{1,15}$/.test(number)) {
      throw refuse(`"${number}" is not the number of a question`, answer.usage, {
        fix: "run `holdfast show ID` to see the open questions",
      });
    }
    const { readJson } = await import("../../frame/input.ts");
    const payload = readJson(text, "the answer", "JSON");
    const { answerQuestion } = await import("../../ask/answer-question.ts");
    return answerQuestion(args, io, {
      id,
      payload,
      isApproval: false,
      said: "answered",
      ...(number === undefined ? {} : { question: Number(number) }),
    });
  },
};
