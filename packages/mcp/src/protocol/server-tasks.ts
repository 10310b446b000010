// `ServerTask`: a call that an MCP server carries out as a task of the extension
// `io.modelcontextprotocol/tasks`. Pure.
//
// The server answers the call with the id of the task, and we poll the task by that id, from any process.
//
//   - A server may make a task of any call, because we always declare the extension.
//   - The SDK refuses such an answer, as it knows two types of results. The answer is therefore changed as it
//     arrives: it becomes a complete result without content, which has the task among its notes.

import type { CallToolResult, JSONRPCMessage } from "@modelcontextprotocol/client";
import { z } from "zod";

import { ServerFailedError } from "./call-errors.ts";
import { MCP_LIMITS } from "./limits.ts";

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";
/** The note of a changed answer. */
const TASK_NOTE = "dev.holdfast/task";

/** A task that a server has begun. */
export interface ServerTask {
  readonly taskId: string;
  /** The server wants to be asked again after this time. */
  readonly pollMs: number;
}

const taskShape = z.looseObject({
  taskId: z.string().min(1).max(MCP_LIMITS.taskIdChars),
  status: z.enum(["working", "input_required", "completed", "failed", "cancelled"]),
  statusMessage: z.string().optional(),
  pollIntervalMs: z.number().optional(),
  inputRequests: z.record(z.string(), z.unknown()).optional(),
  result: z.looseObject({ content: z.array(z.unknown()).default([]) }).optional(),
  error: z.looseObject({ code: z.number(), message: z.string() }).optional(),
});

export type TaskState = z.output<typeof taskShape>;

/** Every other message stays as it is. */
export function withTaskNoted(message: JSONRPCMessage): JSONRPCMessage {
  if (!("result" in message) || message.result["resultType"] !== "task") return message;
  // oxlint-disable-next-line no-underscore-dangle -- the protocol's name.
  const { _meta, ...task } = message.result;
  const noted = { ..._meta, [TASK_NOTE]: task };
  return { ...message, result: { resultType: "complete", content: [], _meta: noted } };
}

/** The task that a server made of a call. @throws ServerFailedError for a task that is none. */
export function taskOf(result: CallToolResult): ServerTask | undefined {
  // oxlint-disable-next-line no-underscore-dangle -- the protocol's name.
  const noted = result._meta?.[TASK_NOTE];
  if (noted === undefined) return undefined;
  const { taskId, pollIntervalMs } = readTask(noted);
  return { taskId, pollMs: pollMsOf(pollIntervalMs) };
}

/** @throws ServerFailedError */
export function readTask(value: unknown): TaskState {
  const parsed = taskShape.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new ServerFailedError(
    `it answered with a task that is none: ${z.prettifyError(parsed.error).slice(0, MCP_LIMITS.reasonChars)}`,
  );
}

export function pollMsOf(given: number = MCP_LIMITS.taskPollMs): number {
  return Math.min(Math.max(Math.round(given), MCP_LIMITS.taskPollMinMs), MCP_LIMITS.taskPollMaxMs);
}
