// `McpConnection`: one client of the SDK, connected to one MCP server. It knows nothing of sessions.
//
//   - Every wait has a limit, and a server that reaches it is ended: a silent server is no server for the
//     next call either.
//   - An error names the server, says what the server did, and has the text that its process printed.
//   - The class of an error says what a caller can do about it (`../call-errors.ts`).
//   - The checks of a server's JSON Schemas are left to the server: a pattern in them could stop our process.

import { defined, toError } from "@holdfast/core";
import {
  Client,
  SdkError,
  SdkErrorCode,
  UrlElicitationRequiredError,
  type JsonSchemaValidator,
  type Tool,
  type Transport,
} from "@modelcontextprotocol/client";
import { z } from "zod";

import {
  CallLostError,
  ENDED,
  ServerFailedError,
  signInAdvice,
  SignInNeededError,
} from "../protocol/call-errors.ts";
import { MCP_LIMITS } from "../protocol/limits.ts";
import { OpenCall, type CallStep, type StepContext } from "../protocol/open-call.ts";
import { readTask, TASKS_EXTENSION, type TaskState } from "../protocol/server-tasks.ts";
import { questionOf, type Elicitation, type ServerAnswer } from "../protocol/server-questions.ts";
import { classOf } from "./sdk-errors.ts";

/** A transport that can say why it is closed. */
export interface ServerTransport extends Transport {
  readonly isClosed: boolean;
  /** The server is a process of ours, which may keep its tasks in its memory. */
  readonly isProcess: boolean;
  /** Completes "the server did not answer: …". */
  whyClosed(): string | undefined;
  /** The output of the server beside its messages. */
  printed(): string;
}

/** A call, or the continuation of one. */
export interface ServerCall extends StepContext {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly meta: Readonly<Record<string, unknown>>;
  /** Finds the call again while it is open. */
  readonly id: string;
  /** Answers to the questions of an earlier step, by their keys. */
  readonly answers: Readonly<Record<string, ServerAnswer>>;
  /** The server's note of an earlier step. */
  readonly state?: string | undefined;
  /** Answers by `questionHash`. */
  readonly known: Readonly<Record<string, ServerAnswer>>;
}

export interface NewConnection {
  /** The name of the server. */
  readonly name: string;
  /** A call without any progress may take this long. */
  readonly callMs: number;
  /** Makes a transport that is not started. */
  readonly open: () => ServerTransport;
}

export class McpConnection {
  readonly #name: string;
  readonly #callMs: number;
  readonly #client: Client;
  readonly #transport: ServerTransport;
  /** Calls that have no result yet, by their ids. */
  readonly #calls = new Map<string, OpenCall>();
  /** Tasks that a process of ours may have in its memory. */
  readonly #tasks = new Set<string>();
  #hasNewTools = false;

  private constructor({ name, callMs }: NewConnection, client: Client, transport: ServerTransport) {
    this.#name = name;
    this.#callMs = callMs;
    this.#client = client;
    this.#transport = transport;
    client.setNotificationHandler("notifications/tools/list_changed", () => {
      this.#hasNewTools = true;
    });
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      const { action, ...rest } = await this.#answer(params);
      return { action, ...rest };
    });
  }

  /**
   * Connects by the newest version of MCP that the server speaks. Some older servers end at a question of the
   * newest version; they are started again.
   *
   * @throws an error of `call-errors.ts`
   */
  static async open(wanted: NewConnection): Promise<McpConnection> {
    const first = await connect(wanted, "auto");
    if (first instanceof McpConnection) return first;
    if (!first.message.includes(ENDED)) throw first;
    const second = await connect(wanted, "legacy");
    if (second instanceof McpConnection) return second;
    throw second;
  }

  /** @internal For `connect`. */
  static of(wanted: NewConnection, client: Client, transport: ServerTransport): McpConnection {
    return new McpConnection(wanted, client, transport);
  }

  get isClosed(): boolean {
    return this.#transport.isClosed;
  }

  /** The server said that its tools are other ones now. */
  get hasNewTools(): boolean {
    return this.#hasNewTools;
  }

  get instructions(): string {
    return this.#client.getInstructions() ?? "";
  }

  /** The version of MCP that both sides speak. */
  get version(): string {
    return this.#client.getNegotiatedProtocolVersion() ?? "";
  }

  /** @throws ServerFailedError, or another error of `call-errors.ts` */
  async tools(): Promise<readonly Tool[]> {
    if (this.#client.getServerCapabilities()?.tools === undefined) return [];
    try {
      return (await this.#client.listTools(undefined, { timeout: MCP_LIMITS.startMs })).tools;
    } catch (error) {
      const why = this.#explain(error, "did not list its tools");
      await this.close();
      throw failureOf(this.#name, error, why);
    }
  }

  /** A call waits for an answer, or a task of a process of ours is not over. */
  get hasOpenCalls(): boolean {
    return this.#calls.size > 0 || this.#tasks.size > 0;
  }

  hasOpenCall(id: string): boolean {
    return this.#calls.has(id);
  }

  /**
   * Begins a call or continues the open one of this id.
   *
   * @throws an error of `call-errors.ts`, or the reason of the signal
   */
  async call(wanted: ServerCall): Promise<CallStep> {
    const { id, tool, signal } = wanted;
    const open = this.#calls.get(id) ?? this.#begin(wanted);
    this.#calls.set(id, open);
    try {
      const step = await open.next(wanted.answers, wanted);
      if (step.type === "task" && this.#transport.isProcess) this.#tasks.add(step.task.taskId);
      return step;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof UrlElicitationRequiredError) return asksToOpen(error);
      const kind = classOf(error);
      const what =
        kind === ServerFailedError ? `refused the call of ${tool}` : `did not answer the call of ${tool}`;
      const why = this.#explain(error, what);
      // A silent server is no server for the next call either.
      if (kind !== ServerFailedError) await this.close();
      throw new kind(advised(this.#name, kind, why));
    } finally {
      if (open.isOver || signal.aborted) this.#calls.delete(id);
    }
  }

  /**
   * The state of a task of the server.
   *
   * @throws an error of `call-errors.ts`, or the reason of the signal. A `ServerFailedError` says that the
   *   server does not know the task.
   */
  async task(taskId: string, signal: AbortSignal): Promise<TaskState> {
    const found = await this.#ofTask("tasks/get", { taskId }, signal);
    const task = readTask(found);
    if (task.status === "completed" || task.status === "failed" || task.status === "cancelled")
      this.#tasks.delete(taskId);
    return task;
  }

  /** @param answers by the keys of the questions. @throws as `task` */
  async answerTask(
    taskId: string,
    answers: Readonly<Record<string, ServerAnswer>>,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#ofTask("tasks/update", { taskId, inputResponses: answers }, signal);
  }

  /** @throws as `task` */
  async cancelTask(taskId: string, signal: AbortSignal): Promise<void> {
    this.#tasks.delete(taskId);
    await this.#ofTask("tasks/cancel", { taskId }, signal);
  }

  async #ofTask(method: string, params: Record<string, unknown>, signal: AbortSignal): Promise<unknown> {
    try {
      return await this.#client.request({ method, params }, z.looseObject({}), {
        signal,
        timeout: MCP_LIMITS.startMs,
      });
    } catch (error) {
      signal.throwIfAborted();
      const kind = classOf(error);
      const why = this.#explain(error, `did not take ${method}`);
      if (kind === ServerFailedError) this.#tasks.delete(String(params["taskId"]));
      else await this.close(); // A silent server is no server for the next call either.
      throw new kind(advised(this.#name, kind, why));
    }
  }

  #begin({ tool, args, meta, answers, state, known }: ServerCall): OpenCall {
    const retry = {
      ...(Object.keys(answers).length === 0 ? {} : { inputResponses: answers }),
      ...defined({ requestState: state }),
    };
    const params = { name: tool, arguments: { ...args }, _meta: { ...meta }, ...retry };
    return new OpenCall({
      known,
      callMs: this.#callMs,
      send: (signal, onprogress) =>
        this.#client.callTool(params, {
          signal,
          onprogress,
          timeout: NEVER_MS, // `OpenCall` has the time-outs.
          allowInputRequired: true,
        }),
    });
  }

  /** Servers before 2026-07-28 do not say which call a question is for. Calls of one session follow each other. */
  #answer(elicitation: Elicitation): Promise<ServerAnswer> | ServerAnswer {
    const call = [...this.#calls.values()].find(({ isOver }) => !isOver);
    return call?.ask(elicitation) ?? { action: "cancel" };
  }

  async close(): Promise<void> {
    for (const call of this.#calls.values()) call.end(new CallLostError("the connection was closed"));
    this.#calls.clear();
    this.#tasks.clear();
    await this.#client.close().catch(() => {});
    await this.#transport.close().catch(() => {});
  }

  #explain(error: unknown, what: string): string {
    return explain(this.#name, this.#transport, error, what);
  }
}

/** The longest time of a timer. */
const NEVER_MS = 2 ** 31 - 1;

/** A server before 2026-07-28 refuses a call until a person has opened an address. The call then begins again. */
function asksToOpen({ elicitations }: UrlElicitationRequiredError): CallStep {
  const questions = elicitations.slice(0, MCP_LIMITS.questions).map((one, at) => questionOf(String(at), one));
  return { type: "asks", questions, isOpen: false };
}

async function connect(wanted: NewConnection, mode: "auto" | "legacy"): Promise<McpConnection | Error> {
  const { name } = wanted;
  const transport = wanted.open();
  const client = new Client(
    { name: "holdfast", version: "1" },
    {
      capabilities: { elicitation: { form: {}, url: {} }, extensions: { [TASKS_EXTENSION]: {} } },
      inputRequired: { autoFulfill: false },
      versionNegotiation: { mode, probe: { timeoutMs: MCP_LIMITS.probeMs } },
      listMaxPages: MCP_LIMITS.pages,
      // A pattern in a schema of the server could stop this process.
      jsonSchemaValidator: {
        getValidator:
          <T>(): JsonSchemaValidator<T> =>
          (input: unknown) => ({ valid: true, data: input as T, errorMessage: undefined }),
      },
    },
  );
  try {
    await client.connect(transport, { timeout: MCP_LIMITS.startMs });
    return McpConnection.of(wanted, client, transport);
  } catch (error) {
    await transport.close().catch(() => {});
    return failureOf(name, error, explain(name, transport, error, "did not answer when it was started"));
  }
}

function explain(name: string, transport: ServerTransport, error: unknown, what: string): string {
  const printed = transport.printed();
  return `the MCP server ${name} ${what}: ${causeOf(transport, error)}${printed === "" ? "" : ` (${printed})`}`;
}

function causeOf(transport: ServerTransport, error: unknown): string {
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout)
    return "it was silent for too long";
  const cause = toError(error);
  return transport.whyClosed() ?? cutText(cause.message);
}

/** An answer that is no message may be a whole page. */
function cutText(text: string): string {
  return text.length > MCP_LIMITS.reasonChars ? `${text.slice(0, MCP_LIMITS.reasonChars)}…` : text;
}

/** Nothing was called, so nothing is lost. */
function failureOf(name: string, error: unknown, why: string): Error {
  const kind = classOf(error);
  return kind === CallLostError ? new ServerFailedError(why) : new kind(advised(name, kind, why));
}

function advised(name: string, kind: unknown, why: string): string {
  return kind === SignInNeededError ? `${why}. ${signInAdvice(name)}` : why;
}
