// The key `holdfast.subAgents`: agents that an agent file defines itself, with the fields that Claude Code
// has for such agents.

import { z } from "zod";
import type { AgentRecord, SubAgent } from "../../record/agent-record.ts";
import { newDraft, type AgentDraft } from "../../format/agent-draft.ts";
import { field, HONOURED, readFields, refused, type FieldTable } from "../../format/fields.ts";
import type { FieldReport } from "../../format/field-report.ts";
import { matchesName, type ToolNames } from "../../record/tool-names.ts";
import { offerTools, ruleTools, toolTexts } from "../../format/tool-rules.ts";
import { descriptionRule, modelRule, nameProblem, textOrTexts, turnsRule } from "./dialect.ts";

const SUB_AGENTS_MAX = 50;
const PATH = ["holdfast", "subAgents"];

function tableWith(names: ToolNames): FieldTable {
  const rules = {
    description: descriptionRule,
    prompt: field(z.string().trim().min(1).describe("the system prompt"), (value, draft) => {
      draft.prompt = value;
      return HONOURED;
    }),
    tools: field(
      textOrTexts.describe("the tools that it gets, of those of the agent; without it all of them"),
      (value, draft) => offerTools(toolTexts(value), names, draft),
    ),
    disallowedTools: field(textOrTexts.describe("tools that it does not get"), (value, draft) =>
      ruleTools(toolTexts(value), "deny", names, draft),
    ),
    model: modelRule,
    maxTurns: turnsRule,
  };
  return { rules, restricting: "all", owner: "of a sub-agent" };
}

/** The rule for `holdfast.subAgents`. Each field of each of them has a verdict of its own. */
export function subAgentsField(names: ToolNames) {
  const table = tableWith(names);
  const schemas = Object.entries(table.rules).map(([name, { schema }]) => [name, schema.optional()] as const);
  return field(
    z
      .record(z.string(), z.looseObject(Object.fromEntries(schemas)))
      .describe("agents by name that the tool delegate may start, each with a description and a prompt"),
    (value, draft, report) => {
      const given = Object.entries(value);
      if (given.length > SUB_AGENTS_MAX) return refused(`a file has at most ${SUB_AGENTS_MAX} sub-agents`);
      const problem = given.map(([name]) => nameProblem(name)).find((text) => text !== undefined);
      if (problem !== undefined) return refused(problem);
      draft.subAgents = Object.fromEntries(
        given.map(([name, fields]) => [name, readSubAgent(name, fields, table, report)]),
      );
      return HONOURED;
    },
  );
}

function readSubAgent(
  name: string,
  fields: Readonly<Record<string, unknown>>,
  table: FieldTable,
  report: FieldReport,
): AgentDraft["subAgents"][string] {
  const draft = newDraft(name, "");
  readFields(fields, table, draft, report, [...PATH, name]);
  for (const needed of ["description", "prompt"])
    if (fields[needed] === undefined || fields[needed] === "")
      report.add([...PATH, name, needed], "refused", "it is missing");
  const { description, prompt, model, tools, deniedTools, permissions, turnsMax } = draft;
  return { description, prompt, model, tools, deniedTools, permissions, turnsMax };
}

/** Checks the sub-agents against the whole file, after all its fields are read. */
export function checkSubAgents(draft: AgentDraft, report: FieldReport): void {
  for (const [name, given] of Object.entries(draft.subAgents)) {
    const widening = wideningOf(draft, given);
    if (widening !== undefined) report.add([...PATH, name], "refused", widening);
  }
  // `Task(checker)` means the sub-agent of this name.
  draft.agents = draft.agents.filter((name) => !Object.hasOwn(draft.subAgents, name));
}

/** @returns the reason why a sub-agent could do more than the agent of its file. */
function wideningOf(
  { tools, permissions }: Pick<AgentRecord, "tools" | "permissions">,
  given: SubAgent,
): string | undefined {
  const own = given.tools ?? [];
  if (own.includes("delegate")) return "a sub-agent starts no agents: take Task or delegate out of its tools";
  const missing = own.find((tool) => tools?.some((offered) => matchesName(offered, tool)) === false);
  if (missing !== undefined)
    return `it would have the tool ${missing}, which the agent of this file has not: add it to \`tools\`, or take it out here`;
  const ruled = given.permissions.find(
    ({ decision, tool }) => decision !== "deny" && permissions.some((rule) => matchesName(rule.tool, tool)),
  );
  return ruled === undefined
    ? undefined
    : `the agent of this file has rules for ${ruled.tool}, and a pattern here could permit more: name the tool without a pattern, and these rules count`;
}
