// `AgentTasks`: the operations of A2A on the sessions of one agent, for one request.
//
//   agent-tasks-1. It keeps nothing. A task is a session, and every operation is a method of the contract that is
//       called as the caller of the request. A task therefore survives every restart, and each reader of the session
//       can read it.
//   - A message that is sent again is taken once. Its id names the session that it starts, and is given with the
//     signal or the answer that it becomes.
//   - A call that waits ends when the task has ended or needs somebody, or after `WAIT_MS`. The task goes on.
//   - The stream of a message ends there, too. A subscription goes on until the task has ended.

import type {
  AgentCard,
  CancelTaskRequest,
  GetTaskRequest,
  ListTasksRequest,
  ListTasksResponse,
  Message,
  SendMessageRequest,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
} from "@a2a-js/sdk";
import {
  PushNotificationNotSupportedError,
  UnsupportedOperationError,
  type A2AError,
} from "@a2a-js/sdk/errors";
import type { A2ARequestHandler } from "@a2a-js/sdk/server";
import type { Client } from "@connectrpc/connect";
import {
  HoldfastError,
  MINUTE_MS,
  NEXT_INPUT,
  NotFoundError,
  SECOND_MS,
  toHoldfastError,
  UsageError,
} from "@holdfast/core";
import type { RunnerService, Session, SessionService, Wait } from "@holdfast/proto";

import { turnOf } from "../endpoint/session-turn.ts";
import { toA2aError } from "./a2a-errors.ts";
import { cardOf, schemaOf } from "./agent-card.ts";
import { answerFor, inputFor, nextInputFor, readParts, type Given } from "./message-parts.ts";
import { contextOf, messageKey, sessionIdFor } from "./task-ids.ts";
import { listTasks } from "./task-list.ts";
import { isSettled, isTerminal, messageOf, statusOf, taskOf } from "./task-view.ts";

/** Less than the time after which usual clients give an answer up (five minutes). */
const WAIT_MS = 4 * MINUTE_MS;
/** How long a cancelled task may take to end before the answer shows it at work. */
const CANCEL_MS = 5 * SECOND_MS;
const HISTORY = 20;
const HISTORY_MAX = 100;
/** The entries that are read for messages: tools and thoughts are among them. */
const ENTRIES_MAX = 400;
/** Another answer may come first, and the session then asks something else. */
const TRIES = 3;
const encoder = new TextEncoder();

export interface AgentTasksOptions {
  readonly agent: string;
  /** The address of the agent's interface. */
  readonly url: string;
  readonly sessions: Client<typeof SessionService>;
  readonly runners: Client<typeof RunnerService>;
  /** The user that sessions of the caller belong to; empty for an admin. */
  readonly owner: string;
  readonly requestId: string;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
  /** Called with each error that is answered. */
  readonly failed: (error: HoldfastError) => void;
}

export class AgentTasks implements A2ARequestHandler {
  readonly #options: AgentTasksOptions;

  constructor(options: AgentTasksOptions) {
    this.#options = options;
  }

  /** @throws HoldfastError */
  async card(): Promise<AgentCard> {
    const { agent, url } = this.#options;
    const found = await this.#offered();
    if (found === undefined) throw noAgent(agent);
    return cardOf(found, url);
  }

  getAgentCard(): Promise<AgentCard> {
    return this.#answered(() => this.card());
  }

  sendMessage({ message, configuration }: SendMessageRequest): Promise<Task> {
    return this.#answered(async () => {
      const id = await this.#take(message!, configuration?.taskPushNotificationConfig);
      const session =
        configuration?.returnImmediately === true
          ? await this.#get(id)
          : await this.#settled(id, WAIT_MS, isSettled);
      return this.#task(session, configuration?.historyLength);
    });
  }

  async *sendMessageStream({
    message,
    configuration,
  }: SendMessageRequest): AsyncGenerator<StreamResponse, void, undefined> {
    const id = await this.#answered(() => this.#take(message!, configuration?.taskPushNotificationConfig));
    const first = await this.#answered(() => this.#get(id));
    yield* this.#updates(first, isSettled, configuration?.historyLength);
  }

  getTask({ id, historyLength }: GetTaskRequest): Promise<Task> {
    return this.#answered(async () => this.#task(await this.#get(id), historyLength));
  }

  cancelTask({ id }: CancelTaskRequest): Promise<Task> {
    return this.#answered(async () => {
      await this.#get(id);
      await this.#options.sessions.cancel({ sessionId: id, reason: "a client of A2A cancelled it" });
      return this.#task(await this.#settled(id, CANCEL_MS, ({ state }) => isTerminal(state)), 0);
    });
  }

  async *resubscribe({ id }: SubscribeToTaskRequest): AsyncGenerator<StreamResponse, void, undefined> {
    const first = await this.#answered(async () => {
      const session = await this.#get(id);
      if (isTerminal(statusOf(session).state))
        throw new UnsupportedOperationError(
          `task ${id} has ended (${session.status}), and nothing more comes; get the task for its result`,
        );
      return session;
    });
    yield* this.#updates(first, ({ state }) => isTerminal(state), undefined);
  }

  listTasks(request: ListTasksRequest): Promise<ListTasksResponse> {
    const { agent, sessions } = this.#options;
    return this.#answered(() =>
      listTasks(request, {
        page: (query) => sessions.list({ agent, ...query }),
        task: (session) => this.#task(session, request.historyLength ?? 0),
      }),
    );
  }

  createTaskPushNotificationConfig = refusePush;
  getTaskPushNotificationConfig = refusePush;
  listTaskPushNotificationConfigs = refusePush;
  deleteTaskPushNotificationConfig = refusePush;

  getAuthenticatedExtendedAgentCard(): Promise<AgentCard> {
    return Promise.reject(
      new UnsupportedOperationError("there is no extended card; the card of the agent has all"),
    );
  }

  /** Gives a message to its session. @returns the id of the session. */
  async #take(message: Message, push: unknown): Promise<string> {
    if (push !== undefined && push !== null) throw noPush();
    return message.taskId === "" ? this.#start(message) : this.#continue(message);
  }

  async #start(message: Message): Promise<string> {
    const { agent, owner, sessions } = this.#options;
    const { contextId, messageId } = message;
    const sessionId = sessionIdFor({ owner, agent, contextId, messageId });
    const given = readParts(message);
    const offered = await this.#offered();
    if (offered === undefined && (await this.#find(sessionId)) === undefined) throw noAgent(agent);
    const input = encoder.encode(JSON.stringify(inputFor(given, schemaOf(offered?.inputSchema))));
    await sessions.start({ agent, input, sessionId, invocation: "async_poll" }).catch((thrown: unknown) => {
      if (HoldfastError.is(thrown) && thrown.code === "session_exists") throw otherMessage(messageId);
      throw thrown;
    });
    return sessionId;
  }

  async #continue(message: Message): Promise<string> {
    const { taskId, contextId } = message;
    const given = readParts(message);
    const common = { sessionId: taskId, messageId: messageKey(message.messageId) };
    for (let left = TRIES; ; left--) {
      const session = await this.#get(taskId);
      if (contextId !== "" && contextId !== contextOf(taskId)) throw otherContext(taskId, contextId);
      const turn = turnOf(session);
      try {
        if (turn.type === "blocked" && turn.question !== undefined)
          await this.#answer(common, given, turn.question);
        else {
          const payload = encoder.encode(JSON.stringify(nextInputFor(given)));
          await this.#options.sessions.signal({ ...common, name: NEXT_INPUT, payload });
        }
        return taskId;
      } catch (thrown) {
        const isOver = HoldfastError.is(thrown) && thrown.code === "question_not_found";
        if (!isOver || left <= 1) throw thrown;
      }
    }
  }

  async #answer(
    common: { readonly sessionId: string; readonly messageId: string },
    given: Given,
    wait: Wait,
  ): Promise<void> {
    const { question = wait.name ?? "", answer } = answerFor(given, wait.answer);
    const bytes = encoder.encode(JSON.stringify(answer ?? null));
    await this.#options.sessions.answer({ ...common, question, answer: bytes });
  }

  /** The task as it is, and what changes in it until it is as wanted. */
  async *#updates(
    first: Session,
    isDone: (status: ReturnType<typeof statusOf>) => boolean,
    historyLength: number | undefined,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const { sessionId: taskId } = first;
    const of = { taskId, contextId: contextOf(taskId), metadata: undefined };
    const task = await this.#answered(() => this.#task(first, historyLength));
    yield { payload: { $case: "task", value: task } };
    let shown = stand(first);
    if (isDone(statusOf(first))) return;
    let session = first;
    let entries = first.entryCount;
    try {
      for await (const { event } of this.#watch(first)) {
        if (event.case === "record" && isEntry(event.value)) {
          for (const message of await this.#said(taskId, entries, ++entries))
            yield {
              payload: { $case: "statusUpdate", value: { ...of, status: { ...statusOf(session), message } } },
            };
        }
        if (event.case !== "session") continue;
        session = event.value;
        if (stand(session) === shown) continue;
        shown = stand(session);
        const status = statusOf(session);
        for (const artifact of taskOf(session).artifacts)
          yield {
            payload: { $case: "artifactUpdate", value: { ...of, artifact, append: false, lastChunk: true } },
          };
        yield { payload: { $case: "statusUpdate", value: { ...of, status } } };
        if (isDone(status)) return;
      }
    } catch (thrown) {
      throw this.#toA2a(thrown);
    }
  }

  /** The session as it is, and its records and states from there on. */
  async *#watch({ sessionId, nextSeq }: Session, late?: AbortSignal) {
    const { sessions, signal } = this.#options;
    const over = new AbortController();
    const signals = [signal, over.signal, ...(late === undefined ? [] : [late])];
    try {
      yield* sessions.watch(
        { sessionId, afterSeq: nextSeq - 1n },
        { signal: AbortSignal.any(signals), timeoutMs: 0 },
      );
    } finally {
      over.abort();
    }
  }

  /** The session once its status is as wanted, or after a time. */
  async #settled(
    id: string,
    waitMs: number,
    isDone: (status: ReturnType<typeof statusOf>) => boolean,
  ): Promise<Session> {
    const first = await this.#get(id);
    if (isDone(statusOf(first))) return first;
    const late = AbortSignal.timeout(waitMs);
    try {
      for await (const { event } of this.#watch(first, late))
        if (event.case === "session" && isDone(statusOf(event.value))) return event.value;
    } catch (thrown) {
      if (!late.aborted) throw thrown;
    }
    return this.#get(id);
  }

  async #task(session: Session, historyLength = HISTORY): Promise<Task> {
    const { sessionId, entryCount } = session;
    const wanted = Math.min(historyLength, HISTORY_MAX);
    const said =
      wanted === 0 ? [] : await this.#said(sessionId, Math.max(0, entryCount - ENTRIES_MAX), entryCount);
    return taskOf(session, said.slice(-wanted));
  }

  /** The messages of people and of the agent among the entries from one to before another. */
  async #said(sessionId: string, from: number, to: number): Promise<readonly Message[]> {
    if (to <= from) return [];
    const range = { sessionId, from: BigInt(from), limit: to - from };
    const { entries } = await this.#options.sessions.listEntries(range);
    return entries.map((entry) => messageOf(sessionId, entry)).filter((message) => message !== undefined);
  }

  async #offered() {
    const { agents } = await this.#options.runners.listAgents({});
    return agents.find(({ name }) => name === this.#options.agent);
  }

  /** @throws NotFoundError also for a session of another agent, which is no task here. */
  async #get(sessionId: string): Promise<Session> {
    const session = await this.#options.sessions.get({ sessionId });
    if (session.agent === this.#options.agent) return session;
    throw new NotFoundError("session_not_found", `there is no session ${sessionId.slice(0, 100)}`);
  }

  async #find(sessionId: string): Promise<Session | undefined> {
    return this.#get(sessionId).catch((thrown: unknown) => {
      if (HoldfastError.is(thrown) && thrown.code === "session_not_found") return undefined;
      throw thrown;
    });
  }

  async #answered<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (thrown) {
      throw this.#toA2a(thrown);
    }
  }

  #toA2a(thrown: unknown): Error {
    if (isA2aError(thrown)) return thrown;
    const error = toHoldfastError(thrown);
    this.#options.failed(error);
    return toA2aError(error, this.#options.requestId);
  }
}

function isA2aError(thrown: unknown): thrown is A2AError {
  return thrown instanceof Error && "toErrorInfo" in thrown;
}

/** The parts of a state by which a change is told. */
function stand(session: Session): string {
  const { state, message } = statusOf(session);
  return JSON.stringify([state, message?.messageId, message?.parts]);
}

const decoder = new TextDecoder();

function isEntry(record: Uint8Array): boolean {
  return (JSON.parse(decoder.decode(record)) as { readonly type?: unknown }).type === "append_entry";
}

function refusePush(): Promise<never> {
  return Promise.reject(noPush());
}

function noPush(): Error {
  return new PushNotificationNotSupportedError(
    "this agent sends no push notifications; subscribe to the task, or get it from time to time",
  );
}

function noAgent(agent: string): HoldfastError {
  return new NotFoundError(
    "agent_not_found",
    `no runner offers the agent "${agent.slice(0, 200)}" to this caller`,
    {
      fix: "start a runner that offers it; `holdfast runners` shows what runners offer",
    },
  );
}

function otherMessage(messageId: string): UsageError {
  return new UsageError("another message was sent under this id", {
    at: "message.messageId",
    got: messageId.slice(0, 100),
    expected: "an id of its own for each message; a message that is sent again is as it was",
  });
}

function otherContext(taskId: string, contextId: string): UsageError {
  return new UsageError("the task is in another context", {
    at: "message.contextId",
    got: contextId.slice(0, 100),
    expected: `${contextOf(taskId)}, or none`,
  });
}
