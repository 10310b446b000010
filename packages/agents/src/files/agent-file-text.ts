// `agentFileText`: an agent record as a file in Holdfast's own form.
//
// The file permits no more than the record. Patterns are mapped again when it is read, which only narrows
// what is allowed.

import { type AmountLimits, type Budget, DAY_MS, HOUR_MS, MINUTE_MS } from "@holdfast/core";
import { stringify } from "yaml";
import type { AgentRecord, PermissionDecision } from "../record/agent-record.ts";
import { TOOLS } from "../record/tool-names.ts";

export function agentFileText(record: AgentRecord): string {
  const front = given({
    name: record.name,
    description: record.description,
    tools: toolsOf(record),
    disallowedTools: record.deniedTools,
    model: record.model,
    maxTurns: record.turnsMax,
    skills: record.skills,
    permissionMode: record.planFirst ? "plan" : null,
    mcpServers: serversOf(record),
    hooks: claudeHooksOf(record),
    holdfast: given({
      budget: record.budget === null ? null : budgetOf(record.budget),
      ttl: record.ttlMs === null ? null : durationText(record.ttlMs),
      approvals: given({
        allow: rulesOf(record, "allow"),
        ask: rulesOf(record, "ask"),
        deny: rulesOf(record, "deny"),
      }),
      agents: record.agents,
      subAgents: subAgentsOf(record),
      script: record.script === undefined ? null : record.scripts[0],
      scripts: record.script === undefined ? record.scripts : [],
      tasks: record.tasks,
      when: record.when,
      hooks: hooksOf(record),
      effects: record.effects,
      input: record.inputSchema,
      output: record.outputSchema,
      fallbackModels: record.fallbackModels,
      environment: record.environments,
      variables: record.variables,
      secrets: record.secrets,
      sandbox: record.sandbox,
      workspace: record.workspace === "shared" ? null : record.workspace,
      tags: record.tags,
      demands: record.labels,
      messages: record.relaysMessages ? true : null,
      conversation: record.isConversation ? true : null,
    }),
  });
  return `---\n${stringify(front, { aliasDuplicateObjects: false, lineWidth: 0 })}---\n\n${record.prompt}\n`;
}

/** The fields with a value. An empty list of tools or skills is a value: it means none. */
function given(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).filter(([name, value]) => {
      if (value === null || value === undefined) return false;
      return (
        name === "tools" || name === "skills" || typeof value !== "object" || Object.keys(value).length > 0
      );
    }),
  );
}

/** A tool whose other calls are denied is limited by patterns of its own. */
function toolsOf({
  tools,
  permissions,
}: Pick<AgentRecord, "tools" | "permissions">): readonly string[] | null {
  const limited = permissions.filter(isWholeDenial).map(({ tool }) => tool);
  if (tools === null && limited.length === 0) return null;
  return (tools ?? [...TOOLS, "mcp__*"]).flatMap((tool) => {
    if (!limited.includes(tool)) return [tool];
    const permitted = permissions.filter(
      (rule) => rule.tool === tool && rule.pattern !== null && rule.decision !== "deny",
    );
    return [...new Set(permitted.map(({ pattern }) => `${tool}(${pattern})`))];
  });
}

function isWholeDenial({ decision, pattern }: AgentRecord["permissions"][number]): boolean {
  return decision === "deny" && pattern === null;
}

function rulesOf(
  { permissions }: Pick<AgentRecord, "permissions">,
  decision: PermissionDecision,
): readonly string[] {
  const rules = permissions.filter((rule) => rule.decision === decision && !isWholeDenial(rule));
  return rules.map(({ tool, pattern }) => (pattern === null ? tool : `${tool}(${pattern})`));
}

/** Names of configured servers as texts, and servers by name. */
function serversOf({ mcpServers }: AgentRecord): readonly unknown[] {
  return Object.entries(mcpServers).map(([name, server]) => (server === name ? server : { [name]: server }));
}

function subAgentsOf({ subAgents }: AgentRecord): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(subAgents).map(([name, sub]) => [
      name,
      given({
        description: sub.description,
        prompt: sub.prompt,
        model: sub.model,
        tools: toolsOf(sub),
        disallowedTools: [...sub.deniedTools, ...rulesOf(sub, "deny")],
        maxTurns: sub.turnsMax,
      }),
    ]),
  );
}

/** Hooks in Holdfast's form, by their points. */
function hooksOf({ hooks }: AgentRecord): Readonly<Record<string, readonly unknown[]>> {
  const own = hooks.filter(({ claudeEvent }) => claudeEvent === null);
  return groupBy(
    own,
    ({ point }) => point,
    ({ run, tools, timeoutMs, onError }) => ({
      ...(run.type === "command" ? { command: run.command } : { [run.type]: run.name }),
      ...(tools === null ? {} : { tools }),
      timeout: durationText(timeoutMs),
      on_error: onError,
    }),
  );
}

/** Hooks in the form of Claude Code, by their events. Their programs read its names. */
function claudeHooksOf({ hooks }: AgentRecord): Readonly<Record<string, readonly unknown[]>> {
  const theirs = hooks.flatMap((hook) =>
    hook.claudeEvent === null ? [] : [{ ...hook, event: hook.claudeEvent }],
  );
  return groupBy(
    theirs,
    ({ event }) => event,
    ({ run, tools, timeoutMs }) => ({
      ...(tools === null
        ? {}
        : { matcher: tools.map((tool) => tool.replace(/\*$/, ".*")).join("|") || "(?!)" }),
      hooks: [
        { type: "command", command: run.type === "command" ? run.command : "", timeout: timeoutMs / 1_000 },
      ],
    }),
  );
}

function groupBy<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  valueOf: (item: Item) => unknown,
): Readonly<Record<string, readonly unknown[]>> {
  const groups: Record<string, unknown[]> = {};
  for (const item of items) (groups[keyOf(item)] ??= []).push(valueOf(item));
  return groups;
}

function budgetOf({ maxTokensPerCall, windows, onExhausted, ...lifetime }: Budget): Record<string, unknown> {
  return given({
    ...amountsOf(lifetime),
    tokensPerCall: maxTokensPerCall,
    windows: windows?.map(({ per, ...limits }) => given({ per, ...amountsOf(limits) })),
    onExhausted,
  });
}

function amountsOf({
  maxCostMicroUsd,
  maxTokens,
  maxSteps,
  maxTurns,
}: AmountLimits): Record<string, unknown> {
  return {
    usd: maxCostMicroUsd === undefined ? null : maxCostMicroUsd / 1e6,
    tokens: maxTokens,
    steps: maxSteps,
    turns: maxTurns,
  };
}

const UNITS = [
  ["d", DAY_MS],
  ["h", HOUR_MS],
  ["m", MINUTE_MS],
  ["s", 1_000],
] as const;

/** The time span in the largest unit that divides it. */
function durationText(ms: number): string {
  const [unit, size] = UNITS.find(([, length]) => ms % length === 0) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}
