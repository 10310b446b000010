// Lines: the caller's end of a line (`packages/proto/src/line.ts`). A line is a stream that carries this
// process's small unary calls to its coordinator.
//
//   remote-line-1. A line is opened once a process calls often. It carries calls once the coordinator has
//       greeted back over it. A coordinator behind a proxy that holds requests back does not greet. Every
//       call then goes as a request, and a line is tried again after `RETRY_MS`.
//   remote-line-2. A call over a line that is cut is rejected: nobody knows whether it was done. It is never
//       sent again here.
//   remote-line-3. A line that carries nothing for `IDLE_MS` is closed, so that it keeps no process alive and
//       no connection open.
//   remote-line-4. A line belongs to one token: with another one it is closed, and calls go as requests until
//       there is a new line.
//   remote-line-5. A line takes no more calls once it has carried `LINE_BYTES` of requests: to a proxy these
//       are the body of one request.
//   remote-line-6. A line that the coordinator asks to end takes no more calls: those that are open are
//       answered over it, then it is ended.

import { nextTick } from "node:process";
import { Code, ConnectError } from "@connectrpc/connect";
import { errorFromJsonBytes } from "@connectrpc/connect/protocol-connect";
import {
  FrameKind,
  frameOf,
  FrameReader,
  GREETING,
  LINE_TYPE,
  lineCallOf,
  readGreeting,
  type Frame,
  type Greeting,
} from "@holdfast/proto";
import { constants, type ClientHttp2Stream, type IncomingHttpHeaders } from "node:http2";
import { clearInterval, clearTimeout, setInterval, setTimeout } from "node:timers";

/** remote-line-1. A process calls often when it makes this many calls within `OFTEN_MS`. */
const OFTEN_CALLS = 4;
const OFTEN_MS = 1_000;
const GREET_MS = 5_000;
const RETRY_MS = 60_000;
/** How often a busy line notifies the connection of bytes, which moves the timer of its pings each time. */
const NOTIFY_MS = 1_000;
/** remote-line-3. */
const IDLE_MS = 1_000;
/** A larger request is sent outside the line, where other calls would wait behind it. */
const REQUEST_BYTES = 64 * 1024;
/** remote-line-5. Less than the megabyte that proxies commonly allow. */
const LINE_BYTES = 768 * 1024;
/** The coordinator is trusted to send no more than was asked for. */
const ANSWER_BYTES = 2 ** 31;

export interface LinesHost {
  /** Opens the stream; waits for a connection where there is none. */
  readonly open: (headers: Readonly<Record<string, string>>) => Promise<ClientHttp2Stream>;
  readonly onRead: (stream: ClientHttp2Stream) => void;
  readonly authorization: () => string;
  /** Whether the coordinator that is meant answers. */
  readonly isMeant: (headers: IncomingHttpHeaders) => boolean;
}

/** Exactly one of the two is called, once, unless the caller cancels before. */
export interface LineCall {
  readonly path: string;
  readonly request: Uint8Array;
  readonly onAnswer: (answer: Uint8Array) => void;
  readonly onError: (error: ConnectError) => void;
}

/** The line of a process to its coordinator, while there is one. */
export class Lines {
  readonly #host: LinesHost;
  #line: Line | undefined;
  #isOpening = false;
  #calls = 0;
  #countedFrom = -Infinity;
  #notBefore = -Infinity;

  constructor(host: LinesHost) {
    this.#host = host;
  }

  /** Makes the call over the line. @returns how to cancel it; `undefined` where it has to go as a request. */
  call(call: LineCall): (() => void) | undefined {
    const line = this.#line;
    if (line === undefined) {
      if (this.#isOften()) void this.#open();
      return undefined;
    }
    if (line.authorization !== this.#host.authorization()) {
      line.end(); // remote-line-4.
      return undefined;
    }
    return line.call(call);
  }

  /** remote-line-1. */
  #isOften(): boolean {
    const now = performance.now();
    if (now - this.#countedFrom > OFTEN_MS) {
      this.#countedFrom = now;
      this.#calls = 0;
    }
    return ++this.#calls > OFTEN_CALLS && now >= this.#notBefore && !this.#isOpening;
  }

  async #open(): Promise<void> {
    this.#isOpening = true;
    this.#notBefore = performance.now() + RETRY_MS;
    const authorization = this.#host.authorization();
    try {
      const stream = await this.#host.open({ authorization, "content-type": LINE_TYPE });
      if ((await this.#greet(stream, authorization)) !== undefined) this.#notBefore = -Infinity;
    } catch {
      // The call that is made next says what is wrong with the connection.
    } finally {
      this.#isOpening = false;
    }
  }

  /** Resolves when the line is open, with `undefined` when there will be none. */
  #greet(stream: ClientHttp2Stream, authorization: string): Promise<Greeting | undefined> {
    return new Promise((resolve) => {
      const line = new Line(stream, authorization, this.#host, {
        opened: (greeting) => {
          clearTimeout(timer);
          this.#line = line;
          resolve(greeting);
        },
        over: () => {
          clearTimeout(timer);
          if (this.#line === line) this.#line = undefined;
          resolve(undefined);
        },
      });
      const timer = setTimeout(() => line.cut(), GREET_MS);
      line.begin();
    });
  }
}

interface LineEvents {
  readonly opened: (greeting: Greeting) => void;
  /** It takes no more calls. Called once. */
  readonly over: () => void;
}

class Line {
  readonly authorization: string;
  readonly #stream: ClientHttp2Stream;
  readonly #host: Pick<LinesHost, "onRead" | "isMeant">;
  readonly #events: LineEvents;
  readonly #reader = new FrameReader(ANSWER_BYTES);
  readonly #waiting = new Map<number, LineCall>();
  readonly #paths = new Map<string, Uint8Array>();
  #greeting: Greeting | undefined;
  #frames: Uint8Array[] = [];
  #last = GREETING;
  #carried = 0;
  /** Whether a call was made since it was last looked. */
  #wasUsed = false;
  #idleTimer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(
    stream: ClientHttp2Stream,
    authorization: string,
    host: Pick<LinesHost, "onRead" | "isMeant">,
    events: LineEvents,
  ) {
    this.#stream = stream;
    this.authorization = authorization;
    this.#host = host;
    this.#events = events;
  }

  begin(): void {
    const stream = this.#stream;
    stream.on("error", () => {});
    stream.on("response", (headers) => {
      const isLine = headers[":status"] === 200 && headers["content-type"] === LINE_TYPE;
      if (!isLine || !this.#host.isMeant(headers)) this.cut();
    });
    let notifiedAt = -Infinity;
    stream.on("data", (bytes: Uint8Array) => {
      const now = performance.now();
      if (now - notifiedAt >= NOTIFY_MS) {
        notifiedAt = now;
        this.#host.onRead(stream);
      }
      this.#read(bytes);
    });
    stream.once("end", () => this.#fail()); // It answers nothing more.
    stream.once("close", () => this.#fail());
    stream.write(frameOf(GREETING, FrameKind.greeting));
    if (stream.destroyed) this.#fail();
  }

  call(call: LineCall): (() => void) | undefined {
    const { calls = 0, frameBytes = 0 } = this.#greeting ?? {};
    const path = this.#pathOf(call.path);
    const bytes = call.request.length;
    const isTooLarge = bytes > REQUEST_BYTES || bytes + path.length + 6 > frameBytes;
    if (this.#isOver || isTooLarge || this.#waiting.size >= calls) return undefined;
    const number = ++this.#last;
    const frame = frameOf(number, FrameKind.call, ...lineCallOf(path, call.request));
    this.#waiting.set(number, call);
    this.#wasUsed = true;
    this.#send(frame);
    this.#carried += frame.length;
    if (this.#carried > LINE_BYTES) this.end();
    return () => {
      if (this.#waiting.delete(number)) this.#send(frameOf(number, FrameKind.cancel));
    };
  }

  /** No more calls; those that are open are still answered. */
  end(): void {
    this.#close();
    if (this.#waiting.size === 0 && this.#frames.length === 0) this.#stream.end();
  }

  cut(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
    this.#fail();
  }

  #read(bytes: Uint8Array): void {
    try {
      for (const frame of this.#reader.read(bytes)) this.#take(frame);
    } catch {
      this.cut();
    }
    if (this.#isOver && this.#waiting.size === 0) this.#stream.end();
  }

  #take({ number, kind, content }: Frame): void {
    if (kind === FrameKind.greeting) {
      const greeting = readGreeting(content);
      if (greeting === undefined || this.#isOver) return;
      if (greeting.calls === 0) return this.end(); // remote-line-6.
      if (this.#greeting !== undefined) return;
      this.#greeting = greeting;
      this.#idleTimer = setInterval(() => this.#endIfIdle(), IDLE_MS);
      this.#events.opened(greeting);
      return;
    }
    const call = this.#waiting.get(number);
    if (call === undefined) return; // It was cancelled.
    if (kind !== FrameKind.answer && kind !== FrameKind.error) return;
    this.#waiting.delete(number);
    if (kind === FrameKind.answer) call.onAnswer(content);
    else call.onError(errorOf(content));
  }

  #pathOf(path: string): Uint8Array {
    let bytes = this.#paths.get(path);
    if (bytes === undefined) this.#paths.set(path, (bytes = Buffer.from(path)));
    return bytes;
  }

  /** All frames of one turn of the event loop are one write. */
  #send(frame: Uint8Array): void {
    if (this.#frames.push(frame) === 1) nextTick(() => this.#flush());
  }

  #flush(): void {
    const frames = this.#frames;
    this.#frames = [];
    if (this.#stream.destroyed || this.#stream.writableEnded) return;
    this.#stream.write(frames.length === 1 ? frames[0]! : Buffer.concat(frames));
    if (this.#isOver && this.#waiting.size === 0) this.#stream.end();
  }

  /** remote-line-3. */
  #endIfIdle(): void {
    if (this.#waiting.size === 0 && !this.#wasUsed) this.end();
    this.#wasUsed = false;
  }

  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#idleTimer);
    this.#events.over();
  }

  /** remote-line-2. */
  #fail(): void {
    this.#close();
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { onError } of waiting) onError(new ConnectError("the connection was cut", Code.Unavailable));
  }
}

function errorOf(content: Uint8Array): ConnectError {
  const otherwise = new ConnectError("the coordinator answered with no error that can be read", Code.Unknown);
  try {
    return errorFromJsonBytes(content, undefined, otherwise);
  } catch (error) {
    return ConnectError.from(error);
  }
}
