// An agent record while its file is read (`AgentDraft`): the record without its source, with fields that may
// change.

import type { AgentRecord, PermissionDecision, PermissionRule } from "../record/agent-record.ts";

export type AgentDraft = { -readonly [name in keyof Omit<AgentRecord, "source">]: AgentRecord[name] };

/** The draft of a file that says nothing but its name. */
export function newDraft(name: string, prompt: string): AgentDraft {
  return {
    name,
    description: "",
    tags: [],
    prompt,
    model: null,
    fallbackModels: [],
    tools: null,
    deniedTools: [],
    permissions: [],
    effects: {},
    turnsMax: null,
    planFirst: false,
    agents: [],
    subAgents: {},
    relaysMessages: false,
    skills: null,
    scripts: [],
    tasks: [],
    when: {},
    hooks: [],
    mcpServers: {},
    workspace: "shared",
    sandbox: null,
    environments: [],
    variables: [],
    secrets: [],
    inputSchema: null,
    outputSchema: null,
    isConversation: false,
    budget: null,
    ttlMs: null,
    labels: null,
  };
}

export function addRule(
  draft: AgentDraft,
  decision: PermissionDecision,
  tool: string,
  pattern: PermissionRule["pattern"] = null,
): void {
  draft.permissions = [...draft.permissions, { decision, tool, pattern }];
}

export function denyTools(draft: AgentDraft, tools: readonly string[]): void {
  draft.deniedTools = [...new Set([...draft.deniedTools, ...tools])];
}
