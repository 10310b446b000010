// The gateway in front of model providers, with the scripted model server and raw servers as the upstream.

import { HoldfastError } from "@holdfast/core";
import { startScriptedModelServer, turns, CanaryScan, type ScriptedModelServer } from "@holdfast/testkit";
import { Redactor } from "@holdfast/system";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { anthropicProvider, namedProviders, openaiProvider, type Provider } from "./provider-proxy.ts";
import { startRunGateway, type RunGateway } from "./run-gateway.ts";

const scan = new CanaryScan();
const KEY = scan.secret.replaceAll(/[^\w/-]/g, "");
const run = { sessionId: "ses_1", runId: "run_1" };
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function gatewayTo(...providers: readonly Provider[]): Promise<RunGateway> {
  const gateway = await startRunGateway({ run, routes: {}, redactor: new Redactor(), providers });
  closers.push(() => gateway.close());
  return gateway;
}

async function models(): Promise<ScriptedModelServer> {
  const server = await startScriptedModelServer({
    script: turns([{ text: "hello from the model" }]),
    apiKeys: [KEY],
  });
  closers.push(() => server.close());
  return server;
}

/** A provider of a test's own. Answers its base URL. */
async function upstream(
  serve: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server: Server = createServer(serve);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const messages = (env: Readonly<Record<string, string>>, headers: Record<string, string> = {}, body = BODY) =>
  fetch(`${env["ANTHROPIC_BASE_URL"]}/v1/messages`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
      "x-api-key": env["ANTHROPIC_API_KEY"]!,
      ...headers,
    },
    body: JSON.stringify(body),
  });
const BODY = { model: "m", max_tokens: 100, messages: [{ role: "user", content: "hi" }], stream: false };

test("provider-proxy-5: a call that is not admitted is answered with the reason, and nothing is sent", async () => {
  const server = await models();
  let isAdmitted = true;
  const gateway = await startRunGateway({
    run: { sessionId: "s", runId: "r" },
    routes: {},
    redactor: new Redactor([]),
    providers: [anthropicProvider({ key: () => KEY, upstream: server.url })],
    admit: async () => {
      if (!isAdmitted) throw new HoldfastError("budget_exceeded", "the budget is used up");
    },
  });
  closers.push(() => gateway.close());
  expect((await messages(gateway.env)).status).toBe(200);
  isAdmitted = false;
  const refused = await messages(gateway.env);
  expect([refused.status, await refused.json()]).toEqual([
    409,
    expect.objectContaining({ code: "budget_exceeded", detail: "the budget is used up" }),
  ]);
  expect(server.requests).toHaveLength(1);
});

describe("an executor calls a model without its key", () => {
  test("a request in Anthropic's form gets the key at the gateway", async () => {
    const server = await models();
    const { env } = await gatewayTo(anthropicProvider({ key: () => KEY, upstream: server.url }));
    const answer = await messages(env);
    const text = await answer.text();
    expect([answer.status, text.includes("hello from the model")]).toEqual([200, true]);
    expect(server.requests[0]?.headers["x-api-key"]).toBe(KEY);
    expect(JSON.stringify(env)).not.toContain(KEY);
  });

  test("a request in OpenAI's form gets the key at the gateway, and the caller's own headers are dropped", async () => {
    const server = await models();
    const { env } = await gatewayTo(openaiProvider({ key: () => KEY, upstream: server.url }));
    const answer = await fetch(`${env["OPENAI_BASE_URL"]}/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${env["OPENAI_API_KEY"]}`,
        cookie: "session=1",
        "x-forwarded-host": "evil.example",
        "openai-organization": "org-of-another",
        "openai-project": "proj-of-another",
        "x-amzn-account": "123",
      },
      body: JSON.stringify({ model: "m", messages: BODY.messages }),
    });
    expect([answer.status, (await answer.text()).includes("hello from the model")]).toEqual([200, true]);
    const { headers } = server.requests[0]!;
    expect(headers["authorization"]).toBe(`Bearer ${KEY}`);
    expect(
      [
        "cookie",
        "x-forwarded-host",
        "x-api-key",
        "openai-organization",
        "openai-project",
        "x-amzn-account",
      ].map((name) => headers[name]),
    ).toEqual(Array(6).fill(undefined));
  });

  test("the account of a request is that of the runner's environment, whatever the executor sends", async () => {
    const server = await models();
    const environment = {
      OPENAI_BASE_URL: `${server.url}/v1`,
      OPENAI_ORG_ID: "org-of-the-operator",
      OPENAI_PROJECT_ID: "proj-of-the-operator",
    };
    const { env } = await gatewayTo(...namedProviders({ openai: "KEY" }, environment, () => KEY));
    await fetch(`${env["OPENAI_BASE_URL"]}/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${env["OPENAI_API_KEY"]}`,
        "openai-organization": "org-of-another",
      },
      body: JSON.stringify({ model: "m", messages: BODY.messages }),
    });
    const { headers } = server.requests[0]!;
    expect([headers["openai-organization"], headers["openai-project"]]).toEqual([
      "org-of-the-operator",
      "proj-of-the-operator",
    ]);
  });

  test("a key that an answer has in its headers does not reach the executor", async () => {
    const url = await upstream((_request, response) => {
      response.writeHead(200, { "x-echo": `Bearer ${KEY}`, location: `/login?key=${KEY}` }).end("{}");
    });
    const { env } = await gatewayTo(anthropicProvider({ key: () => KEY, upstream: url }));
    const answer = await messages(env);
    expect([answer.headers.get("x-echo"), answer.headers.get("location")]).toEqual([
      "Bearer [secret]",
      "/login?key=[secret]",
    ]);
  });

  test("each event of a stream passes at once, in both directions", async () => {
    const received: string[] = [];
    const first = Promise.withResolvers<void>();
    const url = await upstream((request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      request.on("data", (chunk: Buffer) => {
        received.push(chunk.toString());
        response.write(`data: got ${received.length}\n\n`); // The next event waits for the next part of the request.
      });
      request.on("end", () => response.end("data: end\n\n"));
    });
    const { env } = await gatewayTo(anthropicProvider({ key: () => KEY, upstream: url }));
    const body = new ReadableStream({
      async start(controller) {
        controller.enqueue(Buffer.from('{"a":'));
        await first.promise;
        controller.enqueue(Buffer.from("1}"));
        controller.close();
      },
    });
    const answer = await fetch(`${env["ANTHROPIC_BASE_URL"]}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": env["ANTHROPIC_API_KEY"]! },
      body,
      duplex: "half",
    });
    const events: string[] = [];
    for await (const chunk of answer.body!) {
      events.push(Buffer.from(chunk).toString());
      first.resolve();
    }
    expect(events.join("")).toBe("data: got 1\n\ndata: got 2\n\ndata: end\n\n");
    expect(received.join("")).toBe('{"a":1}');
  });

  test("an answer that quotes the key, in two chunks, does not give it to the executor", async () => {
    const url = await upstream((_request, response) => {
      response.writeHead(401, { "content-type": "application/json", "set-cookie": "a=b" });
      response.write(`{"error":"wrong key ${KEY.slice(0, 9)}`);
      setImmediate(() => response.end(`${KEY.slice(9)} (${btoa(KEY)})"}`));
    });
    const { env } = await gatewayTo(anthropicProvider({ key: () => KEY, upstream: url }));
    const answer = await messages(env);
    expect([answer.status, answer.headers.get("set-cookie")]).toEqual([401, null]);
    expect(await answer.json()).toEqual({ error: "wrong key [secret] ([secret])" });
  });

  test("a secret of the runner that a prompt quotes does not reach the provider", async () => {
    const server = await models();
    const { env } = await gatewayTo(anthropicProvider({ key: () => KEY, upstream: server.url }));
    await messages(env);
    await messages(env, {}, { ...BODY, messages: [{ role: "user", content: `my key is ${KEY}` }] });
    expect(server.requests[1]?.body).toMatchObject({ messages: [{ content: "my key is [secret]" }] });
  });
});

describe("the route of a provider refuses", () => {
  test.each([
    ["a request without the token", "/providers/anthropic/v1/messages", {}, 401],
    ["a request with the key of the provider", "/providers/anthropic/v1/messages", { "x-api-key": KEY }, 401],
    ["a path that is not for models", "/providers/anthropic/v1/organizations", undefined, 404],
    ["a path that only begins in the same way", "/providers/anthropic/v1/messages-admin", undefined, 404],
    ["a path with dots", "/providers/anthropic/v1/messages/%2e%2e/organizations", undefined, 404],
    ["a path with an encoded slash", "/providers/anthropic/v1/models/..%2f..%2fadmin", undefined, 404],
    ["a doubled slash", "/providers/anthropic/v1//messages", undefined, 404],
    ["a provider that is not configured", "/providers/openai/v1/models", undefined, 404],
  ])("%s is refused, and does not reach the provider", async (_what, path, headers, status) => {
    const server = await models();
    const { origin, token } = await gatewayTo(anthropicProvider({ key: () => KEY, upstream: server.url }));
    const answer = await fetch(`${origin}${path}`, {
      method: "POST",
      headers: headers ?? { "x-api-key": token },
      body: "{}",
    });
    expect([answer.status, server.requests.length]).toEqual([status, 0]);
  });

  test.each([
    ["DELETE", "/v1/models/ft:a", anthropicProvider],
    ["DELETE", "/v1/models/ft:a", openaiProvider],
    ["POST", "/v1/models", openaiProvider],
    ["GET", "/v1/messages", anthropicProvider],
    ["GET", "/v1/messages/batches", anthropicProvider],
    ["POST", "/v1/messages/batches", anthropicProvider],
    ["GET", "/v1/messages/batches/b/results", anthropicProvider],
    ["GET", "/v1/chat/completions", openaiProvider],
    ["GET", "/v1/chat/completions/c/messages", openaiProvider],
    ["GET", "/v1/responses/r", openaiProvider],
    ["DELETE", "/v1/responses/r", openaiProvider],
    ["POST", "/v1/responses/r/cancel", openaiProvider],
    ["GET", "/v1/models/..%2f..%2fadmin", openaiProvider],
    ["GET", "/v1/models/a%2fb", openaiProvider],
    ["GET", "/v1/models/%2e%2e%5cadmin", openaiProvider],
    ["GET", "/v1/models/a/permissions", openaiProvider],
  ])("%s %s does not reach the provider", async (method, path, providerOf) => {
    const reached: string[] = [];
    const url = await upstream(({ url: asked = "" }, response) => {
      reached.push(asked);
      response.end("{}");
    });
    const provider = providerOf({ key: () => KEY, upstream: url });
    const { origin, token } = await gatewayTo(provider);
    const answer = await fetch(`${origin}/providers/${provider.name}${path}`, {
      method,
      headers: { "x-api-key": token },
      ...(method === "POST" ? { body: "{}" } : {}),
    });
    expect([answer.status, reached]).toEqual([404, []]);
  });

  test.each([anthropicProvider, openaiProvider])("%o reaches each call of its table", async (providerOf) => {
    const reached: string[] = [];
    const url = await upstream((request, response) => {
      reached.push(`${request.method} ${request.url}`);
      response.end("{}");
    });
    const provider = providerOf({ key: () => KEY, upstream: url });
    const { origin, token } = await gatewayTo(provider);
    const calls = provider.calls.map((call) => call.replace("*", "ft:gpt-4.1:own::id@2"));
    for (const call of calls) {
      const [method = "", path = ""] = call.split(" ");
      await fetch(`${origin}/providers/${provider.name}${path}?beta=true`, {
        method,
        headers: { "x-api-key": token },
        ...(method === "POST" ? { body: "{}" } : {}),
      });
    }
    expect(reached).toEqual(calls.map((call) => `${call}?beta=true`));
  });

  test("a request whose body is compressed is refused, because a secret in it would pass", async () => {
    const server = await models();
    const { env } = await gatewayTo(anthropicProvider({ key: () => KEY, upstream: server.url }));
    const answer = await messages(env, { "content-encoding": "gzip" });
    expect([answer.status, server.requests.length]).toEqual([415, 0]);
  });

  test("a redirect is given to the executor and not followed with the key", async () => {
    let requests = 0;
    const url = await upstream((_request, response) => {
      requests += 1;
      response.writeHead(307, { location: "http://evil.example/" }).end();
    });
    const { env } = await gatewayTo(anthropicProvider({ key: () => KEY, upstream: url }));
    const answer = await fetch(`${env["ANTHROPIC_BASE_URL"]}/v1/models`, {
      headers: { "x-api-key": env["ANTHROPIC_API_KEY"]! },
      redirect: "manual",
    });
    expect([answer.status, requests]).toEqual([307, 1]);
  });

  test("an answer that is compressed all the same is refused, because no secret could be found in it", async () => {
    const url = await upstream((_request, response) => {
      response.writeHead(200, { "content-encoding": "gzip" }).end("xx");
    });
    const { env } = await gatewayTo(anthropicProvider({ key: () => KEY, upstream: url }));
    expect((await messages(env)).status).toBe(503);
  });

  test("a provider that cannot be reached is a problem without its address", async () => {
    const { env } = await gatewayTo(anthropicProvider({ key: () => KEY, upstream: "http://127.0.0.1:1" }));
    const answer = await messages(env);
    expect([answer.status, await answer.json()]).toEqual([
      503,
      expect.objectContaining({ detail: "the provider anthropic cannot be reached" }),
    ]);
  });

  test.each(["http://api.anthropic.com", "ftp://127.0.0.1", "https://user@api.anthropic.com", "none"])(
    "the upstream %s is refused at the start",
    async (url) => {
      await expect(gatewayTo(anthropicProvider({ key: () => KEY, upstream: url }))).rejects.toMatchObject({
        code: "usage",
      });
    },
  );
});

test("a stream ends with its gateway, and its provider is told so", async () => {
  const ended = Promise.withResolvers<void>();
  const url = await upstream((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: 1\n\n");
    response.on("close", () => ended.resolve());
  });
  const gateway = await gatewayTo(anthropicProvider({ key: () => KEY, upstream: url }));
  const answer = await messages(gateway.env);
  const reader = answer.body!.getReader();
  await reader.read();
  await gateway.close();
  await expect(reader.read()).rejects.toThrow();
  await ended.promise;
});
