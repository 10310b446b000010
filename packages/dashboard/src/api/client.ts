// `call`, `signIn`, `watchSession`, `watchChanges`: requests to the server that served the page.
//
//   - Every request has the header that makes the cookie count: the key with which the server reads it. The
//     page never sees its token.
//   - A stream is open only while the page is visible. A browser has six connections to a server over
//     HTTP/1.1, and streams of hidden pages would keep them from the visible one.

import { removeDrafts } from "./drafts.ts";
import type { Session } from "./types.ts";

/** Anything that was thrown as an error. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error("something that is no error was thrown");
}

const KEY = "holdfast-page-key";
const headers = () => ({ "X-Holdfast-Page": localStorage.getItem(KEY) ?? "" });
const RETRY_MS = 1_000;

/** An answer that is an error. `message` says what happened. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly fix: string | undefined;
  /** The mistakes in single fields of the request, by their JSON pointers. */
  readonly fields: readonly { readonly pointer: string; readonly message: string }[];

  constructor(
    status: number,
    problem: {
      readonly detail?: string;
      readonly code?: string;
      readonly fix?: string;
      readonly errors?: readonly { readonly pointer: string; readonly message: string }[];
    },
  ) {
    super(problem.detail ?? `the server answered ${status}`);
    this.status = status;
    this.code = problem.code ?? "";
    this.fix = problem.fix;
    this.fields = problem.errors ?? [];
  }
}

/** No answer came, or one without its end: nobody knows whether the server has done what was asked. */
export class NoAnswerError extends Error {
  /** Whether the request was to read only. The page repeats it then, and a person repeats all others. */
  readonly isRead: boolean;

  constructor(cause: unknown, isRead = true, message = "The server does not answer") {
    super(message, { cause });
    this.isRead = isRead;
  }
}

/** A request, and its answer as text. @throws NoAnswerError */
async function ask(
  path: string,
  init: RequestInit,
): Promise<{ readonly response: Response; readonly text: string }> {
  try {
    const response = await fetch(path, { credentials: "same-origin", ...init });
    return { response, text: await response.text() };
  } catch (thrown) {
    throw new NoAnswerError(thrown, init.method === "GET");
  }
}

const signedOut = new Set<() => void>();

/** Calls a listener whenever a request was refused for want of a valid token. */
export function onSignedOut(listener: () => void): () => void {
  signedOut.add(listener);
  return () => signedOut.delete(listener);
}

/** @throws ApiError, or NoAnswerError when the server cannot be reached. */
export async function call<T>(
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
  path: string,
  body?: unknown,
): Promise<T> {
  const { response, text } = await ask(path, {
    method,
    headers: body === undefined ? headers() : { ...headers(), "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw refused(response.status, text);
  if (text === "" && method !== "GET") return undefined as T;
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    throw new NoAnswerError(error, method === "GET", "The server's answer was cut off");
  }
}

/**
 * @param body the token, or a code that stands for one. @throws ApiError, or NoAnswerError when the
 *   server cannot be reached.
 */
export async function signIn(body: { readonly token: string } | { readonly code: string }): Promise<void> {
  const { key } = await call<{ readonly key: string }>("POST", "/ui/sign-in", body);
  localStorage.setItem(KEY, key);
}

/** @throws ApiError, or NoAnswerError when the server cannot be reached. */
export async function signOut(): Promise<void> {
  await call("POST", "/ui/sign-out");
  removeDrafts();
  localStorage.removeItem(KEY);
}

function refused(status: number, text: string): ApiError {
  let problem = {};
  try {
    problem = JSON.parse(text) as object;
  } catch {
    // Not an answer of ours, such as one of a proxy.
  }
  if (status === 401) for (const listener of signedOut) listener();
  return new ApiError(status, problem);
}

export interface SessionEvent {
  readonly record?: unknown;
  readonly session?: unknown;
  /** A text that a model is writing: the whole of it so far. */
  readonly draft?: { readonly task: number; readonly text: string };
}

export interface Stream<T> {
  readonly onEvent: (event: T) => void;
  /** Called with the error when the stream was cut, and with nothing when it is back. */
  readonly onBreak: (error: Error | undefined) => void;
  readonly signal: AbortSignal;
}

/**
 * The events of a session, from the beginning of its journal until it has ended. A stream that breaks
 * continues after the last event. Ends without an error when there is nothing more, or on abort.
 *
 * @throws ApiError when the server refuses the stream.
 */
export function watchSession(sessionId: string, stream: Stream<SessionEvent>): Promise<void> {
  return readStream(`/v1/sessions/${encodeURIComponent(sessionId)}/watch?drafts=true`, stream);
}

/** Changes on the server. */
export interface Change {
  readonly sessions: readonly Session[];
  /** Whether there may be other changes. */
  readonly hasOthers: boolean;
}

/**
 * One event at once and after each reconnection, and one whenever something has changed (`GET /v1/changes`).
 * Ends on abort.
 *
 * @throws ApiError when the server refuses the stream.
 */
export function watchChanges(stream: Stream<Change>): Promise<void> {
  const onEvent = ({ sessions = [], hasOthers = true }: Partial<Change>): void =>
    stream.onEvent({ sessions, hasOthers });
  return readStream<Partial<Change>>("/v1/changes", { ...stream, onEvent });
}

async function readStream<T>(path: string, { onEvent, onBreak, signal }: Stream<T>): Promise<void> {
  let lastId: string | undefined;
  while (!signal.aborted) {
    await untilVisible(signal);
    const hidden = new AbortController();
    const onHidden = (): void => {
      if (document.hidden) hidden.abort();
    };
    document.addEventListener("visibilitychange", onHidden);
    try {
      const response = await fetch(path, {
        credentials: "same-origin",
        headers: { ...headers(), ...(lastId === undefined ? {} : { "Last-Event-ID": lastId }) },
        signal: AbortSignal.any([signal, hidden.signal]),
      });
      if (response.status === 204) return;
      if (!response.ok) throw refused(response.status, await response.text());
      onBreak(undefined);
      for await (const { id, name, data } of readEvents(response.body!)) {
        if (name === "error")
          throw refused((data as { readonly status?: number }).status ?? 500, JSON.stringify(data));
        onEvent(data as T);
        lastId = id ?? lastId;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (hidden.signal.aborted) continue;
      if (error instanceof ApiError && error.status < 500) throw error;
      onBreak(new NoAnswerError(error));
    } finally {
      document.removeEventListener("visibilitychange", onHidden);
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

async function untilVisible(signal: AbortSignal): Promise<void> {
  while (document.hidden && !signal.aborted) {
    const { promise, resolve } = Promise.withResolvers<void>();
    document.addEventListener("visibilitychange", () => resolve(), { once: true });
    signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
  }
}

interface ReadEvent {
  readonly id: string | undefined;
  readonly name: string | undefined;
  readonly data: unknown;
}

/** Server-sent events of our server, whose lines end with a line feed. */
async function* readEvents(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<ReadEvent> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let pieces: string[] = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    if (!value.includes("\n")) {
      pieces.push(value);
      continue;
    }
    const parts = (pieces.join("") + value).split("\n\n");
    pieces = [parts.pop() ?? ""];
    for (const part of parts) {
      const event = readEvent(part);
      if (event !== undefined) yield event;
    }
  }
}

function readEvent(part: string): ReadEvent | undefined {
  const lines = part.split("\n");
  const field = (name: string): string[] =>
    lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));
  const data = field("data");
  if (data.length === 0) return undefined;
  return { id: field("id")[0], name: field("event")[0], data: JSON.parse(data.join("\n")) };
}
