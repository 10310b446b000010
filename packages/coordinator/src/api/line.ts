// `createLines` serves lines: streams of HTTP/2 over which our own processes make unary calls, each as a
// frame (`packages/proto/src/line.ts`).
//
//   api-line-1. A call over a line is checked like a request: token, role, rate and constraints, each time.
//   api-line-2. A line takes at most `http2Streams` calls at once. It stops reading while that many are open,
//       or while more than `unreadBytes` of its answers wait for the caller. A connection has at most `LINES`
//       lines. A caller that gives two open calls one number breaks its line: the first of them could no
//       longer be counted or cancelled.
//   api-line-3. A frame that has begun is complete after `requestMs`, or the line is closed. That time starts
//       over when a line that had stopped reading (api-line-2) reads again. A line without an open call is
//       closed after `http2IdleMs`.
//   api-line-4. The calls of a line end when their caller cancels them, when the line is closed, or when the
//       API closes.
//   api-line-5. Only the caller ends a line, so that its last calls are all answered. When the API closes or
//       the line is idle, a greeting of no calls asks for that end. Calls that were sent before the caller
//       read it are still answered.

import { nextTick } from "node:process";
import type { DescMethod, DescMethodUnary } from "@bufbuild/protobuf";
import { errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { toHoldfastError } from "@holdfast/core";
import {
  FrameKind,
  frameOf,
  FrameReader,
  GREETING,
  greetingOf,
  LINE_TYPE,
  readLineCall,
  type Frame,
} from "@holdfast/proto";
import { constants, type Http2ServerRequest, type Http2Session, type ServerHttp2Stream } from "node:http2";
import { clearTimeout, setTimeout } from "node:timers";
import { METHODS } from "./contract.ts";
import type { Exchange } from "./exchange.ts";
import { tooLarge } from "./request-guards.ts";
import type { ApiLimits } from "./limits.ts";
import { newRequestId, Refusal, toConnectError } from "../call/refusal.ts";
import { answerOf, BINARY, OVER, type UnaryOptions } from "./unary.ts";

/**
 * api-line-2. One line is in use. Others are closing, or belong to callers behind a proxy that share the
 * connection.
 */
const LINES = 4;
/** A larger call is sent as a request, because on a line it would delay the others. */
const FRAME_BYTES = 128 * 1024;

const UNARY: ReadonlyMap<string, DescMethodUnary> = new Map(
  METHODS.filter(({ desc }) => desc.methodKind === "unary").map(({ desc }) => [
    `${desc.parent.typeName}/${desc.name}`,
    desc as DescMethodUnary,
  ]),
);

interface LineOptions extends UnaryOptions {
  readonly limits: ApiLimits;
}

type MaxBytes = (desc: DescMethod) => number;

/** Serves the requests that open a line. @throws HoldfastError when nothing has been answered yet. */
export function createLines(
  options: LineOptions,
  maxBytesOf: MaxBytes,
): (exchange: Exchange) => Promise<void> {
  const open = new WeakMap<Http2Session, number>();
  return async ({ request, response }: Exchange) => {
    const { method, headers, httpVersionMajor } = request;
    if (httpVersionMajor !== 2 || method !== "POST" || headers["content-type"] !== LINE_TYPE)
      throw new Refusal("not_implemented", "the request does not open a line", {
        expected: `POST over HTTP/2 with Content-Type: ${LINE_TYPE}`,
      });
    const { authorization } = headers;
    await options.calls.authenticate(authorization);
    const { stream } = request as unknown as Http2ServerRequest;
    const { session } = stream;
    if (session === undefined || stream.destroyed) return;
    const lines = open.get(session) ?? 0;
    if (lines >= LINES)
      throw new Refusal("rate_limited", `this connection has ${lines} lines open`, {
        expected: `at most ${LINES} open lines`,
        fix: "make the call as a separate request",
      });
    open.set(session, lines + 1);
    stream.once("close", () => open.set(session, (open.get(session) ?? 1) - 1));
    response.writeHead(200, { "Content-Type": LINE_TYPE });
    response.flushHeaders();
    new Line(stream, authorization, options, maxBytesOf).begin();
  };
}

class Line {
  readonly #stream: ServerHttp2Stream;
  readonly #authorization: string | undefined;
  readonly #options: LineOptions;
  readonly #maxBytesOf: MaxBytes;
  readonly #reader = new FrameReader(FRAME_BYTES);
  readonly #open = new Map<number, AbortController>();
  /** api-line-2. Frames that were read and wait until open calls end. */
  #untaken: readonly Frame[] = [];
  #answers: Uint8Array[] = [];
  /** api-line-3. */
  readonly #idleClock: NodeJS.Timeout;
  #frameClock: NodeJS.Timeout | undefined;
  /** api-line-5. Whether the caller was asked to end the line. */
  #isEnding = false;
  /** Whether the caller has ended the line. */
  #isEnded = false;

  constructor(
    stream: ServerHttp2Stream,
    authorization: string | undefined,
    options: LineOptions,
    maxBytesOf: MaxBytes,
  ) {
    this.#stream = stream;
    this.#authorization = authorization;
    this.#options = options;
    this.#maxBytesOf = maxBytesOf;
    this.#idleClock = setTimeout(() => this.#closeIfIdle(), options.limits.http2IdleMs);
  }

  begin(): void {
    const { closing } = this.#options;
    const onClosing = (): void => this.#askForEnd();
    closing.addEventListener("abort", onClosing);
    this.#stream.on("error", () => {});
    this.#stream.on("data", (bytes: Uint8Array) => this.#read(bytes));
    this.#stream.on("drain", () => this.#pace());
    this.#stream.once("end", () => this.#end());
    this.#stream.once("close", () => {
      closing.removeEventListener("abort", onClosing);
      clearTimeout(this.#idleClock);
      clearTimeout(this.#frameClock);
      this.#untaken = [];
      this.#abort();
    });
    if (closing.aborted) this.#askForEnd();
  }

  #read(bytes: Uint8Array): void {
    let frames: readonly Frame[];
    try {
      frames = this.#reader.read(bytes);
    } catch {
      this.#stream.close(constants.NGHTTP2_PROTOCOL_ERROR);
      return;
    }
    this.#untaken = this.#untaken.length === 0 ? frames : [...this.#untaken, ...frames];
    this.#idleClock.refresh();
    if (frames.length > 0) this.#stopFrameClock();
    this.#pace();
  }

  #take({ number, kind, content }: Frame): void {
    if (kind === FrameKind.call) this.#takeCall(number, content);
    else if (kind === FrameKind.cancel) this.#open.get(number)?.abort(OVER);
    else if (kind === FrameKind.greeting) {
      this.#greet(this.#isEnding ? 0 : this.#options.limits.http2Streams);
    } // Later versions have other kinds and expect no answer to them here.
  }

  #takeCall(number: number, content: Uint8Array): void {
    if (this.#open.has(number)) this.#stream.close(constants.NGHTTP2_PROTOCOL_ERROR);
    else void this.#call(number, content);
  }

  /** Answers every call, also with an error. */
  async #call(number: number, content: Uint8Array): Promise<void> {
    const { calls, onError } = this.#options;
    const requestId = newRequestId();
    const call = new AbortController();
    this.#open.set(number, call);
    let answer: Uint8Array;
    try {
      if (this.#isEnding) call.abort(OVER); // The call must not wait.
      const { desc, request } = this.#methodOf(content);
      const given = await answerOf(
        {
          desc,
          codec: BINARY,
          authorization: this.#authorization,
          requestId,
          control: call,
          body: () => request,
        },
        calls,
      );
      answer = frameOf(number, FrameKind.answer, given as Uint8Array);
    } catch (thrown) {
      const error = toHoldfastError(thrown);
      onError(error, requestId);
      const sent = errorToJsonBytes(toConnectError(error, requestId), undefined);
      answer = frameOf(number, FrameKind.error, sent);
    }
    this.#open.delete(number);
    this.#send(answer);
  }

  /** @throws Refusal */
  #methodOf(content: Uint8Array): { readonly desc: DescMethodUnary; readonly request: Uint8Array } {
    const call = readLineCall(content);
    const desc = call && UNARY.get(textOf(call.path));
    if (call === undefined || desc === undefined)
      throw new Refusal("not_implemented", "the method does not exist", {
        expected: "holdfast.v1.SERVICE/METHOD, a unary method of the contract",
      });
    const maxBytes = this.#maxBytesOf(desc);
    if (call.request.length > maxBytes) throw tooLarge(call.request.length, maxBytes);
    return { desc, request: call.request };
  }

  /** Answers that are ready in the same turn of the event loop are written together. */
  #send(frame: Uint8Array): void {
    if (this.#answers.push(frame) === 1) nextTick(() => this.#flush());
  }

  #flush(): void {
    const answers = this.#answers;
    this.#answers = [];
    if (this.#stream.destroyed || this.#stream.writableEnded) return;
    this.#stream.write(answers.length === 1 ? answers[0]! : Buffer.concat(answers));
    if (this.#isEnded && this.#open.size === 0) this.#stream.end();
    this.#pace();
  }

  /** api-line-2. */
  #pace(): void {
    let taken = 0;
    while (taken < this.#untaken.length && !this.#isFull) this.#take(this.#untaken[taken++]!);
    if (taken > 0) this.#untaken = this.#untaken.slice(taken);
    const isReading = this.#untaken.length === 0 && !this.#isFull;
    if (isReading === this.#stream.isPaused()) this.#stream[isReading ? "resume" : "pause"]();
    if (isReading && this.#reader.isWithin) this.#startFrameClock();
    else this.#stopFrameClock();
  }

  /** Also true when the line is closed, because no caller reads the answers. */
  get #isFull(): boolean {
    const { http2Streams, unreadBytes } = this.#options.limits;
    const { closed, writableLength } = this.#stream;
    return closed || this.#open.size >= http2Streams || writableLength > unreadBytes;
  }

  /** api-line-3. */
  #startFrameClock(): void {
    const cut = (): void => this.#stream.close(constants.NGHTTP2_CANCEL);
    this.#frameClock ??= setTimeout(cut, this.#options.limits.requestMs);
  }

  #stopFrameClock(): void {
    clearTimeout(this.#frameClock);
    this.#frameClock = undefined;
  }

  #closeIfIdle(): void {
    if (this.#isEnding) this.#stream.close(constants.NGHTTP2_CANCEL);
    else if (this.#open.size === 0) this.#askForEnd();
    this.#idleClock.refresh();
  }

  #greet(calls: number): void {
    this.#send(frameOf(GREETING, FrameKind.greeting, greetingOf({ calls, frameBytes: FRAME_BYTES })));
  }

  /** api-line-5. */
  #askForEnd(): void {
    this.#isEnding = true;
    this.#greet(0);
    this.#abort();
  }

  #end(): void {
    this.#isEnded = true;
    this.#abort();
    if (this.#open.size === 0 && this.#answers.length === 0 && !this.#stream.destroyed) this.#stream.end();
  }

  /** api-line-4. */
  #abort(): void {
    for (const call of this.#open.values()) call.abort(OVER);
  }
}

/** The bytes are not copied. */
function textOf({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString("latin1");
}
