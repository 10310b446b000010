// The agent record that tests of the model loop change (`RECORD`): an agent with all built-in tools and no restriction.

import type { AgentRecord } from "../agent-files/agent-record.ts";

export const RECORD: AgentRecord = {
  name: "helper",
  description: "Helps.",
  prompt: "You help.",
  model: null,
  fallbackModels: [],
  tools: null,
  deniedTools: [],
  permissions: [],
  effects: {},
  turnsMax: null,
  planFirst: false,
  agents: [],
  skills: [],
  mcpServers: {},
  workspace: "shared",
  sandbox: null,
  environments: [],
  secrets: [],
  inputSchema: null,
  outputSchema: null,
  isConversation: false,
  budget: null,
  ttlMs: null,
  labels: null,
  source: { path: "/helper.md", dialect: "holdfast", scope: "path", hash: "0123456789abcdef" },
};
