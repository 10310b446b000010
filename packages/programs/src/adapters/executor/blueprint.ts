// The blueprint of an executor's turn: what an agent's file says, as executors read it (`blueprintOf`), with
// values in the place of its placeholders (`resolveBlueprint`). Pure.
//
//   - Every placeholder in the settings of MCP servers has a value, or the turn does not begin. A variable
//     counts only if the executor gets it, too, so that no blueprint reads a secret that its profile does not
//     declare.
//   - In any other text only the names of the session's own values are replaced. A system prompt may show the
//     source of a shell script.

import { HoldfastError } from "@holdfast/core";
import { fillPlaceholders } from "@holdfast/mcp";
import { type AgentRecord } from "@holdfast/agents";

import { fieldsOf, isFields, textOrJson, type Fields } from "../../session/fields.ts";

/** The values of one turn. */
export interface BlueprintValues {
  readonly sessionId: string;
  readonly runId: string;
  /** The folder of the session. */
  readonly folder: string;
  /** The addresses of the gateway, and of the session's tools there. They are good for this turn. */
  readonly apiUrl: string;
  readonly toolsUrl: string;
  readonly parameters: Fields;
  /** The variables of the executor. */
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** @throws HoldfastError `config_invalid` for a server that only a registry of this machine describes. */
export function blueprintOf({ name, description, prompt, model, mcpServers }: AgentRecord): Fields {
  const servers = Object.entries(mcpServers).map(([server, settings]) => {
    if (typeof settings === "string" || "ref" in settings)
      throw new HoldfastError(
        "config_invalid",
        `the agent ${name} names the MCP server ${server} of a registry, and an executor reads no registry`,
        { at: `mcpServers.${server}`, fix: "write the settings of the server into the agent's file" },
      );
    return [server, settings] as const;
  });
  return {
    name,
    description,
    system_prompt: prompt,
    ...(model === null ? {} : { model }),
    ...(servers.length === 0 ? {} : { mcp_servers: Object.fromEntries(servers) }),
  };
}

/** @throws HoldfastError `config_invalid` that names the placeholder. */
export function resolveBlueprint(blueprint: Fields, values: BlueprintValues): Fields {
  const own: Readonly<Record<string, string>> = {
    AGENT_SESSION_ID: values.sessionId,
    AGENT_SESSION_NAME: values.sessionId,
    AGENT_ORCHESTRATOR_API_URL: values.apiUrl,
    AGENT_ORCHESTRATOR_MCP_URL: values.toolsUrl,
    "runner.orchestrator_mcp_url": values.toolsUrl,
    "runtime.session_id": values.sessionId,
    "runtime.run_id": values.runId,
  };
  const known = (text: string): string =>
    text.replaceAll(/\$\{([\w.]+)\}/g, (whole, name: string) => own[name] ?? whole);
  const variable = (name: string): string | undefined => {
    const field = /^params\.(.+)$/.exec(name)?.[1];
    return field === undefined ? values.variables[name] : paramText(values.parameters[field]);
  };
  const { sessionId, folder } = values;
  const filled = (text: string, at: string): string =>
    fillPlaceholders(known(text), { variable, sessionId, folder }, at);
  const { mcp_servers: servers, ...others } = blueprint;
  return {
    ...fieldsOf(replaced(others, known, "agent_blueprint")),
    ...(servers === undefined
      ? {}
      : { mcp_servers: replaced(servers, filled, "agent_blueprint.mcp_servers") }),
  };
}

/** The value with another text in the place of each of its texts. */
function replaced(value: unknown, change: (text: string, at: string) => string, at: string): unknown {
  if (typeof value === "string") return change(value, at);
  if (Array.isArray(value)) return value.map((item, index) => replaced(item, change, `${at}[${index}]`));
  if (!isFields(value)) return value;
  const entries = Object.entries(value);
  return Object.fromEntries(entries.map(([name, inner]) => [name, replaced(inner, change, `${at}.${name}`)]));
}

function paramText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return textOrJson(value);
}
