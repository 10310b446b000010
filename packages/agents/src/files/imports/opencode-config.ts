// Agents inside of a file of OpenCode's settings (`opencode.json`, `opencode.jsonc`).
//
// OpenCode adds the rules of an agent to those of the file, and the last that matches counts. They are read
// as one list, in that order.

import { dirname, join } from "node:path";
import { z } from "zod";
import { realPath, requireInside } from "../../places/agent-places.ts";
import { modelRule, unused } from "../dialects/dialect.ts";
import { applyPermission, opencode, permission, permissionEntries } from "../dialects/opencode.ts";
import { field, HONOURED, refused, type FieldTable } from "../../format/fields.ts";
import { FileProblem, readText } from "../../format/front-matter.ts";
import { takeServers } from "../../format/mcp-servers.ts";
import type { ImportedFile } from "./imported-agent.ts";

const record = z.record(z.string(), z.unknown());
const agents = z.record(z.string(), record);
const switches = z.record(z.string(), z.boolean());

const local = z.looseObject({
  type: z.literal("local"),
  command: z.array(z.string()).min(1),
  environment: z.record(z.string(), z.string()).default({}),
});

/** @param path of the file, for prompts that stand in files beside it. @throws FileProblem */
export function readOpencodeConfig(values: Readonly<Record<string, unknown>>, path: string): ImportedFile {
  const given = { ...agentsIn(values, "mode"), ...agentsIn(values, "agent"), ...agentsIn(values, "agents") };
  if (Object.keys(given).length === 0)
    throw new FileProblem("the file has no agents", "name a file whose field agent has at least one agent");
  return {
    dialect: "opencode-config",
    lineOf: () => null,
    agents: Object.entries(given).map(([name, { field: place, values: own }]) => ({
      name,
      at: [place, name],
      promptField: undefined,
      parts: [
        { values: withDefaults(own, values), table: agentTable(values, path), at: [place, name] },
        { values: withoutAgents(values), table: FILE_TABLE, at: [] },
      ],
    })),
  };
}

type Given = Readonly<
  Record<string, { readonly field: string; readonly values: Readonly<Record<string, unknown>> }>
>;

function agentsIn(values: Readonly<Record<string, unknown>>, name: string): Given {
  if (values[name] === undefined) return {};
  const read = agents.safeParse(values[name]);
  if (!read.success)
    throw new FileProblem(`${name} is no object with agents`, "write each agent as an object by its name");
  return Object.fromEntries(
    Object.entries(read.data).map(([one, own]) => [one, { field: name, values: own }]),
  );
}

function withoutAgents({
  mode: _mode,
  agent: _agent,
  agents: _agents,
  ...others
}: Readonly<Record<string, unknown>>) {
  return others;
}

/** An agent without rules of its own has those of the file. */
function withDefaults(own: Readonly<Record<string, unknown>>, file: Readonly<Record<string, unknown>>) {
  const names = ["model", "permission", "tools"].filter(
    (name) => own[name] === undefined && file[name] !== undefined,
  );
  return {
    ...Object.fromEntries(names.map((name) => [name, name === "model" ? file["model"] : {}])),
    ...own,
  };
}

function agentTable(file: Readonly<Record<string, unknown>>, path: string): FieldTable {
  const { rules } = opencode.table;
  const ofFile = permission.safeParse(file["permission"] ?? {});
  const toolsOfFile = switches.safeParse(file["tools"] ?? {});
  return {
    ...opencode.table,
    rules: {
      ...rules,
      prompt: field(z.string(), (value, draft) => {
        const prompt = promptOf(value, path);
        if (typeof prompt !== "string") return refused(prompt.problem);
        draft.prompt = prompt;
        return HONOURED;
      }),
      tools: field(switches.describe("true or false by tool"), (value, draft) => {
        if (!toolsOfFile.success) return refused("tools of the file is no object with true or false by tool");
        const denied = Object.entries({ ...toolsOfFile.data, ...value }).filter(
          ([, isOffered]) => !isOffered,
        );
        return applyPermission(
          denied.map(([tool]) => [tool, "deny"]),
          draft,
        );
      }),
      permission: field(permission, (value, draft) => {
        if (!ofFile.success) return refused("permission of the file is no set of rules");
        return applyPermission([...permissionEntries(ofFile.data), ...permissionEntries(value)], draft);
      }),
      model: modelRule,
    },
  };
}

/** A prompt may be the text of a file: `{file:./prompts/review.txt}`. */
function promptOf(value: string, path: string): string | { readonly problem: string } {
  const [, name] = /^\{file:([^}]+)\}$/.exec(value.trim()) ?? [];
  if (name === undefined)
    return value.includes("{file:") || value.includes("{env:")
      ? { problem: "a file or a variable inside of a prompt is not read; write the text out" }
      : value.trim();
  try {
    const at = join(dirname(path), name);
    requireInside(at, realPath(dirname(path)), { outer: "folder of the settings" });
    return readText(at).trim();
  } catch (error) {
    if (!(error instanceof FileProblem)) throw error;
    return { problem: `${name}: ${error.message}` };
  }
}

const FILE_TABLE: FieldTable = {
  restricting: ["permission", "tools", "mcp", "enabled_providers", "disabled_providers"],
  owner: "for agents in the settings of OpenCode",
  rules: {
    $schema: unused("it is for editors"),
    model: unused("it is the model of agents without one"),
    small_model: unused("Holdfast uses the agent's model for everything"),
    permission: unused("its rules are among those of each agent"),
    tools: unused("its switches are among those of each agent"),
    default_agent: unused("a call names its agent"),
    instructions: unused("a session reads AGENTS.md; name other files in the prompt"),
    mcp: field(z.record(z.string(), record).describe("MCP servers by name"), (value, draft, report) => {
      const unread = Object.entries(value).find(([, server]) => JSON.stringify(server).includes("{file:"));
      if (unread !== undefined)
        return refused(`the server ${unread[0]} has the content of a file; use a variable`);
      return takeServers(
        Object.entries(value).map(([name, server]) => [name, serverOf(server)] as const),
        "mcp",
        draft,
        report,
      );
    }),
  },
};

/** The settings of a server as other files have them. `{env:NAME}` is a placeholder. */
function serverOf(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const filled = JSON.parse(JSON.stringify(given).replaceAll(/\{env:(\w+)\}/g, "${$1}")) as typeof given;
  const read = local.safeParse(filled);
  const { oauth: _oauth, ...others } = filled;
  if (!read.success) return others;
  const {
    command: [command, ...args],
    environment,
    type: _type,
    ...rest
  } = read.data;
  return { ...rest, command, args, env: environment };
}
