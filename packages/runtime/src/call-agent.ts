// Calling an agent's function on a kernel: the same for a session that runs and for one that is looked at.

import { AgentContext, decodeJson, validate, type JsonText, type Kernel, type Session } from "@holdfast/core";
import type { Agent, AgentContext as AuthorContext } from "./define.ts";

/** Call it on the session's input and the state of its last checkpoint. Its output is checked against its schema. */
export async function callAgent(
  { name, main, output }: Agent,
  kernel: Kernel,
  { sessionId, input }: Pick<Session, "sessionId" | "input">,
  stateText: JsonText | undefined,
): Promise<unknown> {
  const ctx = new AgentContext(kernel, {
    sessionId,
    agentName: name,
    input: decodeJson(input),
    state: decodeJson(stateText),
  });
  const returned = await main(ctx as unknown as AuthorContext);
  return output === undefined
    ? returned
    : validate(output, returned, `output of agent "${name}"`, "invalid_output");
}
