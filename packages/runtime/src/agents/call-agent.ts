// `callAgent`: calls an agent's function on a kernel, for a running session and for a replay without effects.

import {
  AgentContext,
  type AgentContext as CoreAgentContext,
  decodeJson,
  type Kernel,
  resumedFromOf,
  type Session,
  validate,
} from "@holdfast/core";
import type { Agent } from "./define.ts";

/**
 * Call the agent with the session's input and its last checkpoint's state, and check the output by its
 * schema.
 */
export async function callAgent(kernel: Kernel, agent: Agent, session: Session): Promise<unknown> {
  const { shared } = session;
  const { parent } = kernel.children.relations;
  const ctx = new AgentContext(kernel, {
    agentName: agent.name,
    input: decodeJson(session.input),
    parentId: parent?.sessionId,
    parentNotice: parent === undefined ? undefined : (parent.notify ?? "events"),
    shared: shared?.kind === "custom" ? decodeJson(shared.value) : undefined,
    environment: session.environment,
    resumedFrom: decodeJson(resumedFromOf(session)),
  });
  kernel.asks.state.begin(ctx.input);
  const returned = await agent.main(ctx as CoreAgentContext<never>);
  if (agent.output === undefined) return returned;
  return validate(agent.output, returned, `output of agent "${agent.name}"`, "invalid_output");
}
