// `subAgentCallOf`: whose work an entry of a conversation is. Pure, over plain JSON.

/**
 * The call of a tool that started a sub-agent inside of the program of an external agent.
 *
 * @returns `undefined` for an entry of the session's own agent.
 */
export function subAgentCallOf(content: unknown): string | undefined {
  if (typeof content !== "object" || content === null || !("parentCallId" in content)) return undefined;
  return typeof content.parentCallId === "string" ? content.parentCallId : undefined;
}
