// The invocation: the JSON object that an executor reads from its standard input, in schema 2.0, 2.1 or 2.2.
//
//   2.0  schema_version, mode, session_id, prompt, project_dir?, agent_blueprint?, metadata?
//   2.1  the same and executor_config
//   2.2  parameters in the place of prompt, and agent_name
//
// An executor accepts only versions that it knows. It names them in the JSON Schema that `--schema` prints.

import { HoldfastError } from "@holdfast/core";

import type { AgentRequest, ExternalTurn } from "../../session/external-agent-protocol.ts";
import { isFields, type Fields } from "../../session/fields.ts";

export const SCHEMA_VERSIONS = ["2.0", "2.1", "2.2"] as const;
export type SchemaVersion = (typeof SCHEMA_VERSIONS)[number];

/** The fields of the first input that each invocation of the session has. */
const SESSION_FIELDS = {
  agent_blueprint: (name: string, value: unknown) => {
    if (!isFields(value)) throw wrong(name, "a JSON object");
  },
  metadata: (name: string, value: unknown) => {
    if (!isFields(value)) throw wrong(name, "a JSON object");
  },
  agent_name: requireText,
  project_dir: requireText,
} as const;

/**
 * A request to an executor: a text, `{ prompt }` or `{ parameters }`, with the optional fields of an
 * invocation.
 *
 * @returns `undefined` for any other value.
 * @throws HoldfastError `invalid_input` for a wrong field.
 */
export function readRequest(value: unknown): AgentRequest | undefined {
  const parameters = parametersIn(value);
  if (parameters === undefined) return undefined;
  const text = textOf(parameters);
  if (!isFields(value)) return { text, parameters };
  const given: Record<string, unknown> = {};
  for (const [name, check] of Object.entries(SESSION_FIELDS)) {
    const field = value[name] ?? undefined;
    if (field === undefined) continue;
    check(name, field);
    given[name] = field;
  }
  const folder = given["project_dir"];
  return {
    text,
    parameters,
    ...(folder === undefined ? {} : { folder: folder as string }),
    ...(Object.keys(given).length === 0 ? {} : { sessionFields: given }),
  };
}

/** The folder of a session. A session that names none works in that of its machine, also after it has moved. */
export function folderOf({ sessionFields = {} }: ExternalTurn["intent"], ofMachine: string): string {
  const { project_dir: asked } = sessionFields;
  return typeof asked === "string" ? asked : ofMachine;
}

/** The parameters of a prompt: a text, `{ prompt }` or `{ parameters }`. */
function parametersIn(value: unknown): Fields | undefined {
  if (typeof value === "string") return value === "" ? undefined : { prompt: value };
  if (!isFields(value)) return undefined;
  if (isFields(value["parameters"])) return value["parameters"];
  return typeof value["prompt"] === "string" && value["prompt"] !== ""
    ? { prompt: value["prompt"] }
    : undefined;
}

/** The prompt, or parameters without one as JSON. */
function textOf(parameters: Fields): string {
  const { prompt } = parameters;
  return typeof prompt === "string" && prompt !== "" ? prompt : JSON.stringify(parameters);
}

/** The parameters of a turn. A turn that continues another one has a prompt of its own. */
export function parametersOf({
  prompt,
  parameters = {},
}: Pick<ExternalTurn, "prompt" | "parameters">): Fields {
  return prompt === textOf(parameters) ? parameters : { ...parameters, prompt };
}

/** The JSON object of a turn, in the executor's schema. */
export function invocationOf(
  version: SchemaVersion,
  mode: "start" | "resume",
  turn: Pick<ExternalTurn, "task" | "intent" | "prompt" | "parameters">,
  folder: string,
  config: Fields,
): Fields {
  const { sessionFields = {} } = turn.intent;
  const { agent_name: agentName, ...fields } = sessionFields;
  const parameters = parametersOf(turn);
  return {
    schema_version: version,
    mode,
    session_id: turn.task.sessionId,
    ...(version === "2.2" ? { parameters } : { prompt: promptOf(parameters) }),
    ...fields,
    project_dir: folder,
    ...(version === "2.2" && agentName !== undefined ? { agent_name: agentName } : {}),
    ...(version === "2.0" ? {} : { executor_config: config }),
  };
}

/** Parameters as one text, for executors that know no parameters. */
export function promptOf(parameters: Readonly<Record<string, unknown>>): string {
  const { prompt, ...others } = parameters;
  if (typeof prompt === "string" && Object.keys(others).length === 0) return prompt;
  const inputs = `<inputs>\n${JSON.stringify(typeof prompt === "string" ? others : parameters, null, 2)}\n</inputs>`;
  return typeof prompt === "string" ? `${inputs}\n\n${prompt}` : inputs;
}

/** The newest version that a JSON Schema names for `schema_version`; 2.0 for an executor that names none. */
export function newestVersionIn(text: string): SchemaVersion {
  try {
    const schema = JSON.parse(text) as { properties?: { schema_version?: unknown } };
    const named = JSON.stringify(schema.properties?.schema_version ?? null);
    return SCHEMA_VERSIONS.findLast((version) => named.includes(`"${version}"`)) ?? "2.0";
  } catch {
    return "2.0";
  }
}

function requireText(name: string, value: unknown): void {
  if (typeof value !== "string" || value === "" || value.includes("\0"))
    throw wrong(name, "a text that is not empty");
}

function wrong(name: string, expected: string): HoldfastError {
  return new HoldfastError("invalid_input", `the session's input has a wrong ${name}`, {
    at: `/${name}`,
    expected,
  });
}
