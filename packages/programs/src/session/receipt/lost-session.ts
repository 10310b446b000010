// Decides with a person how work continues whose external agent does not know its session any more
// (`askToStartAfresh`). `askAboutLosses` does the same for an agent that lacks something of its restore
// receipt.
//
//   - A person decides. Nothing is started before, and a refusal ends the session with `restore_incomplete`.
//   - A new session of the program is told what ours has recorded, up to a limit, and what it has no record
//     of.

import { HoldfastError, type ConversationEntry } from "@holdfast/core";
import { defineTask, type AgentContext } from "@holdfast/runtime";

import { recordText, RECORD_MARK } from "../record-text.ts";

interface SummaryInput {
  /** Scheduled with `ctx.conversation()`. The handler gets the entries. */
  readonly messages: unknown;
}

/** The recorded conversation as a text. */
export const summaryTask = defineTask<SummaryInput, string>({
  name: "external-agent:summary",
  description: "The recorded conversation of an external agent as a text.",
  run: ({ messages }) => recordText(messages as readonly ConversationEntry[]),
});

/**
 * The prompt for a new session of the program, after a person has agreed.
 *
 * @throws HoldfastError `restore_incomplete` when the person refuses.
 */
export async function askToStartAfresh(
  ctx: Context,
  { name, lostId, request }: { readonly name: string; readonly lostId: string; readonly request: string },
): Promise<string> {
  const { approved, reason } = await ctx.requestInput({
    prompt: `${name} does not know its session any more (restore_incomplete). Start a new one that is told what was recorded?`,
    details: { agent: name, lostSession: lostId, lost: "the conversation as the program has kept it" },
  });
  if (!approved)
    throw new HoldfastError(
      "restore_incomplete",
      `${name} does not know its session any more, and a new one was refused${reason === undefined ? "" : `: ${reason}`}`,
      {
        got: `no session ${lostId} in the program's own files`,
        expected: "the session that the program has kept of an earlier turn",
        fix: "start a new session, and describe in its prompt what was done (`holdfast logs`)",
      },
    );
  return freshPrompt(ctx, request);
}

type Context = Pick<AgentContext, "requestInput" | "scheduleTask" | "conversation">;

async function freshPrompt(ctx: Context, request: string, gone = ""): Promise<string> {
  const summary = await ctx.scheduleTask(summaryTask, { messages: ctx.conversation() });
  return [
    `${RECORD_MARK} The record below is not complete.`,
    ...(gone === "" ? [] : [gone]),
    "Verify what has already been done before you repeat anything, and then continue.",
    `The record:\n\n${summary}`,
    `The request was:\n\n${request}`,
  ].join("\n\n");
}

/** The answers to the question about losses. */
const CHOICES = {
  continue: "continue",
  restore: "put the copy of its session file back, and continue",
  afresh: "start afresh",
  stop: "stop",
} as const;
type Choice = keyof typeof CHOICES;

export interface AskedLosses {
  readonly name: string;
  readonly lostId: string;
  readonly request: string;
  /** The prompt of the turn that did not begin. */
  readonly prompt: string;
  readonly losses: readonly string[];
  /** Whether the choice `restore` is there. */
  readonly isRestorable: boolean;
}

/**
 * How the session continues though something is lost, as a person chooses.
 *
 * @throws HoldfastError `restore_incomplete` when the person stops the session.
 */
export async function askAboutLosses(
  ctx: Context,
  asked: AskedLosses,
): Promise<{ readonly mode: "start" | "resume" | "restore"; readonly prompt: string }> {
  const { name, request, prompt, losses } = asked;
  const list = losses.map((text) => `- ${text}`).join("\n");
  const gone = `This is gone since your last turn, and it was not your doing:\n${list}`;
  switch (await choose(ctx, asked)) {
    case "continue":
      return { mode: "resume", prompt: `${gone}\n\n${prompt}` };
    case "restore":
      return { mode: "restore", prompt: `${RESTORED}\n\n${prompt}` };
    case "afresh":
      return { mode: "start", prompt: await freshPrompt(ctx, request, gone) };
    case "stop":
      throw new HoldfastError(
        "restore_incomplete",
        `the session of ${name} was stopped, because something that it needs is gone`,
        {
          got: losses.join("; "),
          expected: "all that the restore receipt of its last turn names",
          fix: "bring back what is gone, and describe in the prompt of a new session what was done (`holdfast logs`)",
        },
      );
  }
}

const RESTORED =
  "Your own session file was damaged. It was put back as it was after your last turn that ended in order, and what came later is not in it.";

async function choose(ctx: Context, { name, lostId, losses, isRestorable }: AskedLosses): Promise<Choice> {
  const { restore, ...others } = CHOICES;
  const choices = isRestorable ? { ...others, restore } : others;
  const ways = Object.keys(choices).map((one) => JSON.stringify(one));
  for (let problem = ""; ; problem = "That is none of the answers. ") {
    const answer = await ctx.requestInput<unknown>(
      {
        prompt: `${problem}${name} lacks something of its last turn (restore_incomplete): ${losses.join("; ")}. Answer with ${ways.join(", ")}`,
        details: { agent: name, session: lostId, lost: losses, choices },
      },
      { answer: "any" },
    );
    if (typeof answer === "string" && Object.hasOwn(choices, answer)) return answer as Choice;
  }
}
