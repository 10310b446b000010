// `subAgentRecord`: the record of an agent that another agent's file defines.
//
//   - A sub-agent has the tools and the rules of the agent of its file, and can only take away from them.
//   - A sub-agent starts no agents, so that no cycle exists.
//   - Its name begins with that of its agent and a dot. No agent file has a name with a dot, so the name
//     means one agent.

import type { AgentRecord, SubAgent } from "./agent-record.ts";

/** The records of all sub-agents of an agent. */
export function subAgentRecords(parent: AgentRecord): readonly AgentRecord[] {
  return Object.entries(parent.subAgents).map(([name, given]) => subAgentRecord(parent, name, given));
}

function subAgentRecord(parent: AgentRecord, name: string, given: SubAgent): AgentRecord {
  const { description, prompt, model, tools, deniedTools, permissions, turnsMax } = given;
  return {
    ...parent,
    name: `${parent.name}.${name}`, // No agent file has a name with a dot, so the name means one agent.
    description,
    prompt,
    model: model ?? parent.model,
    fallbackModels: model === null ? parent.fallbackModels : [],
    tools: tools ?? parent.tools,
    deniedTools: [...new Set([...parent.deniedTools, ...deniedTools])],
    permissions: [...parent.permissions, ...permissions],
    turnsMax: turnsMax ?? parent.turnsMax,
    // A sub-agent starts no agents, so no cycle exists.
    agents: [],
    subAgents: {},
    relaysMessages: false,
    workspace: "shared",
    inputSchema: null,
    outputSchema: null,
    isConversation: false,
    // It spends from the budget and the time of the session that started it.
    budget: null,
    ttlMs: null,
  };
}
