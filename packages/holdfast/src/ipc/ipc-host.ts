// `IpcHost`: the runner's side of a host. It takes the host's lines and answers them, over whatever place is
// open.
//
//   - Every line gets an answer, in the order in which the answers are known. Requests that name one session
//     are performed in the order in which they came.
//   - A request takes effect once, because its id is accepted once. A request that was lost with the owner of
//     the database is repeated under the ids that it was given here.
//   - A host that sends more than the runner can answer is read no further, and loses nothing.
//   - A host says first which protocol it speaks.

import { randomUUID } from "node:crypto";
import { type Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import {
  ConflictError,
  defined,
  findPayloadProblem,
  HoldfastError,
  isEnded,
  jsonSyntaxProblem,
  MIB,
  mintId,
  type Session,
  type TraceEvent,
  UsageError,
} from "@holdfast/core";
import { randomU32 } from "@holdfast/terminal/frame/random";
import { questionFor } from "./ipc-answer.ts";
import { sessionJson } from "@holdfast/terminal/view/session-json";
import { ipcError } from "./ipc-error.ts";
import { ipcLines, type IpcLine } from "./ipc-lines.ts";
import {
  checkRequest,
  IPC_PROTOCOL,
  REQUEST_TYPES,
  requestId,
  type IpcMessage,
  type IpcRequest,
  type RequestOf,
} from "./ipc-messages.ts";
import type { IpcOutput } from "./ipc-output.ts";
import type { IpcPlace, IpcPlaceHost } from "./ipc-place.ts";
import { IpcSubscription } from "./ipc-subscription.ts";

const IPC_LIMITS = { lineBytes: 48 * MIB, openRequests: 256, subscriptions: 256 } as const;
/** The ids that are known as used. An older id is unlikely to come again. */
const IDS_KEPT = 10_000;
const SESSIONS_DEFAULT = 50;
/** How often a request is repeated when the owner of the database ends before it answers. */
const ATTEMPTS_MAX = 5;
/** How long the answers of open requests may take at the end. */
const ANSWERS_MS = 5_000;

type WorkRequest = Exclude<IpcRequest, { type: "hello" }>;

export interface IpcHostOptions {
  readonly output: IpcOutput;
  /** The version of Holdfast. */
  readonly version: string;
  readonly agents: () => readonly { readonly name: string; readonly version: string }[];
  /** The host asks for the end. */
  readonly stop: () => void;
  /** A line for the log. */
  readonly note: (line: string) => void;
}

export class IpcHost implements IpcPlaceHost {
  readonly tracer = { trace: (event: TraceEvent) => this.#trace(event) };
  readonly #options: IpcHostOptions;
  readonly #used = new Set<string>();
  /** The last request of each session that has open ones. */
  readonly #lines = new Map<string, Promise<void>>();
  readonly #subscriptions = new Map<string, IpcSubscription>();
  #place = Promise.withResolvers<IpcPlace>();
  #current: IpcPlace | undefined;
  #open = 0;
  #fewer = Promise.withResolvers<void>();
  #protocol: number | undefined;
  #isStopping = false;

  constructor(options: IpcHostOptions) {
    this.#options = options;
    void options.output.send({
      type: "hello",
      protocols: [IPC_PROTOCOL],
      holdfast: options.version,
      requests: [...REQUEST_TYPES],
      limits: IPC_LIMITS,
    });
  }

  /** Reads the host's lines until there are no more. Rejects only when the stream does. */
  async read(stream: Readable): Promise<void> {
    for await (const line of ipcLines(stream, IPC_LIMITS.lineBytes)) {
      // A host that sends more than can be answered is read no further.
      while (this.#open >= IPC_LIMITS.openRequests) await this.#fewer.promise;
      await this.#take(line);
    }
  }

  // ---- the place -------------------------------------------------------------------------------------------------------

  opened(place: IpcPlace, resumed: readonly string[]): void {
    this.#current = place;
    this.#place.resolve(place);
    place.closed.addEventListener("abort", () => {
      this.#current = undefined;
      this.#place = Promise.withResolvers();
    });
    void this.#options.output.send({
      type: "ready",
      place: { type: place.type, at: place.at },
      agents: [...this.#options.agents()],
      resumed: [...resumed],
    });
  }

  async ending(): Promise<void> {
    this.#isStopping = true;
    // A host that does not read its answers delays the end no longer than this.
    if (this.#current !== undefined)
      await Promise.race([Promise.all(this.#lines.values()), delay(ANSWERS_MS, undefined, { ref: false })]);
    for (const subscription of this.#subscriptions.values()) subscription.stop();
  }

  warn(message: string): void {
    this.#options.output.offer({ type: "warning", message });
  }

  // ---- requests --------------------------------------------------------------------------------------------------------

  /** Resolves when the line is answered or its request is under way. */
  async #take(line: IpcLine): Promise<void> {
    let id: string | undefined;
    try {
      const value = readLine(line);
      id = requestId(value);
      refuseChanged(line);
      const request = checkRequest(value);
      if (this.#used.has(request.id)) {
        id = undefined; // The answer to the first request of this id is another message.
        throw new UsageError(`the id ${JSON.stringify(request.id)} was used by an earlier request`, {
          at: "/id",
          expected: "an id that was not used before",
          fix: "count the requests",
        });
      }
      this.#remember(request.id);
      this.#refuseEarly(request);
      // At once: the requests after it may be in the same piece of the stream.
      if (request.type === "hello")
        await this.#send({ type: "result", id: request.id, result: this.#hello(request) });
      else this.#begin(request);
    } catch (error) {
      await this.#send({
        type: "error",
        ...defined({ id }),
        line: line.number,
        error: ipcError(error),
      });
    }
  }

  #remember(id: string): void {
    this.#used.add(id);
    if (this.#used.size <= IDS_KEPT) return;
    const [oldest] = this.#used;
    this.#used.delete(oldest!);
  }

  #refuseEarly({ type }: IpcRequest): void {
    if (this.#protocol === undefined && type !== "hello")
      throw new UsageError(`the request "${type}" came before hello`, {
        expected: `{"type": "hello", "id": "1", "protocol": ${IPC_PROTOCOL}}`,
        fix: "send hello first",
      });
    if (this.#isStopping)
      throw new HoldfastError("unavailable", "the runner is ending", { fix: "start another runner" });
  }

  #begin(request: WorkRequest): void {
    this.#open++;
    const line = "sessionId" in request && request.sessionId !== undefined ? request.sessionId : randomUUID();
    const before = this.#lines.get(line) ?? Promise.resolve();
    const done = before.then(() => this.#answer(request));
    this.#lines.set(line, done);
    void done.then(() => {
      if (this.#lines.get(line) === done) this.#lines.delete(line);
      this.#open--;
      this.#fewer.resolve();
      this.#fewer = Promise.withResolvers();
    });
  }

  /** Never rejects. */
  async #answer(request: WorkRequest): Promise<void> {
    const { id } = request;
    try {
      const result = await this.#perform(request);
      await this.#send({ type: "result", id, result: result as Record<string, unknown> });
      if (request.type === "subscribe") this.#subscribe(request);
    } catch (error) {
      await this.#send({ type: "error", id, error: ipcError(error) });
    }
  }

  #perform(request: WorkRequest): Promise<object> | object {
    switch (request.type) {
      case "status":
        return this.#status();
      case "stop":
        this.#options.stop();
        return {};
      case "unsubscribe":
        return this.#unsubscribe(request.sessionId);
      case "start": {
        const sessionId = request.sessionId ?? mintId("ses", Date.now(), randomU32);
        return this.#there(async (place) => {
          await place.start(request, sessionId);
          return { sessionId };
        });
      }
      case "session":
        return this.#there(async (place) => ({
          session: sessionJson(await found(place, request.sessionId)),
        }));
      case "sessions":
        return this.#there((place) => list(place, request));
      case "subscribe":
        return this.#there((place) => this.#checkSubscribe(place, request.sessionId));
      case "signal":
      case "answer":
        return this.#deliver(request);
      case "cancel": {
        const { sessionId, hard, graceMs, reason } = request;
        const options = defined({ hard, graceMs, reason });
        return this.#there(async (place) => ({ ...(await place.requests.cancel(sessionId, options)) }));
      }
      case "pause":
      case "unpause": {
        const { type, sessionId } = request;
        return this.#there(async ({ requests }) => ({ status: await requests[type](sessionId) }));
      }
    }
  }

  /** A signal, or an answer, which is a signal as well: sent again under its id it is stored once. */
  #deliver(request: RequestOf<"signal"> | RequestOf<"answer">): Promise<object> {
    const { sessionId } = request;
    const signalId = mintId("sig", Date.now(), randomU32);
    return this.#there(async ({ requests, reader }) => {
      const { dedupKey } = { dedupKey: undefined, ...request };
      const receipt =
        request.type === "signal"
          ? await requests.signal(sessionId, request.name, request.payload, {
              signalId,
              ...defined({ dedupKey }),
            })
          : await requests.answer(sessionId, request.answer, {
              signalId,
              ...(await questionFor(request, reader)),
            });
      if (receipt.status !== "refused") return receipt;
      const session = await reader.session(sessionId);
      const isOver = session !== undefined && isEnded(session.status);
      if (request.type === "signal" || isOver) throw new ConflictError("session_ended", receipt.reason);
      throw new HoldfastError("question_not_found", receipt.reason, {
        fix: "ask for the session: its `waits` of type input are the open questions",
      });
    });
  }

  /** Performs a request at the place that is open, again at the next one if the place is lost before it answers. */
  async #there<T extends object>(perform: (place: IpcPlace) => Promise<T>): Promise<T> {
    for (let n = 1; ; n++) {
      const place = await this.#place.promise;
      try {
        return await perform(place);
      } catch (error) {
        const isLost =
          HoldfastError.is(error) && (error.code === "locked" || error.code === "storage_unavailable");
        if (!isLost || place.type !== "database" || n === ATTEMPTS_MAX) throw error;
        await delay(LOST_MS);
      }
    }
  }

  #hello({ protocol, host }: RequestOf<"hello">): Record<string, unknown> {
    if (protocol !== IPC_PROTOCOL)
      throw new HoldfastError("unsupported_protocol", `this runner does not speak protocol ${protocol}`, {
        at: "/protocol",
        expected: String(IPC_PROTOCOL),
        fix:
          protocol > IPC_PROTOCOL
            ? "install a newer Holdfast, or say hello with an older protocol"
            : "update the host to this protocol",
      });
    this.#protocol = protocol;
    this.#options.note(`held by ${host ?? "a host without a name"}, protocol ${protocol}`);
    return { protocol };
  }

  #status(): object {
    const place = this.#current;
    const state = this.#isStopping ? "stopping" : place === undefined ? "opening" : "ready";
    return {
      state,
      ...(place === undefined ? {} : { place: { type: place.type, at: place.at }, live: place.live }),
      agents: this.#options.agents(),
      openRequests: this.#open,
      subscriptions: [...this.#subscriptions.keys()],
    };
  }

  // ---- subscriptions ---------------------------------------------------------------------------------------------------

  async #checkSubscribe(place: IpcPlace, sessionId: string): Promise<object> {
    await found(place, sessionId);
    if (this.#subscriptions.has(sessionId))
      throw new ConflictError("conflict", `session ${sessionId} is subscribed already`, {
        fix: "unsubscribe it first, to begin at another position",
      });
    if (this.#subscriptions.size >= IPC_LIMITS.subscriptions)
      throw new HoldfastError("limit_exceeded", `${IPC_LIMITS.subscriptions} sessions are subscribed`, {
        expected: `at most ${IPC_LIMITS.subscriptions}`,
        fix: "unsubscribe those that nobody looks at",
      });
    return { sessionId };
  }

  #subscribe({ sessionId, afterSeq = -1 }: RequestOf<"subscribe">): void {
    if (this.#isStopping) return;
    const subscription = new IpcSubscription({
      sessionId,
      afterSeq,
      place: () => this.#place.promise,
      send: (message) => this.#send(message),
      over: () => {
        if (this.#subscriptions.get(sessionId) === subscription) this.#subscriptions.delete(sessionId);
      },
    });
    this.#subscriptions.set(sessionId, subscription);
  }

  async #unsubscribe(sessionId: string): Promise<object> {
    const subscription = this.#subscriptions.get(sessionId);
    subscription?.stop();
    this.#subscriptions.delete(sessionId);
    if (subscription !== undefined) await this.#send({ type: "unsubscribed", sessionId, reason: "asked" });
    return { sessionId, wasSubscribed: subscription !== undefined };
  }

  // ---- what sessions do
  // ------------------------------------------------------------------------------------------------

  #trace(event: TraceEvent): void {
    const { sessionId } = event;
    if (event.type === "warned") {
      this.#options.output.offer({ type: "warning", sessionId, message: event.message });
      this.#options.note(`${sessionId}: ${event.message}`);
    } else if (event.type === "task_delta" && this.#subscriptions.has(sessionId)) {
      const { taskId, kind, attempt, offset, delta } = event;
      this.#options.output.offer({ type: "delta", sessionId, taskId, kind, attempt, offset, delta });
    }
  }

  #send(message: IpcMessage): Promise<void> {
    return this.#options.output.send(message);
  }
}

/** The time until a lost owner was noticed and the place opened again. */
const LOST_MS = 300;

async function found({ reader }: IpcPlace, sessionId: string): Promise<Session> {
  const session = await reader.session(sessionId);
  if (session !== undefined) return session;
  throw new HoldfastError("session_not_found", `there is no session ${sessionId}`, {
    fix: "ask for `sessions`; ids are whole here and case-sensitive",
  });
}

async function list(
  { reader }: IpcPlace,
  { limit = SESSIONS_DEFAULT, before, status }: RequestOf<"sessions">,
) {
  const sessions = await reader.sessions({
    limit,
    ...defined({ before, status }),
  });
  return { sessions: sessions.map(sessionJson) };
}

/** The value of a line. @throws UsageError that names the line. */
function readLine({ number, text, problem }: IpcLine): unknown {
  const at = `line ${number}`;
  switch (problem) {
    case "too_long":
      throw new HoldfastError("limit_exceeded", "the line is too long, and was skipped", {
        at,
        expected: `at most ${IPC_LIMITS.lineBytes} bytes`,
        fix: "keep large content in a file and pass its path",
      });
    case "not_utf8":
      throw new UsageError("the line is not UTF-8", { code: "not_json", at, expected: "JSON in UTF-8" });
    case "cut_off":
      throw new UsageError("the last line has no end, and was not taken for a request", {
        code: "not_json",
        at,
        expected: "a line break after each request",
      });
    default:
  }
  const json = text ?? "";
  try {
    return JSON.parse(json);
  } catch {
    throw new UsageError(`the line is not JSON: ${jsonSyntaxProblem(json)}`, {
      code: "not_json",
      at,
      expected: "one request as a JSON object on each line",
      fix: "write nothing but requests to standard input of the runner",
    });
  }
}

/** Refuses a number that JSON would change. @throws UsageError that names the line. */
function refuseChanged({ number, text = "" }: IpcLine): void {
  const changed = findPayloadProblem(text, { start: 0, end: text.length });
  if (changed === undefined) return;
  throw new UsageError(`the request ${changed.message}`, {
    code: "not_json",
    at: `line ${number}`,
    expected: "numbers that JSON keeps exactly, and nesting within the limit",
    fix: "send large numbers as strings",
  });
}
