import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, request, type IncomingMessage } from "node:http";
import {
  connect,
  createServer as createServer2,
  type ClientHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo, Server as NetServer, Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { CanaryScan } from "./canary-scan.ts";
import { armScan } from "./canary-watch.ts";

const RECEIVED = "what a socket or a pipe received";
const REQUEST = "a request that an HTTP server received";
const HTTP2 = "what a stream of HTTP/2 received";

/** A scan that is armed for this test. */
function armed(): CanaryScan {
  const scan = new CanaryScan();
  onTestFinished(armScan(scan));
  return scan;
}

async function addressOf(server: NetServer): Promise<string> {
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("canary-received-1: the secret is found in an event stream, also across the borders of its chunks", async () => {
  const scan = armed();
  const url = await addressOf(
    createServer((_, answer) => {
      answer.write(`data: ${scan.secret.slice(0, 20)}`);
      setImmediate(() => answer.end(`${scan.secret.slice(20)}\n\n`));
    }),
  );
  await (await fetch(url)).text();
  expect(scan.found).toEqual([RECEIVED]);
});

test("canary-received-1: the secret is found in the output of a process", async () => {
  const scan = armed();
  const child = spawn("sh", ["-c", "printenv KEY"], { env: { KEY: scan.secret } });
  await once(child, "close");
  expect(scan.found).toEqual([RECEIVED]);
});

/** Sends a request to a server that answers nothing of it. */
async function sendHttp1(
  path: string,
  headers: Record<string, string>,
  parts: readonly string[],
): Promise<void> {
  const server = createServer((message, answer) => void message.resume().once("end", () => answer.end()));
  const url = await addressOf(server);
  const asked = request(url + path, { method: "POST", headers });
  for (const part of parts) await new Promise((resolve) => asked.write(part, resolve));
  asked.end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  await once(answer.resume(), "end");
}

test.each<readonly [string, (secret: string) => Promise<void>]>([
  ["the address", (secret) => sendHttp1(`/?key=${encodeURIComponent(secret)}`, {}, [])],
  ["a header", (secret) => sendHttp1("/", { authorization: `Basic ${btoa(`me:${secret}`)}` }, [])],
  ["the body", (secret) => sendHttp1("/", {}, [secret.slice(0, 20), secret.slice(20)])],
])(
  "canary-received-2: the secret is found in %s of a request that a server receives",
  async (_name, send) => {
    const scan = armed();
    await send(scan.secret);
    expect(scan.found).toEqual([REQUEST]);
  },
);

test("canary-received-2: the secret is found in a request for a tunnel", async () => {
  const scan = armed();
  const server = createServer().on(
    "connect",
    (_message, socket: Socket) => void socket.end("HTTP/1.1 403 No\r\n\r\n"),
  );
  const url = new URL(await addressOf(server));
  const asked = request({
    host: url.hostname,
    port: url.port,
    method: "CONNECT",
    headers: { "x-key": scan.secret },
  });
  asked.end();
  await once(asked, "connect");
  expect(scan.found).toEqual([REQUEST]);
});

interface Talk {
  readonly headers?: Record<string, string>;
  readonly parts?: readonly string[];
  readonly answer?: (stream: ServerHttp2Stream) => void;
}

function answerNothing(stream: ServerHttp2Stream): void {
  stream.respond();
  stream.end();
}

async function talkHttp2(talk: Talk): Promise<void> {
  const server = createServer2().on("stream", (stream) => {
    stream.resume().once("end", () => (talk.answer ?? answerNothing)(stream));
  });
  const session: ClientHttp2Session = connect(await addressOf(server));
  onTestFinished(() => session.close());
  const stream = session.request({ ":method": "POST", ...talk.headers });
  for (const part of talk.parts ?? []) await new Promise((resolve) => stream.write(part, resolve));
  stream.end();
  await once(stream.resume(), "close");
}

test.each<readonly [string, (secret: string) => Talk]>([
  ["a header of a request", (secret) => ({ headers: { authorization: `Bearer ${secret}` } })],
  ["the body of a request", (secret) => ({ parts: [secret.slice(0, 20), secret.slice(20)] })],
  ["a header of an answer", (secret) => ({ answer: (to) => (to.respond({ "x-key": secret }), to.end()) })],
  ["the body of an answer", (secret) => ({ answer: (to) => to.end(JSON.stringify({ secret })) })],
  [
    "the trailers of an answer",
    (secret) => ({
      answer: (to) => {
        to.respond({}, { waitForTrailers: true });
        to.once("wantTrailers", () => to.sendTrailers({ "grpc-message": encodeURIComponent(secret) }));
        to.end();
      },
    }),
  ],
])("canary-received-3: the secret is found in %s of HTTP/2", async (_name, talkOf) => {
  const scan = armed();
  await talkHttp2(talkOf(scan.secret));
  expect(scan.found).toEqual([HTTP2]);
});
