// unaryTransport: Connect's unary calls in binary over HTTP/2, the calls that our processes make most. They
// are the same requests as connect-node's, for a third of the time. Other calls go to connect-node's
// transport.
//
//   unary-transport-1. A call is answered, or rejected with a ConnectError. A call that was cut off, or took
//       too long, may or may not have been done.
//   unary-transport-2. Nothing of a call is left when it is over: no timer, no listener, no stream.

import {
  create,
  fromBinary,
  toBinary,
  type DescMessage,
  type DescMethodUnary,
  type DescService,
  type Message,
  type MessageShape,
} from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport, type UnaryResponse } from "@connectrpc/connect";
import { DEPLOYMENT_HEADER, LINE_PATH } from "@holdfast/proto";
import type { Http2SessionManager } from "@connectrpc/connect-node";
import { codeFromHttpStatus, errorFromJsonBytes } from "@connectrpc/connect/protocol-connect";
import {
  constants,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from "node:http2";
import { clearTimeout, setTimeout } from "node:timers";
import { Lines } from "./line.ts";
import type { SeenDeployment } from "./seen-deployment.ts";

const BINARY = "application/proto";

export interface UnaryOptions {
  readonly sessions: Http2SessionManager;
  /** Before a method's own path. */
  readonly basePath: string;
  readonly timeoutMs: number;
  readonly authorization: () => string;
  readonly deployment: SeenDeployment;
  /** For everything else. */
  readonly others: Transport;
}

interface Answer {
  readonly headers: IncomingHttpHeaders & IncomingHttpStatusHeader;
  readonly body: Buffer;
}

export function unaryTransport({
  sessions,
  basePath,
  timeoutMs: usualMs,
  authorization,
  deployment,
  others,
}: UnaryOptions): Transport {
  const lines = new Lines({
    open: (headers) => sessions.request("POST", `${basePath}${LINE_PATH}`, headers, {}),
    onRead: (stream) => sessions.notifyResponseByteRead(stream),
    authorization,
    isMeant: (headers) => deployment.isMeant(idIn(headers)),
  });
  return {
    stream: (...asked) => others.stream(...asked),
    async unary(method, signal, timeoutMs = usualMs, header, input) {
      const path = `${method.parent.typeName}/${method.name}`;
      const body = toBinary(method.input, create(method.input, input));
      const byLine = header === undefined ? askByLine(lines, { path, body, timeoutMs, signal }) : undefined;
      if (byLine !== undefined) return new Given(method, fromBinary(method.output, await byLine));
      const headers: Record<string, string> = {
        authorization: authorization(),
        "content-type": BINARY,
        "connect-protocol-version": "1",
        ...(timeoutMs > 0 ? { "connect-timeout-ms": String(Math.ceil(timeoutMs)) } : {}),
      };
      if (header !== undefined) new Headers(header).forEach((value, name) => (headers[name] = value));
      const answer = await ask({
        open: () => sessions.request("POST", `${basePath}/${path}`, headers, {}),
        body,
        timeoutMs,
        signal,
        onRead: (stream) => sessions.notifyResponseByteRead(stream),
      });
      deployment.check(idIn(answer.headers), answer.headers[":status"] === 200);
      return new Given(method, read(method, answer) as never);
    },
  };
}

/** A response. Nobody reads its headers, and an empty `Headers` costs as much as the rest of a call. */
class Given<I extends DescMessage, O extends DescMessage> implements UnaryResponse<I, O> {
  readonly stream = false;
  readonly method: DescMethodUnary<I, O>;
  readonly message: MessageShape<O>;

  constructor(method: DescMethodUnary<I, O>, message: MessageShape<O>) {
    this.method = method;
    this.message = message;
  }

  get service(): DescService {
    return this.method.parent;
  }

  get header(): Headers {
    return new Headers();
  }

  get trailer(): Headers {
    return new Headers();
  }
}

function idIn(headers: IncomingHttpHeaders): string | undefined {
  const id = headers[DEPLOYMENT_HEADER];
  return typeof id === "string" ? id : undefined;
}

type Limits = Pick<Asked, "timeoutMs" | "signal">;

/** `undefined` where the call has to go as a request. */
function askByLine(
  lines: Lines,
  { path, body, timeoutMs, signal }: Limits & { readonly path: string; readonly body: Uint8Array },
): Promise<Uint8Array> | undefined {
  if (signal?.aborted === true) return undefined;
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  const over = (): void => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  };
  const cancel = lines.call({
    path,
    request: body,
    onAnswer: (answer) => {
      over();
      resolve(answer);
    },
    onError: (error) => {
      over();
      reject(error);
    },
  });
  if (cancel === undefined) return undefined;
  const fail = (message: string, code: Code): void => {
    over();
    cancel();
    reject(new ConnectError(message, code));
  };
  const onAbort = (): void => fail("the call was aborted", Code.Canceled);
  const timer = timeoutAfter(timeoutMs, fail);
  signal?.addEventListener("abort", onAbort);
  return promise;
}

function timeoutAfter(
  timeoutMs: number,
  fail: (message: string, code: Code) => void,
): NodeJS.Timeout | undefined {
  if (timeoutMs <= 0) return undefined;
  return setTimeout(() => fail("the call took too long", Code.DeadlineExceeded), timeoutMs);
}

interface Asked {
  /** Waits for a connection where there is none. */
  readonly open: () => Promise<ClientHttp2Stream>;
  readonly body: Uint8Array;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onRead: (stream: ClientHttp2Stream) => void;
}

function ask({ open, body, timeoutMs, signal, onRead }: Asked): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let headers: Answer["headers"] = {};
    let stream: ClientHttp2Stream | undefined;
    let isOver = false;
    const over = (): boolean => {
      if (isOver) return false;
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      return (isOver = true);
    };
    const fail = (why: unknown, code: Code): void => {
      if (!over()) return;
      stream?.close(constants.NGHTTP2_CANCEL);
      reject(ConnectError.from(typeof why === "string" ? new ConnectError(why, code) : why, code));
    };
    const onAbort = (): void => fail("the call was aborted", Code.Canceled);
    const timer = timeoutAfter(timeoutMs, fail);
    signal?.addEventListener("abort", onAbort);
    if (signal?.aborted === true) return onAbort();
    const send = (opened: ClientHttp2Stream): void => {
      stream = opened;
      stream.on("error", (error) => fail(error, Code.Unavailable));
      stream.on("close", () => fail("the connection was cut", Code.Unavailable));
      if (isOver) return stream.close(constants.NGHTTP2_CANCEL);
      stream.on("response", (given) => (headers = given));
      stream.on("data", (chunk: Buffer) => {
        onRead(opened);
        chunks.push(chunk);
      });
      stream.on("end", () => {
        // A stream that is cut off ends as well, in the middle of its answer or before: its close says so.
        if (headers[":status"] === undefined || opened.rstCode !== constants.NGHTTP2_NO_ERROR) return;
        if (over()) resolve({ headers, body: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) });
      });
      stream.end(body);
    };
    open().then(send, (error: unknown) => fail(error, Code.Unavailable));
  });
}

/** unary-transport-1. */
function read({ output }: DescMethodUnary, { headers, body }: Answer): Message {
  const status = headers[":status"] ?? 0;
  const type = headers["content-type"] ?? "";
  if (status === 200 && type === BINARY) return fromBinary(output, body);
  // Something between us and the coordinator answers in its own words.
  const otherwise = new ConnectError(`HTTP ${status}`, codeFromHttpStatus(status));
  throw type.startsWith("application/json") ? errorFromJsonBytes(body, undefined, otherwise) : otherwise;
}
