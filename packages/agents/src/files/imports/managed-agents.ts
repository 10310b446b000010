// An agent of Anthropic's Managed Agents, as its API takes and returns it (JSON).
//
// Such an agent works in a container of Anthropic. Here it works on the machine of the user, so that calls
// which run there without asking are asked for here.

import { z } from "zod";
import { addRule, denyTools, type AgentDraft } from "../../format/agent-draft.ts";
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
import { takeServers } from "../../format/mcp-servers.ts";
import { nameProblem, unused } from "../dialects/dialect.ts";
import type { ImportedFile } from "./imported-agent.ts";

/** The tools of the agent toolset; no tools for one that Holdfast lacks. */
const TOOLSET: Readonly<Record<string, readonly string[]>> = {
  bash: ["shell"],
  read: ["read_file"],
  write: ["write_file"],
  edit: ["edit_file"],
  glob: ["list_files"],
  grep: ["search"],
  web_fetch: ["web_fetch"],
  web_search: [],
};

const policy = z.looseObject({ type: z.enum(["always_allow", "always_ask", "always_deny", "auto"]) });
const config = z.strictObject({
  name: z.string().optional(),
  enabled: z.boolean().nullish(),
  permission_policy: policy.nullish(),
});
const configs = {
  default_config: config.nullish(),
  configs: z.array(config.required({ name: true })).nullish(),
};
const custom = z.looseObject({ type: z.literal("custom"), name: z.string() });
const anyTool = z.union([
  z.strictObject({ type: z.string().regex(/^agent_toolset_\d+$/), ...configs }),
  z.strictObject({ type: z.literal("mcp_toolset"), mcp_server_name: z.string(), ...configs }),
  custom,
]);
const urlServer = z.strictObject({
  type: z.literal("url"),
  name: z.string(),
  url: z.string(),
  authorization_token: z.unknown().optional(),
});

type Configs = { readonly [name in keyof typeof configs]?: z.output<(typeof configs)[name]> };

export function readManagedFile(values: Readonly<Record<string, unknown>>): ImportedFile {
  return {
    dialect: "managed",
    lineOf: () => null,
    agents: [
      {
        name: "",
        at: [],
        promptField: "system",
        parts: [{ values: { tools: [], ...values }, table: TABLE, at: [] }],
      },
    ],
  };
}

const IDS = "agents stand there by ids of Anthropic; import them, and name their files in holdfast.agents";
const ANSWER = "it is a part of the service's answer";

const TABLE: FieldTable = {
  restricting: "all",
  owner: "of a managed agent",
  rules: {
    name: field(z.string().describe("the name of the agent"), (value, draft) => {
      const name = value
        .trim()
        .replaceAll(/[^A-Za-z0-9]+/g, "-")
        .replaceAll(/^-|-$/g, "")
        .slice(0, 60);
      const problem = nameProblem(name);
      if (problem !== undefined) return refused(problem);
      draft.name = name === value ? name : name.toLowerCase();
      return name === value ? HONOURED : mapped(draft.name);
    }),
    description: field(z.string().nullable().describe("when to use the agent"), (value, draft) => {
      draft.description = (value ?? "").trim();
      return HONOURED;
    }),
    model: field(
      z.union([z.string().min(1), z.looseObject({ id: z.string().min(1) })]).describe("the id of a model"),
      (value, draft) => {
        const id = typeof value === "string" ? value : value.id;
        draft.model = `anthropic/${id}`;
        return mapped(draft.model);
      },
    ),
    system: field(z.string().nullable().describe("the system prompt"), (value, draft) => {
      draft.prompt = (value ?? "").trim();
      return HONOURED;
    }),
    mcp_servers: field(z.array(urlServer).describe("servers at an address"), (value, draft, report) => {
      const secret = value.find(({ authorization_token: token }) => token !== undefined && token !== null);
      if (secret !== undefined)
        return refused(
          `the server ${secret.name} has a token written out; sign in with \`holdfast mcp login\`, and replace the token`,
        );
      takeServers(
        value.map(({ name, url }) => [name, { type: "http", url }] as const),
        "mcp_servers",
        draft,
        report,
      );
      return mapped("mcpServers");
    }),
    tools: field(z.array(anyTool).describe("toolsets and tools"), takeTools),
    skills: field(z.array(z.unknown()), (value, draft) => {
      draft.skills = [];
      return value.length === 0
        ? HONOURED
        : ignored(
            "their content is at Anthropic; put each folder into .agents/skills, and name it in skills",
          );
    }),
    multiagent: unused(IDS),
    callable_agents: unused(IDS),
    execution_identity: unused("a session here has the rights of its user"),
    metadata: unused("it is for other programs"),
    archived_at: field(z.string().nullable(), (value) =>
      value === null ? HONOURED : refused("the agent is archived"),
    ),
    id: unused(ANSWER),
    type: unused(ANSWER),
    version: unused(ANSWER),
    created_at: unused(ANSWER),
    updated_at: unused(ANSWER),
  },
};

function takeTools(
  value: readonly z.output<typeof anyTool>[],
  draft: AgentDraft,
  report: FieldReport,
): Ruling {
  const offered = new Set<string>();
  const said: string[] = [];
  for (const [at, given] of value.entries()) {
    if (isCustom(given)) {
      report.add(
        ["tools", String(at)],
        "ignored",
        `the program that made the agent runs ${given.name}; write it as a task or a script`,
      );
      continue;
    }
    const own: Configs & { readonly mcp_server_name?: string } = given;
    const ruling =
      own.mcp_server_name === undefined
        ? takeToolset(own, offered, draft)
        : takeServerTools(own.mcp_server_name, own, offered, draft);
    if (typeof ruling !== "string") return ruling;
    said.push(ruling);
  }
  draft.tools = [...offered];
  return mapped(said.join("; ") || "no tool");
}

function isCustom(given: z.output<typeof anyTool>): given is z.output<typeof custom> {
  return given.type === "custom";
}

function takeToolset(
  { default_config: base, configs: own }: Configs,
  offered: Set<string>,
  draft: AgentDraft,
): string | Ruling {
  const unknown = own?.find(({ name }) => !Object.hasOwn(TOOLSET, name));
  if (unknown !== undefined) return refused(`the toolset has no tool ${unknown.name} that Holdfast knows`);
  const said = Object.entries(TOOLSET).flatMap(([name, tools]) => {
    const given = own?.find((one) => one.name === name);
    if (!isEnabled(base, given)) return [];
    if (tools.length === 0) return [`${name} is not available`];
    for (const one of tools) offered.add(one);
    return tools.map((one) => `${one}${ask(one, base, given, draft)}`);
  });
  return said.join(", ") || "no tool";
}

function takeServerTools(
  server: string,
  { default_config: base, configs: own }: Configs,
  offered: Set<string>,
  draft: AgentDraft,
): string | Ruling {
  if (!Object.hasOwn(draft.mcpServers, server)) return refused(`mcp_servers has no server ${server}`);
  const all = `mcp__${server}__*`;
  const named = (own ?? []).map((given) => [`mcp__${server}__${given.name}`, given] as const);
  const isOn = isEnabled(base, undefined);
  for (const [one, given] of named)
    if (!isEnabled(base, given)) denyTools(draft, [one]);
    else if (!isOn) offered.add(one);
  if (isOn) offered.add(all);
  return `${isOn ? all : named.map(([one]) => one).join(", ")}, after asking`;
}

/** A tool that is denied is not offered. */
function isEnabled(...given: readonly (z.output<typeof config> | null | undefined)[]): boolean {
  const policies = given.flatMap((one) => one?.permission_policy?.type ?? []);
  if (policies.at(-1) === "always_deny") return false;
  return given.flatMap((one) => one?.enabled ?? []).at(-1) ?? true;
}

/** @returns the end of the text about a tool. */
function ask(
  tool: string,
  base: Configs["default_config"],
  own: z.output<typeof config> | undefined,
  draft: AgentDraft,
): string {
  const wanted = own?.permission_policy?.type ?? base?.permission_policy?.type ?? "always_allow";
  if (wanted !== "always_allow") {
    addRule(draft, "ask", tool);
    return " after asking";
  }
  return /^(read_file|list_files|search)$/.test(tool)
    ? ""
    : " after asking, because it is on your machine here";
}
