import { defined, NotFoundError, type Approval, type Remember } from "@holdfast/core";
import { refuse } from "@holdfast/terminal/frame/arguments";
import { SESSION_OR_LAST, type Arguments, type Command, type Io } from "@holdfast/terminal/frame/command";
import { answerQuestion, questionIn } from "../../sessions/answer-question.ts";
import { readJson } from "@holdfast/terminal/frame/input";
import { findDatabase } from "@holdfast/place/project";
import { withReader } from "@holdfast/place/find-session";

export const approve: Command = {
  name: "approve",
  takes: [SESSION_OR_LAST, { name: "QUESTION", is: "the question", optional: true }],
  description:
    "Only for questions that ask for yes or no; answer other questions with `holdfast answer`. QUESTION is the number in the command that " +
    "`holdfast inbox` shows: the answer is then for the call that you have read, and refused when another one is open. It may be left out " +
    "while the session has one open question. An answer counts once. With --for it is kept as " +
    "a rule for the same call of the same tool, as `holdfast inbox` shows it, and --pattern makes the rule wider. Rules for a project lie in " +
    "your data folder; `holdfast rules` lists and revokes them. A rule never weakens what the agent's file denies.",
  options: {
    last: { help: "the newest session that has an open question" },
    no: { help: "do not approve" },
    reason: { help: "the reason, which the agent receives", value: "TEXT" },
    for: {
      help: "keep the answer as a rule for this session, or for this project",
      value: "session|project",
    },
    input: {
      help: "yes, with this input in place of that of the call, or with the fields of a form; for questions that say `takesInput`",
      value: "JSON",
      excludes: ["no", "for", "pattern"],
    },
    pattern: {
      help: "with --for: the main arguments that the rule is for, such as `git diff:*` or `src/**`",
      value: "PATTERN",
    },
  },
  examples: [
    ["approve ses_019a", "yes"],
    ["approve ses_019a 12", "yes to question 12, and to no other one"],
    ["approve --last", "whichever asked last"],
    ["approve ses_019a --for session", "yes, and the same call is not asked for again in this session"],
    [
      "approve ses_019a --for project --pattern 'git diff:*'",
      "yes, and so is every `git diff` in this project",
    ],
    ["approve ses_019a --no --reason 'not on a Friday'", "no, and why"],
  ],

  async run(args, io) {
    const [given = "", number] = args.positionals;
    const id = args.has("last") ? await newestAsking(args, io) : given;
    const question = questionIn(number, args);
    const reason = args.text("reason");
    const remember = rememberIn(args);
    const input = args.text("input");
    const approval: Approval = {
      approved: !args.has("no"),
      ...defined({ reason, remember }),
      ...(input === undefined ? {} : { input: inputIn(input, args.usage) }),
    };
    return answerQuestion(args, io, {
      id,
      ...question,
      payload: approval,
      isApproval: true,
      isNo: !approval.approved,
      hasInput: input !== undefined,
      isRule: remember !== undefined,
      keepsRule: remember !== undefined && remember.pattern === undefined,
      said: `${approval.approved ? "approved" : "not approved"}${remember === undefined ? "" : ` for the ${remember.scope}`}`,
    });
  },
};

function rememberIn(args: Arguments): Remember | undefined {
  const scope = args.text("for");
  const pattern = args.text("pattern");
  if (scope === undefined && pattern === undefined) return undefined;
  if (scope !== "session" && scope !== "project")
    throw refuse(scope === undefined ? "--pattern needs --for" : `--for cannot be "${scope}"`, args.usage, {
      expected: "--for session, or --for project",
    });
  if (pattern !== undefined && NAMES_NOTHING.test(pattern))
    throw refuse(`--pattern ${JSON.stringify(pattern)} names no call`, args.usage, {
      expected: "a path such as `src/**`, or a command such as `git diff:*`; `*` is every call of the tool",
    });
  return { scope, ...defined({ pattern }) };
}

const NAMES_NOTHING = /^\s*(\.\/+)*\s*$|^\s*:\*$/;

function inputIn(given: string, usage: string): Readonly<Record<string, unknown>> {
  const input = readJson(given, "the input of the call", "JSON");
  if (typeof input === "object" && input !== null && !Array.isArray(input))
    return input as Readonly<Record<string, unknown>>;
  throw refuse("--input takes an object, the whole input of the call or the fields of a form", usage, {
    got: given,
  });
}

async function newestAsking(args: Arguments, io: Io): Promise<string> {
  if (args.positionals.length > 0)
    throw refuse("an id and --last exclude each other", args.usage, { fix: "give one of them" });
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
