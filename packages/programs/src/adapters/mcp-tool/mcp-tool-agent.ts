// The adapter for an agent behind a tool of an MCP server, such as `codex mcp-server` (`mcpToolAgent`).
//
//   - A turn is one call of the tool, which is an event before it is made. The server names its session only
//     in the result. A person therefore decides what follows a call that was cut off.
//   - A question of the server is a durable question of the session: yes or no, for a form without fields.
//     Any other one is declined.
//   - The server's program runs for one turn. It gets the variables that are named, and their values as keys
//     are replaced.

import { randomUUID } from "node:crypto";
import { HoldfastError, HOUR_MS } from "@holdfast/core";
import { Redactor, scrubEnvironment, type Environment } from "@holdfast/system";
import { endTagged, ProcessSupervisor } from "@holdfast/system/processes";

import {
  fieldsOf as formFieldsOf,
  MCP_LIMITS,
  type McpConnection,
  resultText,
  type ServerAnswer,
  type ServerQuestion,
} from "@holdfast/mcp";
import { hostEnvironment } from "@holdfast/workspace";
import type {
  ExternalAgent,
  ExternalAgentProtocol,
  ExternalEnd,
  ExternalEvent,
  ExternalTurn,
} from "../../session/external-agent-protocol.ts";
import { findProgram, locateProgram } from "../../session/program/find-program.ts";
import { ProgramAnswers } from "../../session/program/program-answers.ts";
import { fieldsOf, recordedResult, type Fields } from "../../session/fields.ts";
import { TAKES_NO_MESSAGE, unknownSession } from "../../session/program/agent-turn.ts";
import { askSession, RemoteTurn, type RemoteTalk } from "../remote/remote-turn.ts";

/** Options of `mcpToolAgent`. */
export interface McpToolAgentOptions {
  /** The name of the agent that is made. */
  readonly name: string;
  /** The program of the server and its arguments; no shell reads them. */
  readonly command: readonly [string, ...string[]];
  /** The tool that begins a session, and its argument with the prompt. */
  readonly tool: string;
  readonly prompt?: string;
  /** Arguments of every call. */
  readonly arguments?: Fields;
  /**
   * The tool that continues a session, its argument with the id, and the field of the structured result that
   * names the session.
   */
  readonly reply?: { readonly tool: string; readonly argument: string; readonly field: string };
  /** Variables that the program gets of the user's environment, besides those of every process. */
  readonly variables?: readonly string[];
  /** The names of variables whose values are keys. They are passed on, and replaced in everything that is recorded. */
  readonly keys?: readonly string[];
  /** The environment of this process by default. */
  readonly environment?: Environment;
  readonly folder: string;
}

/** A turn may take this long without any progress that the server reports. */
const CALL_MS = 6 * HOUR_MS;

/** The adapter for an agent behind a tool of an MCP server. */
export function mcpToolAgent(options: McpToolAgentOptions): ExternalAgentProtocol {
  const { name, command, reply, variables = [], keys = [], environment = hostEnvironment, folder } = options;
  const supervisor = new ProcessSupervisor({ environment, namespaces: "never" });
  const answers = new ProgramAnswers(supervisor);
  const program = { name: command[0], title: name, install: "correct `command`" };
  const envNow = (): Record<string, string> =>
    scrubEnvironment(
      environment,
      Object.fromEntries([...variables, ...keys].map((one) => [one, environment[one]])),
    );
  const begin = (turn: ExternalTurn): ExternalAgent =>
    new RemoteTurn(async ({ emit, signal }) => {
      const env = envNow();
      const redactor = new Redactor(keys.flatMap((one) => environment[one] ?? []));
      const redacted = (event: ExternalEvent): void => emit(redactor.value(event) as ExternalEvent);
      const argv = [turn.intent.program, ...command.slice(1)] as [string, ...string[]];
      const started = { argv, env, cwd: turn.intent.folder, tag: turn.tag };
      const { McpConnection, StdioTransport } = await import("@holdfast/mcp/client");
      const connection = await McpConnection.open({
        name,
        callMs: CALL_MS,
        open: () => new StdioTransport(supervisor, started),
      });
      try {
        return redactor.value(
          await talk(options, turn, connection, { emit: redacted, signal }),
        ) as ExternalEnd;
      } finally {
        await connection.close();
      }
    });
  const reopen = (turn: ExternalTurn): Promise<ExternalAgent> =>
    Promise.resolve(turn.boundId === null || reply === undefined ? unknownSession() : begin(turn));
  return {
    name,
    keys,
    capabilities: () => ({ ...TAKES_NO_MESSAGE, resume: reply === undefined ? "none" : "id" }),
    find: () => findProgram(program, answers, envNow(), folder),
    locate: () => locateProgram(program, envNow(), folder),
    start: (turn) => Promise.resolve(begin({ ...turn, boundId: null })),
    sendMessage: reopen,
    resume: reopen,
    ruledCall: ({ tool }) => ({ tool, subjectKind: "text", subject: null }),
    endLost: async (tag) => void (await endTagged(tag)),
  };
}

async function talk(
  { tool, prompt: argument = "prompt", arguments: given = {}, reply }: McpToolAgentOptions,
  { boundId, prompt, wayBack }: ExternalTurn,
  connection: McpConnection,
  { emit, signal }: Parameters<RemoteTalk>[0],
): Promise<ExternalEnd> {
  const isReply = boundId !== null && reply !== undefined;
  const name = isReply ? reply.tool : tool;
  const args = { ...given, [argument]: prompt, ...(isReply ? { [reply.argument]: boundId } : {}) };
  emit({ type: "session_started", model: "unknown", boundId });
  const id = randomUUID();
  emit({ type: "tool_call", id, name, input: args });
  const call = { id, tool: name, args, meta: {}, known: {}, signal, onProgress: () => {} };
  let answers: Readonly<Record<string, ServerAnswer>> = {};
  let state: string | undefined;
  for (let asked = 0; ; asked++) {
    const step = await connection.call({ ...call, answers, state });
    if (step.type === "result") {
      const text = recordedResult(resultText(step.result));
      emit({ type: "tool_result", id, text, isError: step.result.isError === true });
      if (step.result.isError === true)
        return isReply && /session|thread|conversation/i.test(text) && /not found|unknown|no such/i.test(text)
          ? { type: "unknown_session" }
          : { type: "error", message: text };
      const named = fieldsOf(step.result.structuredContent)[reply?.field ?? ""];
      if (isReply && named !== undefined && named !== boundId) return { type: "unknown_session" };
      if (typeof named === "string") emit({ type: "session_started", model: "unknown", boundId: named });
      emit({ type: "text", text });
      return { type: "answered", text };
    }
    if (step.type === "task")
      throw new HoldfastError(
        "external_agent_failed",
        `the MCP server goes on with ${name} as a task, which agents behind a tool do not support`,
      );
    if (asked >= MCP_LIMITS.questions)
      throw new HoldfastError(
        "external_agent_failed",
        `the MCP server asks more than ${MCP_LIMITS.questions} questions in one call`,
      );
    state = step.state;
    answers = {};
    for (const question of step.questions)
      answers = { ...answers, [question.key]: await answerOf(question, wayBack, signal) };
  }
}

async function answerOf(
  question: ServerQuestion,
  wayBack: ExternalTurn["wayBack"],
  signal: AbortSignal,
): Promise<ServerAnswer> {
  if (question.mode === "url" || formFieldsOf(question.schema).length > 0) return { action: "decline" };
  const answer = await askSession(wayBack, { question: question.message, approval: true }, signal);
  signal.throwIfAborted();
  return answer?.startsWith("Yes.") === true ? { action: "accept", content: {} } : { action: "decline" };
}
