// `followTask`: a task of an MCP server, from its id to its result. Each look at the task is a durable task
// of the session, and each wait between two looks is a durable timer.
//
//   - The id is in the journal before the first look, so the next process of a session that was killed looks
//     on.
//   - A question of the task is a durable question of the session. It is asked once, also when a look shows
//     it again.
//   - A session that is cancelled cancels the task of its server.

import { defineTask, type TaskContext, type TaskDefinition } from "@holdfast/runtime";
import type { Redactor } from "@holdfast/system";

import {
  type McpServer,
  saysSignIn,
  ServerFailedError,
  signInAdvice,
  MCP_LIMITS,
  type McpServers,
  type OpenServer,
  resultMedia,
  type Media,
  resultText,
  questionsOf,
  type ServerAnswer,
  type ServerQuestion,
  pollMsOf,
  type ServerTask,
  type CallToolResult,
  type InputRequests,
} from "@holdfast/mcp";
import type { SessionEnvironment } from "../environments/session-environment.ts";
import { cutText, type ToolContext } from "../model-loop/tools/tool.ts";
import { ownValues } from "../environments/environment-capability.ts";
import { askForServer } from "./server-dialog.ts";

/** A task of a server, and the call that became it. */
interface FollowedCall extends ServerTask {
  readonly name: string;
  readonly server: McpServer;
  readonly folder: string;
  readonly environment?: SessionEnvironment;
  readonly tool: string;
}

interface StepInput extends Omit<FollowedCall, "pollMs"> {
  readonly step: "get" | "answer" | "cancel";
  readonly answers?: Readonly<Record<string, ServerAnswer>>;
}

type StepOutput =
  | { readonly type: "working"; readonly pollMs: number }
  | { readonly type: "asks"; readonly pollMs: number; readonly questions: readonly ServerQuestion[] }
  | TaskEnd;

type TaskEnd =
  | ({ readonly type: "ended" } & RecordedResult)
  /** The server does not know the task. */
  | { readonly type: "forgotten"; readonly text: string };

export type ServerTaskStep = TaskDefinition<StepInput, StepOutput>;

/**
 * Looks at a task, answers its questions or cancels it. Each of them may be done twice.
 *
 * @param secrets names of secrets that servers may get.
 */
export function serverTaskOf(servers: McpServers, secrets: readonly string[]): ServerTaskStep {
  return defineTask<StepInput, StepOutput>({
    name: "mcp_task",
    description: "Look at a task of an MCP server",
    effect: "repeatable",
    retry: { maxAttempts: 8, nonRetryable: ["config_invalid"] },
    secrets,
    run: async (input, task: TaskContext) => {
      const { name, server, folder, environment } = input;
      const { sessionId, signal } = task;
      try {
        return await servers.with(
          { sessionId, name, server, folder, ...ownValues(environment, task) },
          (open) => takeStep(open, input, signal),
        );
      } catch (error) {
        if (error instanceof ServerFailedError) return { type: "forgotten", text: `${error.message}.` };
        throw error;
      }
    },
  });
}

async function takeStep(
  { connection, redactor }: OpenServer,
  { step, name, tool, taskId, answers = {} }: StepInput,
  signal: AbortSignal,
): Promise<StepOutput> {
  if (step === "cancel") {
    await connection.cancelTask(taskId, signal);
    return { type: "ended", text: "It was cancelled.", isError: true };
  }
  if (step === "answer") await connection.answerTask(taskId, answers, signal);
  const { status, statusMessage = "", ...task } = await connection.task(taskId, signal);
  const pollMs = pollMsOf(task.pollIntervalMs);
  switch (status) {
    case "working":
      return { type: "working", pollMs };
    case "input_required": {
      const asked = questionsOf((task.inputRequests ?? {}) as InputRequests);
      return { type: "asks", pollMs, questions: redactor.value(asked) as readonly ServerQuestion[] };
    }
    case "completed":
      return {
        type: "ended",
        ...recordedResult((task.result ?? { content: [] }) as CallToolResult, name, redactor),
      };
    case "failed":
    case "cancelled": {
      const said = (task.error?.message ?? statusMessage).slice(0, MCP_LIMITS.reasonChars);
      const why = said === "" ? "" : `: ${said}`;
      const text = `The MCP server ${name} ended the task of ${tool} as ${status}${why}`;
      return { type: "ended", text: redactor.text(text), isError: true };
    }
  }
}

export interface RecordedResult {
  readonly text: string;
  readonly isError: boolean;
  /** Images, sounds and other files, in the order of the text that names them. */
  readonly media?: readonly Media[];
}

/** The result of a call, without the values that must not be shown. */
export function recordedResult(result: CallToolResult, server: string, redactor: Redactor): RecordedResult {
  const media = resultMedia(result);
  const text = redactor.text(cutText(resultText(result, media), MCP_LIMITS.resultChars));
  const isError = result.isError === true;
  return {
    // Some servers say in a result that the sign-in has expired.
    text: isError && saysSignIn(text) ? `${text}\n${signInAdvice(server)}` : text,
    isError,
    ...(media.length === 0 ? {} : { media }),
  };
}

/** Waits for the end of a task. */
export async function followTask(
  ctx: ToolContext,
  task: ServerTaskStep,
  { pollMs: firstPollMs, ...call }: FollowedCall,
): Promise<TaskEnd> {
  const answered = new Set<string>();
  let pollMs = firstPollMs;
  let waitedMs = 0;
  let input: StepInput = { ...call, step: "get" };
  try {
    for (;;) {
      const longMs = Math.min(waitedMs * MCP_LIMITS.taskWaitShare, MCP_LIMITS.taskPollMaxMs);
      const delayMs = Math.round(Math.max(pollMs, longMs));
      await ctx.sleep(delayMs);
      waitedMs += delayMs;
      const found = await ctx.scheduleTask(task, input);
      input = { ...call, step: "get" };
      if (found.type === "ended" || found.type === "forgotten") return found;
      ({ pollMs } = found);
      if (found.type === "working") continue;
      // A question that a second look shows again is not asked again.
      const open = found.questions.filter(({ key }) => !answered.has(key));
      for (const { key } of open) answered.add(key);
      if (answered.size > MCP_LIMITS.questions) return await giveUp(ctx, task, call);
      if (open.length === 0) continue;
      const answers = await askForServer(ctx, { server: call.name, tool: call.tool }, open);
      input = { ...call, step: "answer", answers };
      [pollMs, waitedMs] = [MCP_LIMITS.taskPollMinMs, 0];
    }
  } catch (error) {
    if (ctx.isCancellationRequested()) await ctx.scheduleTask(task, { ...call, step: "cancel" });
    throw error;
  }
}

async function giveUp(
  ctx: ToolContext,
  task: ServerTaskStep,
  call: Omit<FollowedCall, "pollMs">,
): Promise<TaskEnd> {
  await ctx.scheduleTask(task, { ...call, step: "cancel" });
  const text = `The task of ${call.tool} was cancelled: the MCP server ${call.name} asked more than ${MCP_LIMITS.questions} questions.`;
  return { type: "ended", text, isError: true };
}
