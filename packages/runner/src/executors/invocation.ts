// The invocation: the JSON object that an executor reads from its standard input, in schema 2.0, 2.1 or 2.2.
//
//   2.0  schema_version, mode, session_id, prompt, project_dir?, agent_blueprint?, metadata?
//   2.1  the same and executor_config
//   2.2  parameters in the place of prompt, and agent_name
//
// An executor accepts only versions that it knows. It names them in the JSON Schema that `--schema` prints.

import { HoldfastError } from "@holdfast/core";

export const SCHEMA_VERSIONS = ["2.0", "2.1", "2.2"] as const;
export type SchemaVersion = (typeof SCHEMA_VERSIONS)[number];

/** The input of a session that an executor carries out. */
export interface ExecutorInput {
  /** The prompt is the parameter `prompt`. */
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly projectDir?: string;
  readonly agentName?: string;
  readonly agentBlueprint?: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** One turn of an executor. */
export interface TurnRequest extends ExecutorInput {
  readonly sessionId: string;
  /** From 1. */
  readonly turn: number;
  readonly mode: "start" | "resume";
  /** The executor's own id of the conversation, when it has bound one. */
  readonly executorSessionId: string | null;
}

/**
 * The input of a session: a text, `{ prompt }` or `{ parameters }`, with the optional fields of an invocation.
 *
 * @throws HoldfastError `invalid_input`.
 */
export function readInput(input: unknown): ExecutorInput {
  const parameters = readPrompt(input);
  if (parameters === undefined)
    throw new HoldfastError("invalid_input", "the session has no prompt", {
      expected: '{ "prompt": "…" }, { "parameters": { … } } or a text',
      fix: 'start it with --input \'{"prompt": "…"}\'',
    });
  if (!isObject(input)) return { parameters };
  const blueprint = objectIn(input, "agent_blueprint");
  const metadata = objectIn(input, "metadata");
  const projectDir = textIn(input, "project_dir");
  const agentName = textIn(input, "agent_name");
  return {
    parameters,
    ...(projectDir === undefined ? {} : { projectDir }),
    ...(agentName === undefined ? {} : { agentName }),
    ...(blueprint === undefined ? {} : { agentBlueprint: blueprint }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

/** The parameters of a prompt: a text, `{ prompt }` or `{ parameters }`. `undefined` for anything else. */
export function readPrompt(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof value === "string") return value === "" ? undefined : { prompt: value };
  if (!isObject(value)) return undefined;
  if (isObject(value["parameters"])) return value["parameters"];
  return typeof value["prompt"] === "string" && value["prompt"] !== ""
    ? { prompt: value["prompt"] }
    : undefined;
}

/** The JSON object of a turn, in the executor's schema. */
export function invocationOf(
  version: SchemaVersion,
  request: TurnRequest,
  config: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const { sessionId, mode, parameters, projectDir, agentName, agentBlueprint, metadata } = request;
  return {
    schema_version: version,
    mode,
    session_id: sessionId,
    ...(version === "2.2" ? { parameters } : { prompt: promptOf(parameters) }),
    ...(projectDir === undefined ? {} : { project_dir: projectDir }),
    ...(version === "2.2" && agentName !== undefined ? { agent_name: agentName } : {}),
    ...(agentBlueprint === undefined ? {} : { agent_blueprint: agentBlueprint }),
    ...(version === "2.0" ? {} : { executor_config: config }),
    ...(metadata === undefined ? {} : { metadata }),
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

function objectIn(input: object, name: string): Readonly<Record<string, unknown>> | undefined {
  const value = (input as Record<string, unknown>)[name];
  if (value === undefined || value === null) return undefined;
  if (isObject(value)) return value;
  throw wrong(name, "a JSON object");
}

function textIn(input: object, name: string): string | undefined {
  const value = (input as Record<string, unknown>)[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" && value !== "" && !value.includes("\0")) return value;
  throw wrong(name, "a text that is not empty");
}

function wrong(name: string, expected: string): HoldfastError {
  return new HoldfastError("invalid_input", `the session's input has a wrong ${name}`, {
    at: `/${name}`,
    expected,
  });
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
