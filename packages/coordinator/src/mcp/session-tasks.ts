// `SessionTasks`: calls that take long, as tasks of MCP's extension `io.modelcontextprotocol/tasks`. A client
// polls such a task.
//
//   - A task is a turn of a session, and its id names both. The coordinator keeps nothing about a task, so a
//     task survives every restart, and a call that is sent again finds it.
//   - A task belongs to nobody: a caller reads, answers and cancels it with the rights that it has for the
//     session.
//   - The key of a question is signed for one caller, session and question. An answer under another key, or
//     to a question that is not open any more, changes nothing.
//   - Only a client that declares the extension in its request gets a task.

import { createHmac, timingSafeEqual } from "node:crypto";
import { HoldfastError, toHoldfastError } from "@holdfast/core";
import type { Session } from "@holdfast/proto";
import {
  inputRequired,
  ProtocolError,
  ProtocolErrorCode,
  type CallToolResult,
  type McpServer,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";

import { answerOf, questionForm, type GivenAnswer } from "./client-questions.ts";
import type { Orchestrator } from "./orchestrator.ts";
import type { SessionCalls } from "./session-calls.ts";
import { turnAfter, type SessionTurn } from "../endpoint/session-turn.ts";
import { turnResult } from "./tool-results.ts";

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";
/** How often a client should ask. */
const POLL_MS = 2_000;
const KEY_CHARS = 32;
const TASK_ID = /^(?<sessionId>[A-Za-z0-9][A-Za-z0-9._-]{0,99})(?:~(?<after>\d{1,18}))?$/;

const taskParams = z.looseObject({ taskId: z.string().max(200) });
/** A task of the extension. */
interface Details {
  readonly taskId: string;
  readonly status: "working" | "input_required" | "completed" | "cancelled";
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly ttlMs: null;
  readonly pollIntervalMs: number;
  readonly inputRequests?: object;
  readonly result?: object;
}

export interface SessionTasksOptions {
  readonly orchestrator: Orchestrator;
  readonly calls: SessionCalls;
  /** Whether the client of a request can put a question to a person. */
  readonly canAsk: (ctx: ServerContext) => boolean;
}

/** A turn of a session. */
interface TaskTurn {
  readonly taskId: string;
  readonly session: Session;
  readonly turn: SessionTurn;
}

export class SessionTasks {
  readonly #orchestrator: Orchestrator;
  readonly #calls: SessionCalls;
  readonly #canAsk: (ctx: ServerContext) => boolean;

  constructor({ orchestrator, calls, canAsk }: SessionTasksOptions) {
    this.#orchestrator = orchestrator;
    this.#calls = calls;
    this.#canAsk = canAsk;
  }

  /** Must be called before the server is connected. */
  register({ server }: McpServer): void {
    server.registerCapabilities({ extensions: { [TASKS_EXTENSION]: {} } });
    server.setRequestHandler("tasks/get", { params: taskParams }, ({ taskId }, ctx) =>
      answered(async () => ({ ...this.#details(await this.#find(taskId), ctx) })),
    );
    server.setRequestHandler("tasks/update", { params: taskParams }, ({ taskId }, { mcpReq }) =>
      answered(async () => {
        // The SDK takes the answers out of the parameters.
        const given = (mcpReq.inputResponses ?? {}) as Readonly<Record<string, GivenAnswer | undefined>>;
        await this.#takeAnswers(await this.#find(taskId), given);
        return {};
      }),
    );
    server.setRequestHandler("tasks/cancel", { params: taskParams }, ({ taskId }) =>
      answered(async () => {
        const { session, turn } = await this.#find(taskId);
        if (turn.type !== "finished") await this.#calls.cancel(session.sessionId);
        return {};
      }),
    );
  }

  /**
   * The answer to a call whose session still works or waits for a person.
   *
   * @param after the length of the journal that the turn has to exceed.
   */
  async created(sessionId: string, after: bigint | undefined, ctx: ServerContext): Promise<CallToolResult> {
    const taskId = after === undefined || after < 0n ? sessionId : `${sessionId}~${after}`;
    const { inputRequests: _, result: _result, ...task } = this.#details(await this.#find(taskId), ctx);
    return { content: [], resultType: "task", ...task };
  }

  /** @throws ProtocolError */
  async #find(taskId: string): Promise<TaskTurn> {
    const { sessionId = "", after } = TASK_ID.exec(taskId)?.groups ?? {};
    const session = sessionId === "" ? undefined : await this.#calls.get(sessionId);
    if (session === undefined)
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `there is no task ${taskId.slice(0, 100)}; call list_agent_sessions to see the sessions`,
      );
    return { taskId, session, turn: turnAfter(session, after === undefined ? -1n : BigInt(after)) };
  }

  #details(found: TaskTurn, ctx: ServerContext): Details {
    const { taskId, session, turn } = found;
    const common = {
      taskId,
      createdAt: new Date(Number(session.createdAt)).toISOString(),
      lastUpdatedAt: new Date(Number(session.updatedAt)).toISOString(),
      ttlMs: null,
      pollIntervalMs: POLL_MS,
    };
    switch (turn.type) {
      case "running":
        return { ...common, status: "working", statusMessage: `session ${session.sessionId} works` };
      case "blocked":
        return turn.question?.name !== undefined && this.#canAsk(ctx)
          ? {
              ...common,
              status: "input_required",
              statusMessage: turn.reason,
              inputRequests: { [this.#keyOf(found, turn.question.name)]: elicitation(session, turn) },
            }
          : { ...common, status: "working", statusMessage: waitsFor(session, turn) };
      case "finished":
        if (session.status === "cancelled")
          return { ...common, status: "cancelled", statusMessage: turn.result };
        this.#orchestrator.memory.answer(session.sessionId);
        // The SDK marks results of calls, and not those within tasks.
        return {
          ...common,
          status: "completed",
          result: { resultType: "complete", ...turnResult(session.sessionId, turn) },
        };
    }
  }

  async #takeAnswers(
    found: TaskTurn,
    given: Readonly<Record<string, GivenAnswer | undefined>>,
  ): Promise<void> {
    const { session, turn } = found;
    if (turn.type !== "blocked" || turn.question?.name === undefined) return;
    const { name, answer } = turn.question;
    const expected = this.#keyOf(found, name);
    const key = Object.keys(given).find((one) => isSame(one, expected));
    const response = key === undefined ? undefined : given[key];
    if (response?.action !== "accept") return;
    await this.#calls.answer(session.sessionId, name, answerOf(response, answer === "approval"));
  }

  #keyOf({ taskId, session: { sessionId } }: TaskTurn, question: string): string {
    const { caller, stateKey } = this.#orchestrator;
    return createHmac("sha256", stateKey)
      .update(JSON.stringify(["task", caller, taskId, sessionId, question]))
      .digest("hex")
      .slice(0, KEY_CHARS);
  }
}

function isSame(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

function elicitation(
  { sessionId }: Session,
  { question, reason }: Extract<SessionTurn, { type: "blocked" }>,
): object {
  return inputRequired.elicit({
    message: `Session ${sessionId}: ${reason}`,
    requestedSchema: questionForm(question?.answer === "approval"),
  });
}

function waitsFor({ sessionId }: Session, { reason }: Extract<SessionTurn, { type: "blocked" }>): string {
  return `${reason}. A person has to act: \`holdfast show ${sessionId}\` says how.`;
}

/** An error of ours as an error of the protocol. */
async function answered<T extends object>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    if (thrown instanceof ProtocolError) throw thrown;
    const { message, fix } = HoldfastError.is(thrown) ? thrown : toHoldfastError(thrown);
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      fix === undefined ? message : `${message}; ${fix}`,
    );
  }
}
