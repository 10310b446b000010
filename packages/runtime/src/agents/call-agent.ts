// Calling an agent's function on a kernel: the same for a session that runs and for one that is looked at.

import {
  AgentContext,
  decodeJson,
  validate,
  type AgentContext as CoreAgentContext,
  type Kernel,
  type Session,
} from "@holdfast/core";
import { resumedFromOf } from "@holdfast/core/internal";
import type { Agent } from "./define.ts";

/** Call it on the session's input and the state of its last checkpoint. Its output is checked against its schema. */
export async function callAgent(kernel: Kernel, agent: Agent, session: Session): Promise<unknown> {
  const { shared } = session;
  const ctx = new AgentContext(kernel, {
    agentName: agent.name,
    input: decodeJson(session.input),
    parentId: kernel.children.parentId,
    shared: shared?.kind === "custom" ? decodeJson(shared.value) : undefined,
    resumedFrom: decodeJson(resumedFromOf(session)),
  });
  kernel.asks.state.begin(ctx.input);
  const returned = await agent.main(ctx as CoreAgentContext<never>);
  if (agent.output === undefined) return returned;
  return validate(agent.output, returned, `output of agent "${agent.name}"`, "invalid_output");
}
