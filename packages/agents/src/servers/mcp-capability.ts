// `mcpCapability`: tools of MCP servers in sessions of the model loop, as `mcp__SERVER__TOOL`.
//
//   - A session keeps the servers and the tools of its start. A server that changes its tools later changes
//     no offer.
//   - The annotations of a tool are hints for the effect class alone. They permit nothing: without a rule
//     each call asks.
//   - A call that neither only reads nor may be repeated is sent once. When its answer is lost, the model is
//     told so. A call that the server has not begun is sent again, like every failed task. A question of the
//     server during a call ends the task. The answer is the input of the next one, which continues the call.
//     When the process that held the call has ended, a call that may be repeated begins again with the same
//     answers.
//   - State and journal have the settings of a server as they were written, with placeholders instead of
//     values.
//   - A server may go on with a call as a task, which is polled by a durable timer (`server-task-steps.ts`).
//     A task that its server has forgotten begins again where the call may be repeated.
//   - A server gets from the session's environments the variables that its placeholders name, and no other
//     server gets them. State and journal have their values, and of secrets the names. The fields of the
//     input that its placeholders name are values, too.

import { defined, type EffectClass, type Environments, HoldfastError, PauseError } from "@holdfast/core";
import { defineTask, type TaskContext, type TaskDefinition } from "@holdfast/runtime";

import type { AgentRecord } from "../record/agent-record.ts";
import {
  type McpServer,
  CallLostError,
  ServerFailedError,
  SignInNeededError,
  MCP_LIMITS,
  type McpServers,
  type OpenServer,
  questionHash,
  paramValues,
  variablesOfServer,
  type ServerTask,
  readTools,
  type McpToolFact,
  type ServerAnswer,
  type ServerQuestion,
  isReadImage,
} from "@holdfast/mcp";
import { readEnvironments } from "../environments/environment-file.ts";
import { serverEnvironment, type SessionEnvironment } from "../environments/session-environment.ts";
import type { Capability, StartedSession } from "../model-loop/capability.ts";
import { declaredEffect } from "../model-loop/tools/declared-effect.ts";
import { cutText, renderResult, type Tool, type ToolContext } from "../model-loop/tools/tool.ts";
import { ownValues, storedFor, type StoredEnvironmentsOf } from "../environments/environment-capability.ts";
import { askForServer } from "./server-dialog.ts";
import {
  followTask,
  recordedResult,
  serverTaskOf,
  type ServerTaskStep,
  type RecordedResult,
} from "./server-task-steps.ts";

type ServerFact = {
  readonly name: string;
  readonly server: McpServer;
  readonly folder: string;
  /** Absent where the placeholders name no variable of an environment. */
  readonly environment?: SessionEnvironment;
  readonly instructions: string;
  readonly tools: readonly McpToolFact[];
  /** Tools that are not offered, each with the reason. */
  readonly leftOut: readonly string[];
};

interface CallInput {
  readonly name: string;
  readonly server: McpServer;
  readonly folder: string;
  readonly environment?: SessionEnvironment;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** The call continues after questions of the server. */
  readonly resumed?: Resumed;
}

interface Resumed {
  /** The task that began the call. */
  readonly call: string;
  readonly answers: Readonly<Record<string, ServerAnswer>>;
  /** The call is open in the process that asked. */
  readonly isOpen: boolean;
  readonly state?: string;
  /** Every answer of this call by the hash of its question. */
  readonly known: Readonly<Record<string, ServerAnswer>>;
}

interface CallOutput extends RecordedResult {
  readonly asks?: Asks;
  /** The server goes on with the call as a task. */
  readonly task?: ServerTask;
}

/** Questions of the server. `text` says that they are open. */
interface Asks extends Pick<Resumed, "call" | "isOpen" | "state"> {
  readonly questions: readonly ServerQuestion[];
}

/** The field of `_meta` by which a server can remove duplicates. */
const IDEMPOTENCY_KEY = "dev.holdfast/idempotency-key";

const NO_VALUES: SessionEnvironment = { values: {}, secrets: [] };

const UNCERTAIN =
  "The call was sent, and nobody knows whether it took effect. Find out before you repeat it.";

export interface McpCapabilityOptions {
  /** The file of environments; none by default. */
  readonly environments?: string;
  /** The environments of the coordinator of a session; none by default. */
  readonly stored?: StoredEnvironmentsOf;
  /** Names of secrets that servers may get. The list may grow until a session starts. */
  readonly secrets?: readonly string[];
}

export function mcpCapability(
  servers: McpServers,
  options: McpCapabilityOptions = {},
  // oxlint-disable-next-line typescript/no-explicit-any -- facts are JSON, and the type of a server is a union.
): Capability<any> {
  const calls = callTasks(servers, options.secrets);
  return {
    name: "mcp",
    tasks: [...Object.values(calls.byEffect), calls.serverTask],
    prepare: async ({ agent, workspace, ...session }, task) => {
      const facts: ServerFact[] = [];
      const released = await storedFor(agent, options.stored, task.sessionId);
      for (const [name, server] of Object.entries(agent.mcpServers)) {
        if (typeof server === "string" || "ref" in server)
          throw new HoldfastError("agent_invalid", `there are no settings for the MCP server "${name}"`);
        const environment = environmentOf(agent, server, session, options, released);
        const asked = { name, server, folder: workspace.root, ...optional(environment) };
        facts.push(await askServer(servers, asked, agent, task));
      }
      return facts.length === 0 ? null : facts;
    },
    move: (facts: readonly ServerFact[], { workspace }) =>
      Promise.resolve(facts.map((fact) => ({ ...fact, folder: workspace.root }))),
    offer: (facts: readonly ServerFact[]) => ({
      instructions: facts.map(promptPart).join("\n"),
      tools: facts.flatMap((fact) => fact.tools.map((tool) => toolOf(fact, tool, calls))),
    }),
  };
}

interface CallTasks {
  readonly byEffect: Readonly<Record<EffectClass, TaskDefinition<CallInput, CallOutput>>>;
  readonly serverTask: ServerTaskStep;
}

/** The tasks of calls: a task for each effect class, and one for calls that a server goes on with. */
function callTasks(servers: McpServers, secrets: readonly string[] = []): CallTasks {
  const taskOf = (name: string, effect: EffectClass) =>
    defineTask<CallInput, CallOutput>({
      name,
      description: "Call a tool of an MCP server",
      effect,
      retry: { nonRetryable: ["config_invalid"] },
      secrets,
      guardRepeats: true,
      run: (input, task) => callOnce(servers, input, task, effect),
      ...(effect === "once" ? { sessionLeft: (sessionId, how) => servers.leave(sessionId, how) } : {}),
    });
  return {
    byEffect: {
      read: taskOf("mcp_read", "read"),
      repeatable: taskOf("mcp_repeat", "repeatable"),
      keyed: taskOf("mcp_keyed", "keyed"),
      once: taskOf("mcp_call", "once"),
    },
    serverTask: serverTaskOf(servers, secrets),
  };
}

async function callOnce(
  servers: McpServers,
  input: CallInput,
  task: TaskContext,
  effect: EffectClass,
): Promise<CallOutput> {
  const { name, server, folder, environment } = input;
  const { sessionId } = task;
  try {
    return await servers.with({ sessionId, name, server, folder, ...ownValues(environment, task) }, (open) =>
      takeStep(open, input, task, effect),
    );
  } catch (error) {
    if (error instanceof ServerFailedError) return { text: error.message, isError: true };
    // The server may have done it, so the model is told that the answer is lost.
    if (error instanceof CallLostError && effect === "once")
      return { text: `${error.message}. ${UNCERTAIN}`, isError: true };
    throw error;
  }
}

function toolOf(
  { name, server, folder, environment }: ServerFact,
  { offered, tool, description, inputSchema, effect }: McpToolFact,
  calls: CallTasks,
): Tool {
  return {
    offered: { name: offered, description, inputSchema },
    isReading: false, // The annotations of a tool permit nothing, so each call asks without a rule.
    subjectKind: "text",
    prepare: (args) => {
      if (typeof args !== "object" || args === null || Array.isArray(args))
        throw new HoldfastError("invalid_input", `the arguments of ${offered} are no JSON object`);
      const input: CallInput = { name, server, folder, ...optional(environment), tool, args: { ...args } };
      return {
        subject: null,
        schedule: async (ctx) => {
          let isError = false;
          const outcome = await renderResult(async () => {
            const result = await callWithAnswers(ctx, calls, effect, input);
            ({ isError } = result);
            const images = (result.media ?? []).filter(isReadImage);
            return { text: result.text, ...(images.length === 0 ? {} : { images }) };
          });
          return isError ? { ...outcome, isError } : outcome;
        },
      };
    },
  };
}

function environmentOf(
  agent: AgentRecord,
  server: McpServer,
  { input, environment: given }: StartedSession,
  { environments }: McpCapabilityOptions,
  stored: Environments,
): SessionEnvironment | undefined {
  const own =
    environments === undefined
      ? NO_VALUES
      : serverEnvironment(agent, readEnvironments(environments), given, variablesOfServer(server), stored);
  const found = { ...own, values: { ...own.values, ...paramValues(server, input) } };
  const names = [...Object.keys(found.values), ...found.secrets, ...Object.keys(found.stored ?? {})];
  return names.length === 0 ? undefined : found;
}

async function askServer(
  servers: McpServers,
  asked: Pick<ServerFact, "name" | "server" | "folder" | "environment">,
  agent: AgentRecord,
  task: TaskContext,
): Promise<ServerFact> {
  const { name, server, folder, environment } = asked;
  const { sessionId } = task;
  const session = { sessionId, name, server, folder, ...ownValues(environment, task) };
  const found = await servers
    .with(session, async ({ connection }) => ({
      ...readTools(name, await connection.tools(), server.enabledTools),
      instructions: cutText(connection.instructions, MCP_LIMITS.instructionsChars),
    }))
    .catch((error: unknown) => {
      throw error instanceof SignInNeededError ? signInPause(error) : error;
    });
  const tools = found.tools.map((tool) => ({
    ...tool,
    effect: declaredEffect(agent, tool.offered) ?? tool.effect,
  }));
  return { ...asked, ...found, tools };
}

function optional(environment: SessionEnvironment | undefined): Pick<CallInput, "environment"> {
  return environment === undefined ? {} : { environment };
}

/** The session waits for the sign-in. Nothing was done before. */
function signInPause({ message }: SignInNeededError): PauseError {
  return new PauseError("unauthenticated", message, { pause: { reason: "auth_required" } });
}

/** One step of a call: until its result or until a question. */
async function takeStep(
  { connection, redactor }: OpenServer,
  { name, tool, args, resumed }: CallInput,
  task: TaskContext,
  effect: EffectClass,
): Promise<CallOutput> {
  const id = resumed?.call ?? task.taskId;
  const isGone = resumed?.isOpen === true && !connection.hasOpenCall(id);
  if (isGone && effect === "once")
    throw new CallLostError(
      `the call of ${tool} of the MCP server ${name} was cut off while it waited for an answer`,
    );
  try {
    const step = await connection.call({
      id,
      tool,
      args,
      signal: task.signal,
      meta: effect === "keyed" ? { [IDEMPOTENCY_KEY]: task.idempotencyKey } : {},
      answers: isGone ? {} : (resumed?.answers ?? {}),
      state: resumed?.state,
      known: resumed?.known ?? {},
      onProgress: (progress) => task.progress(redactor.value(progress)),
    });
    if (step.type === "task") return { text: "The server works on it.", isError: false, task: step.task };
    if (step.type === "asks") {
      const { isOpen, state } = step;
      const questions = redactor.value(step.questions) as readonly ServerQuestion[];
      const asks: Asks = { call: id, questions, isOpen, ...defined({ state }) };
      return { text: "The server asks a person.", isError: false, asks };
    }
    return recordedResult(step.result, name, redactor);
  } catch (error) {
    if (error instanceof ServerFailedError && connection.hasNewTools)
      throw new ServerFailedError(
        `${error.message}. The server has changed its tools since this session began.`,
      );
    throw error;
  }
}

/** Steps of a call with the questions of the server in between. Schedules the first step at once. */
async function callWithAnswers(
  ctx: ToolContext,
  { byEffect, serverTask }: CallTasks,
  effect: EffectClass,
  first: CallInput,
): Promise<CallOutput> {
  let known: Resumed["known"] = {};
  let asked = 0;
  let restarts = 0;
  for (let input = first; ;) {
    const output = await ctx.scheduleTask(byEffect[effect], input);
    if (output.task !== undefined) {
      const { name, server, folder, environment, tool } = input;
      const followed = { name, server, folder, ...optional(environment), tool, ...output.task };
      const ended = await followTask(ctx, serverTask, followed);
      if (ended.type === "ended") return ended;
      const mayRepeat = effect !== "once" && restarts++ < MCP_LIMITS.taskRestarts;
      if (!mayRepeat) return { text: `${ended.text} ${UNCERTAIN}`, isError: true };
      input = first; // A task that its server has forgotten begins again.
      continue;
    }
    if (output.asks === undefined) return output;
    const { questions, ...open } = output.asks;
    asked += Math.max(1, questions.length);
    if (asked > MCP_LIMITS.questions) return { text: askedTooOften(input), isError: true };
    const asking = { server: input.name, tool: input.tool };
    const answers = await askForServer(ctx, asking, questions, open.isOpen && effect === "once");
    for (const one of questions)
      known = { ...known, [questionHash(one)]: answers[one.key] ?? { action: "cancel" } };
    input = { ...first, resumed: { ...open, answers, known } };
  }
}

function askedTooOften({ name, tool }: CallInput): string {
  return `The call of ${tool} was given up: the MCP server ${name} asked more than ${MCP_LIMITS.questions} questions. ${UNCERTAIN}`;
}

function promptPart({ name, tools, instructions, leftOut }: ServerFact): string {
  const said = instructions === "" ? "" : ` The server says of itself: ${instructions}`;
  const missing = leftOut.length === 0 ? "" : ` Not offered: ${leftOut.join("; ")}.`;
  return `The MCP server ${name} has ${tools.length} tools.${missing}${said}`;
}
