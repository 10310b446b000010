// The client of a coordinator (`createClient`): it starts sessions there, and a handle gives access to each.
//
//   client-1. A request that is safe to repeat is sent again for `retryMs` when the connection is lost.
//       Such requests are starts, signals, answers, cancels and reads. A start has an idempotency key, a
//       signal a dedup key, so no request takes effect twice. A time-out for a result counts also while the
//       connection is lost.
//   - Values are decoded from the session's JSON; their types are those that the caller or the agent
//     declares.
//   - Events have numbers: after a lost connection they continue after the last delivered one.
//   client-4. A caller that aborts is answered at once, and its request is not repeated: a result rejects
//       with the signal's reason, and events end. Calls that are open when the client is closed reject, and
//       so do later calls.
//
// It knows one way to talk (the contract, over `CoordinatorCalls`) and nothing of how sessions are run.

import { randomUUID } from "node:crypto";
import {
  checkBudget,
  ConflictError,
  decodeJson,
  defined,
  encodeJson,
  errorFrom,
  HoldfastError,
  type InputArguments,
  type Budget,
  type GivenEnvironment,
  type JournalRecord,
  positionId,
  type QuotaWait,
  type RecordedError,
} from "@holdfast/core";
import { budgetMessage, environmentMessage, type Session as SessionMessage } from "@holdfast/proto";
import type { Agent } from "@holdfast/runtime";
import { CoordinatorConnection } from "@holdfast/storage/remote";
import { checkClientOptions, checkOptions, checkText, checkTitle, nameOfAgent } from "./client-arguments.ts";
import { CoordinatorCalls } from "./coordinator-calls.ts";
import { onlyQuestionName } from "./only-question.ts";

/** Options of `createClient`. */
export interface ClientOptions {
  /**
   * The URL of the coordinator, such as `http://127.0.0.1:8765`. For several
   * coordinators that share a storage, a list of their URLs, in the order in which they are tried.
   */
  readonly url: string | readonly string[];
  /** The token of a user, or of the admin. */
  readonly token: string;
  /** Send the token over plain HTTP to another machine, too. */
  readonly insecure?: boolean;
  /** How long a lost connection is tried again: 60 s by default. */
  readonly retryMs?: number;
}

/** Options of the start of a session at a coordinator. */
export interface RemoteStartOptions {
  /** Your own id: starting the same id again finds the session, if it is the same that is asked for. */
  readonly sessionId?: string;
  /** One line about the session for people, made of the input by default. */
  readonly title?: string;
  /** Asked again under it, at any time and from anywhere, it is the same session. */
  readonly idempotencyKey?: string;
  /** A version of the agent, or a tag of it in the catalogue; the current one by default. */
  readonly version?: string;
  /** Labels that a runner must have, with these values. */
  readonly demands?: Readonly<Record<string, string>>;
  /** The higher the sooner. */
  readonly priority?: number;
  /** Limits of the session and of all sessions below it. */
  readonly budget?: Budget;
  /** The session is cancelled this long after it was started. */
  readonly timeoutMs?: number;
  /** How much of the session survives the process of its runner: everything by default. */
  readonly persistence?: "full" | "minimal";
  /** The session that is notified of its end, as of a child's. */
  readonly callback?: { readonly parentSessionId: string };
  /** Environments and variables for the commands and servers of an agent file. */
  readonly environment?: GivenEnvironment;
  /** W3C trace context. */
  readonly traceparent?: string;
}

/** How a session stands, as the coordinator tells it. */
export interface RemoteStatus {
  readonly sessionId: string;
  readonly agent: string;
  /** One line about the session for people. */
  readonly title?: string;
  /** The status of the session, such as `working`. */
  readonly status: string;
  /** Why the session is paused. */
  readonly pauseReason?: string;
  /**
   * When a paused session continues without a person: a window of its budget has rolled on, or its usage limit
   * is reset. Epoch milliseconds.
   */
  readonly resumesAt?: number;
  /** The usage limit that it is paused for. */
  readonly quota?: QuotaWait;
  /** The demand of the session that no runner meets. */
  readonly blocked?: string;
  /** The runner that holds it. */
  readonly runnerId?: string;
  /** Where it lives now, or is on its way to. */
  readonly movedTo?: string;
  /** Questions it asks that nobody has answered, oldest first. */
  readonly questions: readonly { readonly name: string; readonly prompt: string }[];
}

/**
 * An event of a session: a record of its journal, or its status when that has changed. A draft is a text that a
 * model is writing in a task: the whole text so far, or its end where it is long. Drafts are not recorded, and
 * some are left out.
 */
export type RemoteEvent =
  | { readonly type: "record"; readonly seq: number; readonly record: JournalRecord }
  | { readonly type: "status"; readonly status: RemoteStatus }
  | { readonly type: "draft"; readonly taskId: string; readonly text: string };

/** A session that a coordinator holds. */
export interface RemoteSession<Output = unknown> {
  /** The id, which the coordinator gave it or its caller chose. */
  readonly sessionId: string;
  /** How the session stands now. */
  status(): Promise<RemoteStatus>;
  /** Its output. Waits for it, at most `timeoutMs` where that is given. @throws HoldfastError when it ended otherwise. */
  result(options?: { readonly timeoutMs?: number; readonly signal?: AbortSignal }): Promise<Output>;
  /** Send the session a signal. A second one with the same `dedupKey` is not stored. */
  signal(
    name: string,
    payload?: unknown,
    options?: { readonly dedupKey?: string },
  ): Promise<"stored" | "duplicate">;
  /**
   * Answer a question: the only open one, or the one of this name. @throws UsageError when several are open
   * and none is named.
   */
  answer(answer: unknown, options?: { readonly question?: string }): Promise<void>;
  /** Ask the session to end within `graceMs`, or with `hard` end it. */
  cancel(options?: {
    readonly hard?: boolean;
    readonly graceMs?: number;
    readonly reason?: string;
  }): Promise<RemoteStatus>;
  /** Replace its title. An empty text makes the title of the input again. */
  setTitle(title: string): Promise<RemoteStatus>;
  /**
   * Everything behind a position (from the beginning by default), then what is added, until it has ended. Drafts
   * are among it only with `drafts`.
   */
  events(options?: {
    readonly afterSeq?: number;
    readonly drafts?: boolean;
    readonly signal?: AbortSignal;
  }): AsyncGenerator<RemoteEvent>;
}

/** The client of a coordinator. */
export interface HoldfastClient {
  readonly sessions: {
    /** Start a session of an agent, which may be given by its name. */
    start<Input, Output, Given = Input>(
      agent: Agent<Input, Output, Given> | string,
      ...[input, options]: InputArguments<Given, RemoteStartOptions>
    ): Promise<RemoteSession<Output>>;
    /** The handle of an existing session. This call sends no request. */
    get<Output = unknown>(sessionId: string): RemoteSession<Output>;
  };
  readonly connection: CoordinatorConnection;
  close(): void;
}

/** The longest wait of one request for a result. */
const LONG_POLL_MS = 25_000;
/** The additional time for its answer. */
const ANSWER_MS = 5_000;

/**
 * The client of a coordinator, for programs.
 *
 * @throws UsageError for options that cannot be right; every method refuses its own so.
 */
export function createClient(settings: ClientOptions): HoldfastClient {
  checkClientOptions(settings);
  const { url, token, insecure, retryMs } = settings;
  const connection = new CoordinatorConnection({
    url,
    token,
    ...defined({ insecure }),
  });
  const calls = new CoordinatorCalls(connection, retryMs);
  return {
    connection,
    sessions: {
      async start<Input, Output, Given = Input>(
        agent: Agent<Input, Output, Given> | string,
        ...[input, options = {}]: InputArguments<Given, RemoteStartOptions>
      ): Promise<RemoteSession<Output>> {
        checkOptions("sessions.start", options);
        const request = startRequest(agent as Agent | string, input, options);
        const { sessionId } = await calls.ask(() => calls.service.start(request));
        return sessionOver<Output>(calls, sessionId);
      },
      get(sessionId) {
        checkText("sessions.get", "sessionId", sessionId);
        return sessionOver(calls, sessionId);
      },
    },
    close() {
      calls.close(
        new HoldfastError("unavailable", "the client was closed", {
          at: connection.url,
          fix: "make another",
        }),
      );
    },
  };
}

function sessionOver<Output>(calls: CoordinatorCalls, sessionId: string): RemoteSession<Output> {
  const { service } = calls;
  const status = async (): Promise<RemoteStatus> =>
    statusOf(await calls.ask(() => service.get({ sessionId })));
  return {
    sessionId,
    status,
    async result(options = {}) {
      checkOptions("result", options);
      return (await resultOf(calls, sessionId, options)) as Output;
    },
    async signal(name, payload, options = {}) {
      checkText("signal", "name", name);
      checkOptions("signal", options);
      const { dedupKey = randomUUID() } = options;
      const bytes = bytesOf(payload, `payload of signal "${name}"`);
      const stored = await calls.ask(() =>
        service.signal({ sessionId, name, dedupKey, ...defined({ payload: bytes }) }),
      );
      return stored.status === "duplicate" ? "duplicate" : "stored";
    },
    async answer(answer, options = {}) {
      checkOptions("answer", options);
      const { question } = options;
      const bytes = bytesOf(answer, "the answer") ?? encoder.encode("null");
      // The question that is meant is named before it is sent: sent again it must not answer the next one.
      const name = question ?? onlyQuestionName(await status());
      await calls.ask(() => service.answer({ sessionId, answer: bytes, ...defined({ question: name }) }));
    },
    async cancel(options = {}) {
      checkOptions("cancel", options);
      const { hard = false, graceMs, reason } = options;
      const message = await calls.ask(() =>
        service.cancel({
          sessionId,
          mode: hard ? "hard" : "graceful",
          ...(graceMs === undefined ? {} : { graceMs: BigInt(graceMs) }),
          ...defined({ reason }),
        }),
      );
      return statusOf(message);
    },
    async setTitle(title) {
      checkTitle(title);
      return statusOf(await calls.ask(() => service.setTitle({ sessionId, title })));
    },
    events(options = {}) {
      checkOptions("events", options);
      const { afterSeq = -1, drafts = false, signal } = options;
      return watch(calls, { sessionId, afterSeq, drafts, signal });
    },
  };
}

/** Waits for the end of a session, at most `timeoutMs`. @returns its output. */
async function resultOf(
  calls: CoordinatorCalls,
  sessionId: string,
  { timeoutMs = Infinity, signal }: { readonly timeoutMs?: number; readonly signal?: AbortSignal },
): Promise<unknown> {
  const until = performance.now() + timeoutMs;
  const leftMs = (): number => Math.max(0, until - performance.now());
  for (;;) {
    const found = await calls.ask(
      () => {
        const waitMs = Math.ceil(Math.min(LONG_POLL_MS, leftMs()));
        const call = { timeoutMs: waitMs + ANSWER_MS, ...defined({ signal }) };
        return calls.service.getResult({ sessionId, waitMs }, call);
      },
      signal,
      leftMs(),
    );
    if (found.ended) return outputOf(sessionId, found);
    if (performance.now() >= until)
      throw new HoldfastError(
        "request_timeout",
        `session ${sessionId} has not ended within ${timeoutMs} ms`,
        {
          got: found.status,
          fix: "call result() again: the session is still running",
        },
      );
  }
}

function startRequest(agent: Agent | string, input: unknown, options: RemoteStartOptions) {
  const name = nameOfAgent(agent);
  const { sessionId, title, demands, priority, budget, timeoutMs, persistence, callback } = options;
  const { environment, traceparent } = options;
  const version = options.version ?? (typeof agent === "string" ? undefined : agent.version);
  const bytes = bytesOf(input, `input of agent "${name}"`);
  // client-1. The id or the key makes a repeated request start the same session.
  const idempotencyKey = options.idempotencyKey ?? (sessionId === undefined ? randomUUID() : undefined);
  return {
    agent: name,
    ...defined({ agentVersion: version, input: bytes, sessionId, idempotencyKey, title }),
    ...(demands === undefined ? {} : { demands: { ...demands } }),
    ...defined({ priority }),
    ...(budget === undefined ? {} : { budget: budgetMessage(checkBudget(budget)) }),
    ...(timeoutMs === undefined ? {} : { timeoutMs: BigInt(timeoutMs) }),
    ...defined({ persistence }),
    ...(environment === undefined ? {} : { environment: environmentMessage(environment) }),
    ...(callback === undefined
      ? {}
      : { invocation: "async_callback", parentSessionId: callback.parentSessionId }),
    ...defined({ traceparent }),
  };
}

interface Watching {
  readonly sessionId: string;
  readonly afterSeq: number;
  readonly drafts: boolean;
  readonly signal: AbortSignal | undefined;
}

async function* watch(
  calls: CoordinatorCalls,
  { sessionId, afterSeq, drafts, signal }: Watching,
): AsyncGenerator<RemoteEvent> {
  let seen = afterSeq;
  const retry = calls.retry(signal);
  for (;;) {
    if (signal?.aborted === true) return; // client-4.
    retry.signal.throwIfAborted();
    const over = new AbortController();
    try {
      const stream = calls.service.watch(
        { sessionId, afterSeq: BigInt(seen), drafts },
        { timeoutMs: 0, signal: AbortSignal.any([retry.signal, over.signal]) },
      );
      for await (const { event } of stream) {
        retry.reset();
        if (event.case === "session") yield { type: "status", status: statusOf(event.value) };
        if (event.case === "draft") {
          const { task, text } = event.value;
          yield { type: "draft", taskId: positionId(sessionId, Number(task)), text };
        }
        if (event.case !== "record") continue;
        const record = JSON.parse(decoder.decode(event.value)) as JournalRecord;
        seen = record.seq;
        yield { type: "record", seq: record.seq, record };
      }
      return;
    } catch (thrown) {
      await retry.after(await calls.connection.explained(thrown));
    } finally {
      over.abort(); // A caller that stops reading closes the stream.
    }
  }
}

interface Result {
  readonly status: string;
  readonly output?: Uint8Array | undefined;
  readonly error?: SessionMessage["error"];
}

function outputOf(sessionId: string, { status, output, error }: Result): unknown {
  if (status === "completed") return output === undefined ? undefined : decodeJson(decoder.decode(output));
  if (status === "cancelled")
    throw new ConflictError("session_cancelled", `session ${sessionId} was cancelled`);
  const recorded = error === undefined ? undefined : recordedOf(error);
  const why = recorded?.message ?? "no further reason is known";
  const details = recorded === undefined ? {} : { cause: errorFrom(recorded) };
  throw new HoldfastError("session_failed", `session ${sessionId} failed: ${why}`, details);
}

function recordedOf(error: NonNullable<SessionMessage["error"]>): RecordedError {
  const { name, message, code, at, got, expected, fix, cause, data, errors } = error;
  const further = data === undefined ? undefined : (JSON.parse(data) as unknown);
  const details = Object.entries({ code, at, got, expected, fix, data: further });
  return {
    name,
    message,
    ...Object.fromEntries(details.filter(([, value]) => value !== undefined)),
    ...(errors.length === 0 ? {} : { errors: errors.map(recordedOf) }),
    ...(cause === undefined ? {} : { cause: recordedOf(cause) }),
  };
}

function statusOf({
  sessionId,
  agent,
  title,
  status,
  pauseReason,
  resumesAt,
  quota,
  blocked,
  runnerId,
  movedTo,
  waits,
}: SessionMessage): RemoteStatus {
  return {
    sessionId,
    agent,
    ...defined({ title }),
    status,
    ...defined({ pauseReason }),
    ...(resumesAt === undefined ? {} : { resumesAt: Number(resumesAt) }),
    ...(quota === undefined ? {} : { quota: quotaOf(quota) }),
    ...defined({ blocked, runnerId, movedTo }),
    questions: waits.flatMap(({ type, name = "", prompt = "", answered = false }) =>
      type === "input" && !answered ? [{ name, prompt }] : [],
    ),
  };
}

function quotaOf({ pool, resetsAt, resumesAt }: NonNullable<SessionMessage["quota"]>): QuotaWait {
  return {
    pool,
    ...(resetsAt === undefined ? {} : { resetsAt: Number(resetsAt) }),
    ...(resumesAt === undefined ? {} : { resumesAt: Number(resumesAt) }),
  };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function bytesOf(value: unknown, what: string): Uint8Array<ArrayBuffer> | undefined {
  const text = encodeJson(value, what);
  return text === undefined ? undefined : encoder.encode(text);
}
