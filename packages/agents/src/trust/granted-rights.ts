// `rightsOf`: the hash of what an agent file gives to its sessions. A file whose rights are others than those
// that its user has trusted is asked for again, and its prompt may change without that.
//
//   - A field counts when it lets a session do more than a file without it could, or when a file without it
//     could do more. The table has a line for each field of a record. A new field without one does not
//     compile.
//   - Code of the project that a hook or a program of a server names counts with its content
//     (`named-code.ts`).

import type { AgentRecord } from "../record/agent-record.ts";
import { codeOf, hashOfCode } from "./named-code.ts";
import { hashOf } from "./trust-file.ts";

type Field = keyof AgentRecord;

/** Whether a field counts, and `false` for one that describes, or whose names are approved elsewhere. */
const COUNTS: Readonly<Record<Field, boolean>> = {
  name: false,
  description: false,
  tags: false,
  prompt: false,
  model: false,
  fallbackModels: false,
  resumeAtReset: false,
  tools: false, // A call of any tool is decided by `permissions`.
  deniedTools: true,
  permissions: true,
  effects: true, // A tool that only reads is not asked for.
  turnsMax: false,
  planFirst: false,
  agents: false, // Each has a file of its own.
  subAgents: true,
  relaysMessages: false,
  skills: false, // Approved by their content.
  script: false,
  scripts: false, // Pushed by their content.
  tasks: false, // Trusted as code (`isTrustedCode`).
  when: true,
  hooks: true,
  mcpServers: true,
  workspace: true,
  sandbox: true,
  environments: true,
  variables: true,
  secrets: true,
  inputSchema: false,
  outputSchema: false,
  isConversation: false,
  budget: false,
  ttlMs: false,
  labels: false,
  source: false,
};

/** The hash of what counts in a record. @returns `undefined` for a file that gives nothing. */
export function rightsOf(record: AgentRecord, project: string): string | undefined {
  const counted = Object.entries(record).filter(
    ([field, value]) => COUNTS[field as Field] && !isNothing(field, value),
  );
  if (counted.length === 0) return undefined;
  const { hooks, mcpServers } = record;
  const named = codeOf(project, JSON.stringify([hooks, mcpServers]));
  return hashOf(JSON.stringify([counted, ...(named.length === 0 ? [] : [hashOfCode(project, named)])]));
}

function isNothing(field: string, value: unknown): boolean {
  if (value === null || value === undefined || (field === "workspace" && value === "shared")) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}
