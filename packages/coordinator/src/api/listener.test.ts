// Connections of the API: before bytes become a request, and at their ends.

import { once } from "node:events";
import { request as requestHttps } from "node:https";
import { connect as connectHttp2 } from "node:http2";
import { afterEach, describe, expect, it } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import type { ApiOptions } from "./api.ts";
import { METHODS } from "./contract.ts";
import { CLIENTS } from "./testing/clients.ts";
import { sampleOf } from "./testing/sample.ts";
import { startStubApi, startStubApiWith, type StubApi } from "./testing/stub-api.ts";
import { TEST_TLS } from "./testing/certificate.ts";
import { closed, exchangeBytes, openSocket, readToEnd, requestText, statusOf } from "./testing/wire.ts";

/** Vitest's own second is soon over where the machine is busy. */
const PATIENCE = { timeout: 15_000 };

let api: StubApi;
afterEach(() => api.close());

const start = async (options: Partial<ApiOptions> = {}): Promise<void> => {
  api = await startStubApi(undefined, options);
};

describe("bytes that are no request", () => {
  it.each([
    ["noise", "\x16\x03\x01 hello\r\n\r\n", 400],
    ["no version", "GET /\r\n\r\n", 400],
    [
      "a length and chunks at once",
      "POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
      400,
    ],
    [
      "two lengths",
      "POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
      400,
    ],
    ["no host", "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", 400],
    ["headers that are too large", `GET / HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(17_000)}\r\n\r\n`, 431],
  ])(
    "bytes that are no request are answered once, and the connection is closed: %s",
    async (_what, text, status) => {
      await start();
      const answer = await exchangeBytes(api.port, text);
      expect(statusOf(answer)).toBe(status);
      const [head, body] = answer.split("\r\n\r\n") as [string, string];
      const { instance } = JSON.parse(body) as { instance: string };
      expect(instance).toMatch(/^req_[-0-9a-f]{36}$/);
      expect(head.toLowerCase()).toContain(`x-request-id: ${instance}`);
      expect(await health()).toBe(200);
    },
  );

  it("bytes that only begin like HTTP/2 are no request", async () => {
    await start();
    expect(statusOf(await exchangeBytes(api.port, "PRX / HTTP/1.1\r\n\r\n"))).toBe(400);
    expect(await exchangeBytes(api.port, "PRI * HTTP/2.0\r\n\r\nno, not at all\r\n\r\n")).not.toContain(
      "HTTP/1.1 200",
    );
    expect(await health()).toBe(200);
  });

  it("a request may arrive one byte at a time", async () => {
    await start();
    const socket = await openSocket(api.port);
    const answer = readToEnd(socket);
    for (const character of requestText(api.port, "PROPFIND /healthz")) {
      await new Promise((resolve) => socket.write(character, resolve));
    }
    expect(statusOf(await answer)).toBe(405);
  });

  it("a CONNECT request is answered, and its connection does not count while it stays open", async () => {
    await start({ limits: { connections: 1 } });
    const socket = await openSocket(api.port, true);
    socket.write(requestText(api.port, "CONNECT evil.example:443"));
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(statusOf(answer.toString())).toBe(400);
    await expect.poll(health, PATIENCE).toBe(200);
    socket.destroy();
  });

  it("a target in absolute form is refused", async () => {
    await start();
    const answer = await exchangeBytes(
      api.port,
      requestText(api.port, "GET http://evil.example/v1/sessions"),
    );
    expect(statusOf(answer)).toBe(400);
  });

  it("a request with two hosts is refused", async () => {
    await start();
    const answer = await exchangeBytes(
      api.port,
      requestText(api.port, "GET /healthz", ["Host: evil.example"]),
    );
    expect(statusOf(answer)).toBe(400);
  });
});

describe("slow callers", () => {
  it.each([
    ["says nothing", ""],
    ["says the beginning of nothing", "PR"],
    ["never ends its headers", "GET /healthz HTTP/1.1\r\nHost: x\r\n"],
    ["never sends its body", "POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"],
  ])("a connection is closed when it %s", async (_what, text) => {
    await start({ limits: { headerMs: 50, requestMs: 100 } });
    const socket = await openSocket(api.port);
    socket.write(text);
    expect(await readToEnd(socket)).toMatch(/^(HTTP\/1\.1 (408|403) |$)/);
  });

  it("a connection that agrees on no TLS is closed", async () => {
    api = await startStubApiWith({ tls: TEST_TLS }, undefined, { limits: { headerMs: 50 } });
    expect(await readToEnd(await openSocket(api.port))).toBe("");
  });

  it("a caller that waits for its answer is not closed, over any protocol", async () => {
    // Long enough for a caller that is slow because the machine is busy. The answer takes longer than both
    // together.
    const limits = { headerMs: 500, requestMs: 500 };
    api = await startStubApi(() => new Promise((resolve) => setTimeout(resolve, 1_100)), { limits });
    const { desc } = METHODS.find(({ name }) => name === "RunnerService.Poll")!;
    const to = { url: api.url, token: "runner" };
    const answers = await Promise.all(
      Object.values(CLIENTS).map((call) => call(to, desc, sampleOf(desc.input))),
    );
    for (const answered of answers) expect(answered).toHaveProperty("messages");
  });

  it("a connection is closed when its stream of HTTP/2 never ends", async () => {
    await start({ limits: { headerMs: 50, requestMs: 100 } });
    const session = connectHttp2(api.url);
    const stream = session.request({
      ":method": "POST",
      ":path": "/v1/sessions",
      authorization: "Bearer admin",
    });
    const over = closed(session);
    await closed(stream.resume());
    session.close();
    await over;
  });
});

it("a connection of HTTP/2 is closed when it is idle, and not while a request waits", async () => {
  // Long enough that a caller on a busy machine is not taken for idle.
  const limits = { http2IdleMs: 300, requestMs: 200, silentMs: 1 };
  api = await startStubApi(() => forever(), { limits });
  const session = connectHttp2(api.url);
  const over = closed(session);
  const stream = session.request({ ":path": "/v1/sessions/a1/watch", authorization: "Bearer admin" });
  const isOver = closed(stream);
  await once(stream, "response");
  await closed(connectHttp2(api.url)); // This connection was idle for as long.
  expect(stream.closed).toBe(false);
  session.destroy();
  await Promise.all([over, isOver]);
});

it(
  "a request over HTTP/2 is answered while a large answer on the same connection is unread",
  ofCampaign,
  async () => {
    const input = new TextEncoder().encode(JSON.stringify("x".repeat(20_000_000)));
    api = await startStubApi(() => ({ sessionId: "a1", input }));
    const session = connectHttp2(api.url);
    const large = session.request({ ":path": "/v1/sessions/a1", authorization: "Bearer admin" });
    await once(large, "response");
    const small = session.request({ ":path": "/healthz" });
    const [headers] = (await once(small, "response")) as [{ readonly ":status": number }];
    expect(headers[":status"]).toBe(200);
    session.destroy();
  },
);

it("listener-3: requests over HTTP/2 end when the other side is closed, as by a killed process", async () => {
  api = await startStubApi(() => forever(), { limits: { silentMs: 1 } });
  const socket = await openSocket(api.port);
  const session = connectHttp2(api.url, { createConnection: () => socket });
  const stream = session.request({ ":path": "/v1/sessions/a1/watch", authorization: "Bearer admin" });
  const over = closed(stream.resume());
  await once(stream, "response");
  socket.end();
  await over;
  session.destroy();
});

it("the port accepts a limited number of connections, and more after some have closed", async () => {
  await start({ limits: { connections: 2 } });
  const [first, second] = [await openSocket(api.port), await openSocket(api.port)];
  expect(await exchangeBytes(api.port, requestText(api.port, "GET /healthz"))).toBe("");
  first.destroy();
  second.destroy();
  await expect.poll(health, PATIENCE).toBe(200);
});

describe("one port", () => {
  it("one port speaks HTTP/2 to a caller that begins with it", async () => {
    await start();
    const session = connectHttp2(api.url);
    const stream = session.request({ ":path": "/healthz" });
    const [headers] = (await once(stream, "response")) as [{ ":status": number }];
    expect(headers[":status"]).toBe(200);
    stream.resume();
    session.close();
  });

  it("one port refuses other hosts over HTTP/2, too", async () => {
    await start();
    const session = connectHttp2(api.url);
    const stream = session.request({ ":path": "/healthz", ":authority": "evil.example" });
    const [headers] = (await once(stream, "response")) as [{ ":status": number }];
    expect(headers[":status"]).toBe(403);
    stream.resume();
    session.close();
  });

  it("one port speaks both versions under TLS, as negotiated", async () => {
    api = await startStubApiWith({ tls: TEST_TLS });
    const session = connectHttp2(`https://localhost:${api.port}`, { ca: TEST_TLS.cert });
    const stream = session.request({ ":path": "/healthz" });
    const [headers] = (await once(stream, "response")) as [{ ":status": number }];
    expect(headers[":status"]).toBe(200);
    stream.resume();
    session.close();
    const request = requestHttps(`https://localhost:${api.port}/healthz`, {
      ca: TEST_TLS.cert,
      agent: false,
    });
    const [response] = (await once(request.end(), "response")) as [{ statusCode: number; resume(): void }];
    expect(response.statusCode).toBe(200);
    response.resume();
  });

  it("that is taken is an error that says so", async () => {
    await start();
    await expect(startStubApiWith({ port: api.port })).rejects.toMatchObject({
      code: "cannot_listen",
      at: expect.stringContaining(`127.0.0.1:${api.port}`) as string,
    });
  });
});

describe("closing", () => {
  it("closing ends streams and idle connections of both versions of HTTP", async () => {
    api = await startStubApi(() => forever(), { limits: { silentMs: 1, closeMs: 100 } });
    const idle = await openSocket(api.port);
    const ended = readToEnd(idle);
    idle.write(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${api.port}\r\n\r\n`);
    const watching = await fetch(`${api.url}/v1/sessions/a1/watch`, {
      headers: { authorization: "Bearer admin" },
    });
    const session = connectHttp2(api.url);
    await once(session, "connect");
    await api.close();
    expect(await ended).toContain("200 OK");
    expect(await watching.text()).toContain("event: error");
  });

  it.each([
    ["without TLS", {}],
    ["before TLS is agreed upon", { tls: TEST_TLS }],
  ])("closing waits for a silent connection no longer than for an answer, %s", async (_what, options) => {
    api = await startStubApiWith(options, undefined, { limits: { closeMs: 100 } });
    const socket = await openSocket(api.port);
    const over = closed(socket);
    await api.close();
    await over;
  });

  it("listener-4: answers what is under way, and nothing more over that connection", async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    api = await startStubApi(async () => {
      asked.resolve();
      await answer.promise;
    });
    const socket = await openSocket(api.port);
    const all = readToEnd(socket);
    const request = `GET /v1/sessions/a1 HTTP/1.1\r\nHost: 127.0.0.1:${api.port}\r\nAuthorization: Bearer admin\r\n\r\n`;
    socket.write(request);
    await asked.promise;
    const closing = api.close();
    socket.write(request);
    answer.resolve();
    await closing;
    const text = await all;
    expect(text.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(1);
    expect(text).toMatch(/^Connection: close\r$/m);
  });
});

async function health(): Promise<number> {
  try {
    return statusOf(await exchangeBytes(api.port, requestText(api.port, "GET /healthz")));
  } catch {
    return 0;
  }
}

async function* forever(): AsyncGenerator<never> {
  await new Promise(() => {});
  yield undefined as never;
}
