// Unary calls to a coordinator, or to a server in its place, that does not answer as it should.

import { HealthService } from "@holdfast/proto";
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { CoordinatorConnection } from "./coordinator-connection.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
});

async function open(answer: (stream: ServerHttp2Stream) => void, timeoutMs = 30_000) {
  const server = createServer();
  const streams: ServerHttp2Stream[] = [];
  server.on("stream", (stream) => {
    streams.push(stream);
    stream.on("error", () => {});
    answer(stream);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const connection = new CoordinatorConnection({ url, token: "t", timeoutMs });
  closers.push(
    () => server.close(),
    () => connection.close(),
  );
  const client = connection.client(HealthService);
  return {
    get: (signal?: AbortSignal) => connection.ask(() => client.get({}, signal && { signal })),
    streams,
  };
}

/** A message like any other, as far as it goes. */
const NO_FIELD_OF_OURS = Buffer.from([0x78, 0x00]);

const closed = (stream: ServerHttp2Stream) =>
  new Promise<void>((resolve) => (stream.closed ? resolve() : stream.once("close", resolve)));

test("unary-transport-1, unary-transport-2: a call that takes too long is unavailable, and its stream is closed", async () => {
  const { get, streams } = await open(() => {}, 50);
  await expect(get()).rejects.toMatchObject({ code: "storage_unavailable" });
  await closed(streams[0]!);
});

test("unary-transport-1, unary-transport-2: a call that is given up is rejected, and its stream is closed", async () => {
  const controller = new AbortController();
  const { get, streams } = await open(() => controller.abort());
  await expect(get(controller.signal)).rejects.toMatchObject({ code: "storage_unavailable" });
  await closed(streams[0]!);
  await expect(get(controller.signal)).rejects.toMatchObject({ code: "storage_unavailable" });
  expect(streams).toHaveLength(1);
});

test.each([
  ["without an answer", (stream: ServerHttp2Stream) => stream.close()],
  [
    "in the middle of its answer",
    (stream: ServerHttp2Stream) => {
      stream.respond({ ":status": 200, "content-type": "application/proto" });
      stream.write("x", () => stream.close(2));
    },
  ],
  [
    "with its connection, after a readable part of its answer",
    (stream: ServerHttp2Stream) => {
      stream.respond({ ":status": 200, "content-type": "application/proto" });
      stream.write(NO_FIELD_OF_OURS, () => stream.session?.destroy());
    },
  ],
])("unary-transport-1: a call that is cut off %s is unavailable", async (_, answer) => {
  const { get } = await open(answer);
  await expect(get()).rejects.toMatchObject({ code: "storage_unavailable" });
});

test.each([
  [502, "text/html", "<h1>Bad Gateway</h1>", "storage_unavailable"],
  [403, "application/problem+json", "{}", "forbidden"],
  [404, "text/plain", "no", "version_unsupported"],
  [200, "text/html", "<h1>Hello</h1>", "storage_unavailable"],
  [500, "application/json", "no JSON", "storage_unavailable"],
])("unary-transport-1: %s with %s is reported as what it is", async (status, type, body, code) => {
  const { get } = await open((stream) => {
    stream.respond({ ":status": status, "content-type": type });
    stream.end(body);
  });
  await expect(get()).rejects.toMatchObject({ code });
});

test("coordinator-connection-3: a coordinator that has answered once is only unavailable when a proxy refuses", async () => {
  let status = 200;
  const { get } = await open((stream) => {
    stream.respond({ ":status": status, "content-type": status === 200 ? "application/proto" : "text/html" });
    stream.end();
  });
  await get();
  for (status of [403, 404, 400, 401])
    await expect(get(), String(status)).rejects.toMatchObject({ code: "storage_unavailable" });
});
