// `startScriptedModelServer`: a model server whose replies come from a script, over real HTTP on loopback. It
// serves tests and trials without a key.
//
// This file handles sockets and time. `scripted-model/exchange.ts` decides the answer to a request, and
// `scripted-model/*-wire.ts` have the formats. `scripted-model/script.ts` has replies and the promises
// script-1 to script-4.
//
// A request is served from its first byte until its response closes, for whatever reason; `close()` closes
// them all.

import { MIB, toError } from "@holdfast/core";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

import { answerRequest } from "./scripted-model/exchange.ts";
import { pickFault, type Delivery, type ModelFaultPlan } from "./scripted-model/faults.ts";
import type { ModelScript } from "./scripted-model/script.ts";
import type { RecordedRequest, RequestHeaders } from "./scripted-model/wire.ts";

/** Options of `startScriptedModelServer`. */
export interface ScriptedModelServerOptions {
  /** The function that gives the replies. */
  readonly script: ModelScript;
  /** A free port by default. */
  readonly port?: number;
  /** Keys that are let in. Without it every request is, with a key or without. */
  readonly apiKeys?: readonly string[];
  /** Models that exist. Without it every name is one, and the list of models shows `scripted-model`. */
  readonly models?: readonly string[];
  /** The requests that go wrong. */
  readonly faults?: ModelFaultPlan;
  /** Pause between the events of a stream, for people to watch. */
  readonly chunkDelayMs?: number;
}

/** A model server with scripted replies. `startScriptedModelServer` starts one. */
export interface ScriptedModelServer {
  /** Without a path: what Anthropic's own clients want as `ANTHROPIC_BASE_URL`. */
  readonly url: string;
  /** With `/v1`: what `createAnthropic({ baseURL })` of the AI SDK wants. */
  readonly anthropicBaseUrl: string;
  /** With `/v1`: what `createOpenAI`, `createOpenAICompatible` and OpenAI's own clients want. */
  readonly openaiBaseUrl: string;
  /** With `/v1beta`: what `createGoogle` of the AI SDK wants. */
  readonly googleBaseUrl: string;
  /** Everything received so far, in the order of arrival. Leaky: kept as long as the server object. */
  readonly requests: readonly RecordedRequest[];
  /** Replace the faults; their count starts at 1 again. Without an argument nothing goes wrong any more. */
  setFaults(faults?: ModelFaultPlan): void;
  /** Stop listening, destroy every connection, wait until nothing runs. May be called again. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Largest request body. Real servers take a little more; a test that needs it has gone wrong. */
const BODY_BYTES_MAX = 8 * MIB;
/** How much of a larger body is read and dropped, so that the client gets as far as reading the 413. */
const DROPPED_BYTES_MAX = 64 * MIB;

/** Start a scripted model server on 127.0.0.1. Rejects when the port is taken. */
export async function startScriptedModelServer(
  options: ScriptedModelServerOptions,
): Promise<ScriptedModelServer> {
  const { script, apiKeys, models, chunkDelayMs = 0 } = options;
  const requests: RecordedRequest[] = [];
  const serving = new Set<Promise<void>>();
  let faults: ModelFaultPlan = options.faults ?? {};
  let faultsCount = 0;

  const takeFault = (request: RecordedRequest) => {
    requests.push(request);
    return pickFault(faults, request, ++faultsCount);
  };
  const server = createServer((request, response) => {
    const served = serve(request, response).finally(() => serving.delete(served));
    serving.add(served);
  });
  // Clients keep idle connections. Closing one just when its client reuses it would be a fault nobody asked
  // for.
  server.keepAliveTimeout = 0;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const closing = new AbortController();
    response.once("close", () => closing.abort());
    // A write after the client has left reports the error here too, where unheard it would end the process.
    response.on("error", () => closing.abort());
    try {
      const bodyText = await readBody(request);
      const raw = {
        method: request.method ?? "",
        path: request.url ?? "",
        headers: flattenHeaders(request),
        bodyText,
      };
      const delivery = answerRequest(raw, { script, apiKeys, models, takeFault });
      await deliver(response, delivery, chunkDelayMs, closing.signal);
    } catch (error) {
      // Nobody is left to tell when the response is closed. Anything else is a bug of ours: say it and do not
      // hang.
      if (closing.signal.aborted) return;
      // A client that is killed in the middle of a stream fails a write before its connection is closed.
      if (response.headersSent) return void response.destroy();
      response.writeHead(500, { "content-type": "text/plain" });
      response.end(`scripted model server: ${toError(error).message}\n`);
    }
  }

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo; // Which every server that listens on TCP has.
  const url = `http://127.0.0.1:${port}`;

  let closed: Promise<void> | undefined;
  const close = () =>
    (closed ??= (async () => {
      const stopped = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await Promise.all([stopped, ...serving]);
    })());

  return {
    url,
    anthropicBaseUrl: `${url}/v1`,
    openaiBaseUrl: `${url}/v1`,
    googleBaseUrl: `${url}/v1beta`,
    requests,
    setFaults(plan = {}) {
      faults = plan;
      faultsCount = 0;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Undefined for a body over the limit. Rejects when the client goes away or sends without end. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    const part = chunk as Buffer; // No encoding is set, so they are buffers.
    bytes += part.byteLength;
    if (bytes <= BODY_BYTES_MAX) chunks.push(part);
    else chunks.length = 0;
    if (bytes > DROPPED_BYTES_MAX) request.destroy();
  }
  return bytes > BODY_BYTES_MAX ? undefined : Buffer.concat(chunks).toString();
}

function flattenHeaders(request: IncomingMessage): RequestHeaders {
  const entries = Object.entries(request.headersDistinct);
  return Object.fromEntries(entries.map(([name, values]) => [name, values?.join(", ") ?? ""]));
}

/** Rejects when the response closes before everything is sent. */
async function deliver(
  response: ServerResponse,
  { status, headers, chunks, delayMs, breaksAt }: Delivery,
  chunkDelayMs: number,
  closing: AbortSignal,
): Promise<void> {
  const isStream = headers["content-type"]?.startsWith("text/event-stream") === true;
  const length = isStream ? {} : { "content-length": String(Buffer.byteLength(chunks.join(""))) };
  response.sendDate = false; // script-1, down to the headers.
  closing.throwIfAborted();
  if (delayMs > 0) await sleep(delayMs, undefined, { signal: closing });

  const closed = new Promise<void>((resolve) =>
    closing.addEventListener("abort", () => resolve(), { once: true }),
  );
  const sent = breaksAt === undefined ? chunks : chunks.slice(0, breaksAt.chunk);
  for (const [index, chunk] of sent.entries()) {
    if (index === 0) response.writeHead(status, { ...headers, ...length });
    else if (isStream && chunkDelayMs > 0) await sleep(chunkDelayMs, undefined, { signal: closing });
    // The callback of a write that the socket never took is not called, and `close()` waits for us.
    await Promise.race([write(response, chunk), closed]);
    closing.throwIfAborted();
  }
  switch (breaksAt?.by) {
    case undefined:
      return void response.end();
    case "cut":
      return void response.destroy();
    case "hang":
      return await closed;
  }
}

/** Resolves when the chunk has left the process, so that a cut after it cannot take it along. */
function write(response: ServerResponse, chunk: string): Promise<void> {
  return new Promise((resolve, reject) => {
    response.write(chunk, (error) => (error ? reject(error) : resolve()));
  });
}
