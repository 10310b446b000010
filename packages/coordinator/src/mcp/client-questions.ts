// A question of a session as a form for the person at an MCP client (`questionForm`), and the answer of that
// person (`answerOf`).

import { z } from "zod";

/** The answer of a client to an elicitation. */
export interface GivenAnswer {
  readonly action?: unknown;
  readonly content?: Readonly<Record<string, unknown>> | undefined;
}

export function questionForm(isApproval: boolean) {
  return isApproval
    ? z.object({ approved: z.boolean(), reason: z.string().optional() })
    : z.object({ answer: z.string() });
}

/** The answer for the session. */
export function answerOf({ content = {} }: GivenAnswer, isApproval: boolean): unknown {
  const { approved, reason, answer } = content;
  if (!isApproval) return answer;
  return { approved: approved === true, ...(typeof reason === "string" && reason !== "" ? { reason } : {}) };
}
