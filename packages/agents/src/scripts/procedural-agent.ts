// `proceduralAgent`: an agent whose session is one call of a script, and no model.
//
//   - A session keeps the version of the script and the variables of its start. They are read in its first
//     task.
//   - The parameters of the script are the schema of the input, so a wrong input starts no session.
//   - The call is a durable task with the effect class of the script. A call of a `once` script that a crash
//     cut off is not repeated: the session fails, and the error says so.
//   - The standard output is the result: as a text, or as JSON that fits the output schema of the agent file.

import {
  HoldfastError,
  UncertainEffectError,
  type GivenEnvironment,
  type Json,
  type StandardSchemaV1,
  type JsonSchema,
} from "@holdfast/core";
import { defineAgent, type Agent, type TaskContext } from "@holdfast/runtime";

import type { AgentRecord } from "../record/agent-record.ts";
import { endOf, versionOf, type CallOutput, type ScriptCalls } from "./scripts-capability.ts";
import type { AgentPlaces } from "../places/agent-places.ts";
import type { AnyCapability } from "../model-loop/capability.ts";
import { findProblems, standardSchema } from "../model-loop/json-schema.ts";
import type { SessionPlace } from "../model-loop/model-loop.ts";
import { reportEnd, reportStart } from "../model-loop/script-events.ts";
import type { ToolContext } from "../model-loop/tools/tool.ts";
import { readWorkspaceFacts } from "../model-loop/workspace-facts.ts";
import type { Script } from "./find-scripts.ts";
import type { ScriptArguments } from "./run-script.ts";
import { pickWorkspace, type WorkspaceSource } from "../tasks/workspace-source.ts";
import { type ShellEnvironment } from "../tasks/shell-task.ts";

export interface ProceduralAgentOptions {
  readonly places: AgentPlaces;
  /** The script as it is now. Absent for a session that has begun, whose script may be gone. */
  readonly script: Script | undefined;
  readonly calls: ScriptCalls;
  readonly environment: AnyCapability;
  readonly workspace: WorkspaceSource;
  /** The workspace of a session. It is called in a task, and again after a crash. */
  readonly place: (record: AgentRecord, task: TaskContext) => Promise<SessionPlace>;
  /** Names of the variables that each start gives. */
  readonly requiredVariables?: readonly string[];
  readonly version?: string;
}

/** The id of the only call of a session, for its events. */
const CALL = "call";
const STDERR_CHARS = 2_000;

/** @throws HoldfastError `agent_invalid` for fields that only an agent with a model has. */
export function proceduralAgent(
  record: AgentRecord & { readonly script: string },
  options: ProceduralAgentOptions,
): Agent<unknown, Json> {
  refuseModelFields(record);
  const {
    places,
    script,
    calls,
    environment,
    workspace,
    place,
    requiredVariables = [],
    version = "1",
  } = options;
  const { name, script: scriptName, description, tags, outputSchema, secrets } = record;
  const parameters = script?.manifest?.parameters;
  const prepare = async (task: TaskContext, given: GivenEnvironment | undefined) => {
    const { address } = await place(record, task);
    const { content, manifest } = versionOf(scriptName, script?.current ?? "", places);
    const facts = await readWorkspaceFacts(await pickWorkspace(workspace, address), address, task.signal);
    const variables = (await environment.prepare(
      { agent: record, workspace: facts, environment: given },
      task,
    )) as ShellEnvironment | null;
    return { address, hash: content.hash, effect: manifest.effect, variables };
  };
  return defineAgent<unknown, Json>({
    name,
    version,
    description,
    tags,
    budget: record.budget ?? undefined,
    requiredVariables,
    ...(parameters === undefined ? {} : { input: argumentsSchema(parameters) }),
    tasks: Object.values(calls),
    secrets,
    run: async (ctx, input) => {
      const { address, hash, effect, variables } = await ctx.run(
        "prepare",
        (task) => prepare(task, ctx.environment),
        {
          retry: { nonRetryable: ["agent_invalid", "config_invalid", "file_not_found"] },
        },
      );
      const args = (input ?? {}) as ScriptArguments;
      const started = { call: CALL, script: scriptName, version: hash };
      reportStart(ctx as ToolContext, started, args as Json);
      const output = await ctx
        .scheduleTask(calls[effect], {
          name: scriptName,
          hash,
          call: CALL,
          args: { ...args },
          workspace: address,
          ...(variables === null ? {} : { environment: variables }),
        })
        .catch((error: unknown) => {
          reportEnd(ctx as ToolContext, started, (error as Error).message.slice(0, 300));
          throw cutOff(error, scriptName);
        });
      reportEnd(ctx as ToolContext, started, endOf(output.end));
      return resultOf(output, scriptName, outputSchema);
    },
  });
}

/** A session without an input is a call without arguments. */
function argumentsSchema(parameters: JsonSchema): StandardSchemaV1<unknown, unknown> {
  const schema = standardSchema<unknown>(parameters);
  const { validate, ...standard } = schema["~standard"];
  return { "~standard": { ...standard, validate: (value: unknown) => validate(value ?? {}) } };
}

function cutOff(error: unknown, script: string): unknown {
  if (!UncertainEffectError.is(error)) return error;
  return new HoldfastError(
    "agent_error",
    `the script ${script} was cut off, and nobody knows whether it took effect`,
    {
      fix: "find out what it has done, and start a new session; a script that may be repeated says so (`effect` in script.json)",
    },
  );
}

/** @throws HoldfastError `agent_error`, `invalid_output` */
function resultOf(
  { end, stdout, stderr }: CallOutput,
  script: string,
  schema: AgentRecord["outputSchema"],
): Json {
  if (end.type !== "exit" || end.exitCode !== 0)
    throw new HoldfastError("agent_error", `the script ${script} ended with ${String(endOf(end))}`, {
      got: stderr.trim().slice(-STDERR_CHARS) || "no standard error",
      fix: `look at it: \`holdfast script run ${script}\``,
    });
  if (schema === null) return stdout.trimEnd();
  let value: unknown;
  try {
    value = JSON.parse(stdout);
  } catch {
    value = undefined;
  }
  const problems = value === undefined ? "it is no JSON" : findProblems(schema, value);
  if (problems === undefined) return value as Json;
  throw new HoldfastError("invalid_output", `the output of the script ${script} does not fit: ${problems}`, {
    got: stdout.slice(0, 500),
    expected: "JSON on standard output that matches `holdfast.output` of the agent file",
    fix: "correct the script or the output schema",
  });
}

function refuseModelFields(record: AgentRecord): void {
  const {
    model,
    fallbackModels,
    tools,
    agents,
    subAgents,
    mcpServers,
    hooks,
    tasks,
    inputSchema,
    isConversation,
    planFirst,
  } = record;
  const given: readonly (readonly [string, boolean])[] = [
    ["model", model !== null],
    ["holdfast.fallbackModels", fallbackModels.length > 0],
    ["tools", tools !== null],
    ["holdfast.agents", agents.length > 0],
    ["holdfast.subAgents", Object.keys(subAgents).length > 0],
    ["mcpServers", Object.keys(mcpServers).length > 0],
    ["holdfast.hooks", hooks.length > 0],
    ["holdfast.tasks", tasks.length > 0],
    ["holdfast.input", inputSchema !== null],
    ["holdfast.conversation", isConversation],
    ["permissionMode", planFirst],
  ];
  const [field] = given.find(([, isGiven]) => isGiven) ?? [];
  if (field === undefined) return;
  throw new HoldfastError(
    "agent_invalid",
    `agent "${record.name}" has the script "${record.script}", and no model that could use ${field}`,
    {
      at: record.source.path,
      expected:
        "a script with description, environment, variables, secrets, sandbox, workspace, budget, ttl or output",
      fix: `take ${field} out, or let a model call the script (\`holdfast.scripts\`)`,
    },
  );
}
