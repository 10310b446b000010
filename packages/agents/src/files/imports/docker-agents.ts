// Agents of a file of Docker Agent (`agent.yaml`), formerly cagent.
//
//   docker-agents-1. A tool that is not among the toolsets is not offered. An unknown field of a toolset
//       refuses the agent, because it may be a limit.
//   - Docker asks for what neither only reads nor is allowed, as Holdfast does. An `ask` is mapped to one
//     that goes before each `allow`, whatever the order in which Docker looks at them.

import { z } from "zod";
import { addRule, type AgentDraft } from "../../format/agent-draft.ts";
import type { FieldReport } from "../../format/field-report.ts";
import {
  field,
  HONOURED,
  ignored,
  mapped,
  refused,
  type FieldTable,
  type Ruling,
} from "../../format/fields.ts";
import { FileProblem, parseYaml } from "../../format/front-matter.ts";
import { checkJsonSchema } from "../../format/schema-check.ts";
import { matchesName } from "../../record/tool-names.ts";
import { ruleTool } from "../../format/tool-rules.ts";
import {
  denyChanges,
  descriptionRule,
  DISPLAY_ONLY,
  listSkills,
  MODEL_TUNING,
  turnsRule,
  unused,
} from "../dialects/dialect.ts";
import { DOCKER_TOOLS, takeToolsets, toolset } from "./docker-toolsets.ts";
import type { ImportedFile } from "./imported-agent.ts";

const ARGUMENTS = ["cmd", "path", "url"];

const patterns = z.array(z.string()).optional();
const models = z.record(z.string(), z.looseObject({ provider: z.string(), model: z.string() }));
const record = z.record(z.string(), z.unknown());

/** @throws FileProblem */
export function readDockerFile(text: string): ImportedFile {
  const { values, lineOf } = parseYaml(text, 0, "the file");
  const agents = z.record(z.string(), record).safeParse(values["agents"]);
  if (!agents.success || Object.keys(agents.data).length === 0)
    throw new FileProblem(
      "the file has no agents",
      "name a file of Docker Agent, whose field agents has at least one agent",
    );
  const known = models.safeParse(values["models"]).data ?? {};
  const servers = z.record(z.string(), record).safeParse(values["mcps"]).data ?? {};
  const { agents: _agents, ...top } = values;
  return {
    dialect: "docker",
    lineOf,
    agents: Object.entries(agents.data).map(([name, own]) => ({
      name,
      at: ["agents", name],
      promptField: `agents.${name}.instruction`,
      parts: [
        // docker-agents-1: without toolsets there are no tools.
        {
          values: { toolsets: [], ...own },
          table: agentTable(known, servers, Object.keys(agents.data)),
          at: ["agents", name],
        },
        { values: top, table: FILE_TABLE, at: [] },
      ],
    })),
  };
}

type Models = z.output<typeof models>;

function modelName(value: string, known: Models): string {
  const named = Object.hasOwn(known, value) ? known[value] : undefined;
  return named === undefined ? value : `${named.provider}/${named.model}`;
}

function agentTable(
  known: Models,
  servers: Readonly<Record<string, object>>,
  names: readonly string[],
): FieldTable {
  return {
    restricting: "all",
    owner: "of an agent of Docker",
    // Fields are read in this order.
    rules: {
      ...modelFields(known),
      ...toolFields(servers, names),
      ...LIMIT_FIELDS,
      ...OTHER_FIELDS,
    },
  };
}

function modelFields(known: Models): FieldTable["rules"] {
  return {
    description: descriptionRule,
    model: field(z.string().min(1).describe("a model"), (value, draft) => {
      draft.model = modelName(value, known);
      return draft.model === value ? HONOURED : mapped(draft.model);
    }),
    fallback: field(
      z.looseObject({ models: z.array(z.string()).default([]) }).describe("models to fall back to"),
      ({ models: others }, draft) => {
        draft.fallbackModels = others.map((one) => modelName(one, known));
        return mapped(`holdfast.fallbackModels: ${draft.fallbackModels.join(", ")}`);
      },
    ),
    instruction: field(z.string().describe("the system prompt"), (value, draft) => {
      draft.prompt = value.trim();
      return HONOURED;
    }),
    instruction_file: field(z.unknown(), () =>
      refused("the prompt would be in other files; write its text into instruction"),
    ),
  };
}

function toolFields(
  servers: Readonly<Record<string, object>>,
  names: readonly string[],
): FieldTable["rules"] {
  return {
    toolsets: field(z.array(toolset).describe("toolsets, each with a type"), (value, draft, report) =>
      takeToolsets(value, servers, draft, report),
    ),
    sub_agents: field(z.array(z.string()).describe("names of agents"), (value, draft) =>
      takeAgents(value, names, draft),
    ),
    handoffs: field(z.array(z.string()).describe("names of agents"), (value, draft) => {
      const ruling = takeAgents(value, names, draft);
      return ruling[0] === "refused" ? ruling : mapped(`${ruling[1]}; the agent waits for their answer`);
    }),
    force_handoff: field(z.string(), () =>
      refused("Holdfast gives no conversation to another agent; name it in sub_agents"),
    ),
  };
}

const COMPACTION = "Holdfast has its own limits of results and context";
const BUDGET = "amounts of Docker have another form; write holdfast.budget into the agent's file";
const SAFETY = z
  .enum(["strict", "balanced", "restricted", "autonomous"])
  .describe("strict, balanced, restricted or autonomous");

/** Fields about the rights, the limits and the answer of an agent. */
const LIMIT_FIELDS: FieldTable["rules"] = {
  readonly: field(z.boolean(), (value, draft) => (value ? mapped(denyChanges(draft)) : HONOURED)),
  safety: field(SAFETY, safetyRuling),
  max_iterations: field(z.int().min(0).max(100_000).describe("a number of turns"), (value, draft, report) =>
    value === 0
      ? ignored("0 means no limit, and Holdfast has a default of its own")
      : (turnsRule.read as (given: number, to: AgentDraft, on: FieldReport) => Ruling)(value, draft, report),
  ),
  structured_output: field(
    z.looseObject({ schema: record }).describe("an output schema, in the field schema"),
    ({ schema }, draft) => {
      const problem = checkJsonSchema(schema);
      if (problem !== undefined) return refused(`it is no JSON Schema: ${problem}`);
      draft.outputSchema = schema;
      return mapped("holdfast.output");
    },
  ),
  skills: field(z.union([z.boolean(), z.array(z.unknown())]), takeSkills),
  add_prompt_files: field(z.array(z.string()), (value) =>
    ignored(
      value.every((file) => file === "AGENTS.md")
        ? "a session reads AGENTS.md without it"
        : "only AGENTS.md is read for a session; name other files in the prompt",
    ),
  ),
};

/** The fields that Holdfast does not have. */
const OTHER_FIELDS: FieldTable["rules"] = {
  hooks: field(z.unknown(), () =>
    refused("hooks of Docker have another form, and one may be there to forbid a call; write holdfast.hooks"),
  ),
  harness: field(z.unknown(), () =>
    refused("another program would do the work; run it as an external agent (docs/external-agents.md)"),
  ),
  budgets: field(z.unknown(), () => refused(BUDGET)),
  use_toolsets: field(z.unknown(), () => refused("write these toolsets into toolsets of the agent")),
  use_skills: field(z.unknown(), () => refused("write these skills into skills of the agent")),
  redact_secrets: unused("Holdfast always replaces the values of declared secrets"),
  add_prompt_files_depth: unused("the model is told of each AGENTS.md below the folder"),
  add_date: unused("the model gets no date by itself; say in the prompt that the shell has it"),
  add_environment_info: unused("the prompt names the folder and the sandbox"),
  welcome_message: unused(DISPLAY_ONLY),
  commands: unused("Holdfast has no commands of an agent"),
  use_commands: unused("Holdfast has no commands of an agent"),
  code_mode_tools: unused("the model calls each tool itself"),
  add_description_parameter: unused("a question shows the whole call"),
  cache: unused("each session asks its model itself"),
  max_consecutive_tool_calls: unused("Holdfast has its own guard against repeated calls"),
  max_old_tool_call_tokens: unused(COMPACTION),
  max_tool_result_tokens: unused(COMPACTION),
  num_history_items: unused(COMPACTION),
  session_compaction: unused(COMPACTION),
  compaction_threshold: unused(COMPACTION),
  compaction_model: unused(COMPACTION),
};

function safetyRuling(value: z.output<typeof SAFETY>, draft: AgentDraft): Ruling {
  switch (value) {
    case "strict":
      addRule(draft, "ask", "*", "*");
      return mapped("every call is asked for");
    case "balanced":
      return mapped("calls that change something are asked for");
    case "restricted":
      return mapped(denyChanges(draft));
    case "autonomous":
      return refused(
        "it would run every tool without asking; name the calls that may run in permissions.allow",
      );
  }
}

/** The fields of the file, which hold for each of its agents. */
const FILE_TABLE: FieldTable = {
  restricting: "all",
  owner: "of a file of Docker Agent",
  rules: {
    permissions: field(
      z
        .strictObject({ allow: patterns, ask: patterns, deny: patterns })
        .describe("allow, ask and deny, each with patterns such as shell:cmd=ls*"),
      ({ deny = [], ask = [], allow = [] }, draft) => {
        const said: string[] = [];
        for (const [decision, texts] of [
          ["deny", deny],
          ["allow", allow],
          ["ask", ask],
        ] as const)
          for (const text of texts) {
            const rule = rulePattern(text, decision, draft);
            if (rule === undefined) return refused(`${decision} ${text} names no tool that Holdfast knows`);
            said.push(rule);
          }
        return mapped(said.join("; ") || "no rule");
      },
    ),
    runtime: field(z.strictObject({ safety: SAFETY.optional() }), ({ safety }, draft) =>
      safety === undefined ? HONOURED : safetyRuling(safety, draft),
    ),
    budget: field(z.unknown(), () => refused(BUDGET)),
    budgets: unused("an agent names the budgets that hold for it"),
    models: unused(
      `it names models for agents; ${MODEL_TUNING.toLowerCase().replace("holdfast", "Holdfast")}`,
    ),
    mcps: unused("it names servers for toolsets"),
    providers: unused("a model is found by its provider and the variables of that provider"),
    rag: unused("Holdfast has no search by meaning; a server of MCP can have it"),
    toolsets: unused("an agent names the toolsets that it uses"),
    skills: unused("an agent names the skills that it uses"),
    commands: unused("Holdfast has no commands of an agent"),
    flavors: unused("only the file without its flavors is read"),
    version: unused("it is the version of the format"),
    metadata: unused("it is for people"),
  },
};

/** `shell`, `read_*`, `mcp:github:*`, `shell:cmd=ls*`. @returns the rule in text; nothing for a tool that is not known. */
function rulePattern(
  text: string,
  decision: "allow" | "ask" | "deny",
  draft: AgentDraft,
): string | undefined {
  if (text === "*" && decision === "allow")
    return "all tools by the default: calls that change something are asked for";
  const [tools, pattern] = callOf(text);
  if (tools === undefined) return undefined;
  // A pattern makes the `ask` go before each `allow`.
  const given = decision === "ask" ? (pattern ?? "*") : pattern;
  return tools
    .map((tool) => {
      if (given !== "*") return ruleTool(tool, given, decision, draft);
      addRule(draft, decision, tool, "*");
      return `${decision} ${tool}`;
    })
    .join("; ");
}

function callOf(text: string): readonly [tools: readonly string[] | undefined, pattern: string | null] {
  const server = /^mcp:([\w-]+):(.+)$/.exec(text);
  if (server !== null) return [[`mcp__${server[1]}__${server[2]}`], null];
  const [, name = text, argument, pattern] = /^([^:]+):(\w+)=(.*)$/s.exec(text) ?? [];
  const tools = Object.keys(DOCKER_TOOLS).filter((tool) => matchesName(name, tool));
  const ours = [...new Set(tools.flatMap((tool) => DOCKER_TOOLS[tool] ?? []))];
  if (name === "*") return [["*"], argument === undefined ? null : "*"];
  if (ours.length === 0) return [undefined, null];
  // A pattern for another argument of a tool matches too much for an `allow`, and is one for each call of the
  // tool otherwise.
  const isMain = argument !== undefined && ARGUMENTS.includes(argument);
  return [ours, argument === undefined ? null : isMain ? (pattern ?? "") : "{*}"];
}

function takeAgents(value: readonly string[], names: readonly string[], draft: AgentDraft): Ruling {
  const foreign = value.find((name) => !names.includes(name));
  if (foreign !== undefined)
    return refused(`${foreign} is no agent of this file; import its file, and name it in holdfast.agents`);
  draft.agents = [...new Set([...draft.agents, ...value])];
  draft.tools = [...new Set([...(draft.tools ?? []), "delegate"])];
  return mapped(`holdfast.agents: ${value.join(", ")}`);
}

function takeSkills(value: boolean | readonly unknown[], draft: AgentDraft): Ruling {
  if (value === false) {
    draft.skills = [];
    return mapped("no skills");
  }
  draft.tools = [...new Set([...(draft.tools ?? []), "read_skill"])];
  if (value === true) return mapped("all skills that are found");
  const texts = value.filter((one) => typeof one === "string");
  if (texts.length < value.length || texts.some((one) => /^https?:/.test(one)))
    return refused("a skill is a folder with SKILL.md in .agents/skills; put it there, and name it here");
  const named = texts.filter((one) => one !== "local");
  return named.length === 0 ? mapped("all skills that are found") : listSkills(named, draft);
}
