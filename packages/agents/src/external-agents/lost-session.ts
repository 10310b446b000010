// Decides with a person how work continues whose external agent does not know its session any more (`askToStartAfresh`).
//
//   lost-session-1. A person decides. Nothing is started before, and a refusal ends the session with `restore_incomplete`.
//   lost-session-2. A new session of the program is told what ours has recorded, up to a limit, and what it has no record of.

import { HoldfastError, type ConversationEntry } from "@holdfast/core";
import { defineTask, type AgentContext } from "@holdfast/runtime";

import { recordText } from "./record-text.ts";

interface SummaryInput {
  /** Scheduled with `ctx.conversation()`. The handler gets the entries. */
  readonly messages: unknown;
}

/** The recorded conversation as a text (lost-session-2). */
export const summaryTask = defineTask<SummaryInput, string>({
  name: "external-agent:summary",
  description: "The recorded conversation of an external agent as a text.",
  run: ({ messages }) => recordText(messages as readonly ConversationEntry[]),
});

/**
 * The prompt for a new session of the program, after a person has agreed (lost-session-1).
 *
 * @throws HoldfastError `restore_incomplete` when the person refuses.
 */
export async function askToStartAfresh(
  ctx: Pick<AgentContext, "requestInput" | "scheduleTask" | "conversation">,
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
  const summary = await ctx.scheduleTask(summaryTask, { messages: ctx.conversation() });
  return [
    "You have begun this work in a session that is lost. You remember nothing of it. The record below is not complete.",
    "Verify what has already been done before you repeat anything, and then continue.",
    `The record:\n\n${summary}`,
    `The request was:\n\n${request}`,
  ].join("\n\n");
}
