// REST over the wire: what it takes, what it refuses, and what it never says.

import { create, type Message } from "@bufbuild/protobuf";
import { SessionSchema, WatchResponseSchema, type StartRequest, type WatchRequest } from "@holdfast/proto";
import { defined, type HoldfastError } from "@holdfast/core";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { isCampaign, ofCampaign } from "@holdfast/testkit/campaign";
import { setRestStatus } from "../call/caller.ts";
import { METHODS } from "./contract.ts";
import { SAMPLE_JSON } from "./testing/sample.ts";
import { startStubApi, type StubApi } from "./testing/stub-api.ts";
import { exchangeBytes, openSocket, readUntil, requestText, statusOf } from "./testing/wire.ts";

let api: StubApi;
afterEach(() => api.close());

interface Sent {
  readonly method?: string;
  readonly token?: string | undefined;
  readonly body?: string;
  readonly headers?: Record<string, string>;
}

async function send(path: string, { method, token = "admin", body, headers = {} }: Sent = {}) {
  const response = await fetch(`${api.url}${path}`, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...defined({ body }),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.includes("json") === true;
  const problem = (isJson ? JSON.parse(text) : {}) as {
    code?: string;
    errors?: { pointer: string; message: string }[];
  };
  return { ...problem, status: response.status, text, headers: response.headers };
}

describe("a body", () => {
  it("hands a user's JSON to the service to the byte, and back", async () => {
    let received = "";
    api = await startStubApi((_desc, request) => {
      received = Buffer.from((request as StartRequest).input ?? []).toString();
      return create(SessionSchema, { input: Buffer.from(received) });
    });
    const { text, status } = await send("/v1/sessions", {
      body: `{"agent":"a", "input" :  ${SAMPLE_JSON}  }`,
    });
    expect([status, received]).toEqual([201, SAMPLE_JSON]);
    expect(text).toContain(`"input":${SAMPLE_JSON},`);
  });

  it.each([
    ["an unknown property", '{"agnet":"a"}', ["/agnet", "/agent"], "did you mean agent?"],
    [
      "several wrong ones at once",
      '{"agent":5,"budget":{"maxUsd":-1}}',
      ["/agent", "/budget/maxUsd"],
      "a string is expected",
    ],
    ["what only the coordinator sets", '{"agent":"a","status":"completed"}', ["/status"], "is not known"],
    [
      "an integer above 2^53",
      '{"agent":"a","budget":{"maxTokens":9007199254740993}}',
      ["/budget/maxTokens"],
      "2^53",
    ],
    [
      "an integer above 2^53 for the agent",
      '{"agent":"a","input":{"id":9007199254740993}}',
      ["/input"],
      "9007199254740993",
    ],
    ["a number that is no integer", '{"agent":"a","priority":1.5}', ["/priority"], "an integer"],
    ["null for what is not there", '{"agent":"a","sessionId":null}', ["/sessionId"], "a string is expected"],
    ["the same property twice", '{"agent":"a","agent":"b"}', ["/agent"], "twice"],
    [
      "what is nested too deep",
      `{"agent":"a","input":${"[".repeat(10_000)}${"]".repeat(10_000)}}`,
      ["/input"],
      "64",
    ],
    ["a list for an object", "[]", ["", "/agent"], "an object is expected"],
    [
      "names of prototypes",
      '{"agent":"a","demands":{"__proto__":"x"},"__proto__":{}}',
      ["/demands/__proto__", "/__proto__"],
      "",
    ],
  ])("with %s is refused with its place", async (_what, body, pointers, said) => {
    api = await startStubApi();
    const { status, code, errors = [], text } = await send("/v1/sessions", { body });
    expect([status, code]).toEqual([422, "validation"]);
    expect(errors.map(({ pointer }) => pointer)).toEqual(pointers);
    expect(text).toContain(said);
  });

  it.each([
    ["nothing", "", "line 1, column 1"],
    ["half of JSON", '{"agent":', "line 1, column 10"],
    ["something after JSON", '{"agent":"a"}\n x', "line 2, column 2"],
    ["a lone surrogate in no escape", '{"agent":"\\ud8"}', "line 1, column 15"],
  ])("a body of %s is no JSON, and the error names the place", async (_what, body, place) => {
    api = await startStubApi();
    expect(await send("/v1/sessions", { body })).toMatchObject({
      status: 400,
      code: "malformed_json",
      text: expect.stringContaining(place),
    });
  });

  it("a body keeps NUL and lone surrogates as they were given", async () => {
    api = await startStubApi((_desc, request) =>
      create(SessionSchema, { input: (request as StartRequest).input! }),
    );
    const input = '{"a":"x\\u0000y\\ud800"}';
    const { status, text } = await send("/v1/sessions", { body: `{"agent":"a","input":${input}}` });
    expect([status, text.includes(`"input":${input}`)]).toEqual([201, true]);
  });

  it("a body of another type or with compression is refused", async () => {
    api = await startStubApi();
    const body = '{"agent":"a"}';
    for (const headers of [{ "content-type": "text/plain" }, { "content-encoding": "gzip" }]) {
      expect(await send("/v1/sessions", { body, headers })).toMatchObject({ status: 415 });
    }
  });

  it("a body above its limit is refused before it is read, and the caller gets the answer", async () => {
    api = await startStubApi();
    const head = (length: number) =>
      requestText(api.port, "POST /v1/sessions", [
        `Content-Length: ${length}`,
        "Authorization: Bearer admin",
      ]);
    const answer = await exchangeBytes(api.port, head(1024 * 1024 + 1));
    expect(statusOf(answer)).toBe(413);
    expect(answer).toContain('"expected":"at most 1048576"');
  });

  it(
    "a body above its limit is refused with an answer even if the caller keeps sending",
    ofCampaign,
    async () => {
      api = await startStubApi();
      const body = JSON.stringify("x".repeat(6_000_000));
      for (let at = 0; at < 20; at++) {
        expect(await send("/v1/sessions", { body })).toMatchObject({ status: 413, code: "too_large" });
      }
    },
  );

  it("a body above its limit is refused also without a declared length", async () => {
    api = await startStubApi(undefined, { limits: { bodyBytes: 1000 } });
    const chunk = "x".repeat(500);
    const chunks = `1f4\r\n${chunk}\r\n`.repeat(3);
    const headers = [
      "Transfer-Encoding: chunked",
      "Authorization: Bearer admin",
      "Content-Type: application/json",
    ];
    const answer = await exchangeBytes(api.port, requestText(api.port, "POST /v1/sessions", headers, chunks));
    expect(statusOf(answer)).toBe(413);
  });

  it("a body of many items may be larger", async () => {
    api = await startStubApi(undefined, { limits: { bodyBytes: 1000, batchBytes: 3000 } });
    const lines = `{"lines":[${Array.from({ length: 100 }, () => '{"a":"123456789"}').join(",")}]}`;
    expect(await send("/v1/sessions/import", { body: lines })).toMatchObject({ status: 201 });
    expect(await send("/v1/sessions", { body: lines })).toMatchObject({ status: 413 });
  });

  it("a body may be left out if no field is required", async () => {
    api = await startStubApi();
    expect(await send("/v1/sessions/a1/cancel", { method: "POST" })).toMatchObject({ status: 202 });
    expect(await send("/v1/sessions/a1/pause", { body: "{}" })).toMatchObject({ status: 200 });
    expect(await send("/v1/sessions/a1/pause", { body: '{"x":1}' })).toMatchObject({ status: 422 });
  });
});

describe("arbitrary input", () => {
  it("an arbitrary body causes no internal error and does not end the process", async () => {
    api = await startStubApi(undefined, { limits: { bodyBytes: 10_000 } });
    const path = fc.constantFrom(
      "/v1/sessions",
      "/v1/sessions/a1/signals",
      "/v1/storage/commit",
      "/v1/schedules/s1",
      "/v1/tokens",
    );
    const text = fc.oneof(
      fc.json({ stringUnit: "binary" }),
      fc.string({ unit: "binary" }),
      fc.stringMatching(/^[{}[\]",:a0\\u ]{0,40}$/),
    );
    const member = fc.tuple(
      fc.constantFrom("agent", "input", "budget", "demands", "name", "changes", "start", "x"),
      text,
    );
    const body = fc.oneof(
      text,
      fc.array(member).map((members) => `{${members.map(([key, value]) => `"${key}":${value}`).join(",")}}`),
    );
    await fc.assert(
      fc.asyncProperty(path, fc.constantFrom("POST", "PUT", "GET"), body, async (target, method, sent) => {
        const { status } = await send(target, { method, ...(method === "GET" ? {} : { body: sent }) });
        expect(status).toBeLessThan(500);
      }),
      { numRuns: isCampaign ? 300 : 100 },
    );
  });

  it("an arbitrary path or query causes no internal error", async () => {
    api = await startStubApi();
    const odd = fc.stringMatching(/^[a-z0-9%/?&=.;:@\\#~+-]{0,40}$/);
    await fc.assert(
      fc.asyncProperty(odd, async (rest) => {
        const answer = await exchangeBytes(
          api.port,
          requestText(api.port, `GET /v1/sessions/${rest}`, ["Authorization: Bearer admin"]),
        );
        expect(statusOf(answer)).toBeLessThan(500);
      }),
      { numRuns: isCampaign ? 300 : 100 },
    );
  });
});

describe("a path and its query", () => {
  it.each([
    ["/v1/sessions/%zz", "GET", 400, "bad_path"],
    ["/v1/sessions/%ff", "GET", 400, "bad_path"],
    ["/v1/scripts/%252e%252e%252fetc", "GET", 404, "not_found"],
    ["/v1/nothing", "GET", 404, "not_found"],
    ["/v1/sessions/", "GET", 404, "not_found"],
    ["/v1/sessions//result", "GET", 404, "not_found"],
    ["/assets/..%2f..%2fpackage.json", "GET", 404, "not_found"],
    ["/holdfast.v1.SessionService/Nothing", "POST", 501, "not_implemented"],
    ["/v1/sessions", "PUT", 405, "method_not_allowed"],
    ["/openapi.json", "POST", 405, "method_not_allowed"],
    ["/v1/sessions?status=%27%20OR%201=1--", "GET", 422, "validation"],
    ["/v1/sessions?limit=0", "GET", 422, "validation"],
    ["/v1/sessions?limit=ten", "GET", 422, "validation"],
    ["/v1/sessions?limit=1&limit=2", "GET", 422, "validation"],
    ["/v1/sessions?lmit=1", "GET", 422, "validation"],
    ["/v1/sessions?token=admin", "GET", 422, "validation"],
    ["/v1/sessions/a1/cancel?mode=hard", "POST", 422, "validation"],
  ])("%s by %s is %s %s", async (path, method, status, code) => {
    api = await startStubApi();
    expect(await send(path, { method })).toMatchObject({ status, code });
  });

  it("another method is told which ones there are", async () => {
    api = await startStubApi();
    const { headers } = await send("/v1/sessions/a1", { method: "PATCH" });
    expect(headers.get("allow")).toBe("DELETE, GET");
  });

  it("a field of the path is refused in the body", async () => {
    api = await startStubApi();
    const { errors } = await send("/v1/sessions/a1/signals", { body: '{"name":"go","sessionId":"other"}' });
    expect(errors).toEqual([
      { pointer: "/sessionId", code: "unknown_property", message: "is not known: it is part of the path" },
    ]);
  });

  it("a path is decoded once", async () => {
    let received = "";
    api = await startStubApi((_desc, request) => void (received = (request as WatchRequest).sessionId));
    await send("/v1/sessions/a%252fb%2Fc%20d");
    expect(received).toBe("a%2fb/c d");
  });
});

describe("headers", () => {
  it("an idempotency key is the same as the field, and may not say another thing", async () => {
    let received: string | undefined;
    api = await startStubApi((_desc, request) => void (received = (request as StartRequest).idempotencyKey));
    const headers = { "idempotency-key": "k1" };
    expect(await send("/v1/sessions", { body: '{"agent":"a"}', headers })).toMatchObject({ status: 201 });
    expect(received).toBe("k1");
    const both = '{"agent":"a","idempotencyKey":"k2"}';
    expect(await send("/v1/sessions", { body: both, headers })).toMatchObject({ status: 422 });
    const long = { "idempotency-key": "k".repeat(300) };
    expect(await send("/v1/sessions", { body: '{"agent":"a"}', headers: long })).toMatchObject({
      status: 422,
    });
  });

  it("any Accept gets JSON", async () => {
    api = await startStubApi();
    for (const accept of ["image/png", "text/html", "*/*;q=x", ""]) {
      const { status, headers } = await send("/v1/sessions", { headers: { accept } });
      expect([status, headers.get("content-type")]).toEqual([200, "application/json"]);
    }
  });

  it("the headers of every answer forbid other pages to read and caches to keep it", async () => {
    api = await startStubApi();
    const origin = { origin: api.url };
    const answers = [
      await send("/v1/sessions"),
      await send("/v1/sessions", { token: "wrong", headers: origin }),
      await send("/v1/sessions", { headers: { origin: "https://evil.example" } }),
      await send("/v1/sessions", { method: "OPTIONS", headers: { origin: "https://evil.example" } }),
      await send("/v1/sessions/a1/watch"),
      await send("/holdfast.v1.SessionService/Get", { body: '{"sessionId":"a"}' }),
      await send("/openapi.json"),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 403, 403, 200, 200, 200]);
    for (const { headers } of answers) {
      expect(headers.get("access-control-allow-origin")).toBeNull();
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
      expect(headers.get("x-request-id")).toMatch(/^req_/);
    }
  });
});

describe("callers without a token", () => {
  it("a caller without a token gets the same bytes for existing and missing objects, except for the request's id", async () => {
    api = await startStubApi();
    const paths = ["/v1/sessions/a1", "/v1/sessions/unknown", "/v1/nothing", "/v1/%zz", "/metrics"];
    const answers = await Promise.all(paths.map((path) => send(path, { token: "wrong" })));
    const ids = answers.map(({ headers }) => headers.get("x-request-id")!);
    const texts = answers.map(({ text }, i) => text.replace(`"instance":"${ids[i]}"`, `"instance":""`));
    expect(new Set(texts).size).toBe(1);
    expect(texts[0]).toContain(`"instance":""`);
    expect(answers[0]).toMatchObject({ status: 401, code: "unauthenticated" });
    expect(answers[0]!.headers.get("www-authenticate")).toBe("Bearer");
  });

  it("a caller without a token may read the health and the contract", async () => {
    api = await startStubApi();
    for (const path of ["/livez", "/healthz", "/health", "/openapi.json"]) {
      expect(await send(path, { token: "wrong" })).toMatchObject({ status: 200 });
    }
  });
});

describe("an error of ours", () => {
  it("an internal error is answered with a fixed text and logged with its own", async () => {
    const reported: [HoldfastError, string][] = [];
    api = await startStubApi(
      () => {
        throw new Error("SELECT * FROM token; /srv/secret-path");
      },
      { onError: (error, requestId) => reported.push([error, requestId]) },
    );
    const rest = await send("/v1/sessions");
    const rpc = await send("/holdfast.v1.SessionService/List", { body: "{}" });
    expect([rest.status, rpc.status]).toEqual([500, 500]);
    expect(rest.text + rpc.text).not.toMatch(/SELECT|secret|\.ts:|at /);
    expect(reported.map(([{ message }]) => message)).toEqual(
      Array(2).fill("SELECT * FROM token; /srv/secret-path"),
    );
    expect(rest.text).toContain(reported[0]![1]);
  });
});

describe("rates", () => {
  it("let a burst through, then say when again; other tokens and admins are not touched", async () => {
    api = await startStubApi(undefined, {
      limits: { startsBurst: 3, startsPerSecond: 1 },
      monotonic: () => 0,
    });
    const startAs = (token: string) => send("/v1/sessions", { token, body: '{"agent":"a"}' });
    const statuses: number[] = [];
    for (let at = 0; at < 4; at++) statuses.push((await startAs("user-1")).status);
    expect(statuses).toEqual([201, 201, 201, 429]);
    expect((await startAs("user-1")).headers.get("retry-after")).toBe("1");
    expect((await send("/v1/sessions", { token: "user-1" })).status).toBe(200);
    expect((await startAs("user-2")).status).toBe(201);
    for (let at = 0; at < 5; at++) expect((await startAs("admin")).status).toBe(201);
  });
});

describe("a stream", () => {
  const record = (seq: number) =>
    create(WatchResponseSchema, {
      seq: BigInt(seq),
      event: { case: "record", value: Buffer.from(`{"n":\n${seq}}`) },
    });

  it("a stream has ids and names, and continues after the reader's last event", async () => {
    const asked: (bigint | undefined)[] = [];
    api = await startStubApi((_desc, request) => {
      asked.push((request as WatchRequest).afterSeq);
      return [record(7), create(WatchResponseSchema, { event: { case: "session", value: {} as never } })];
    });
    const first = await send("/v1/sessions/a1/watch");
    expect(first.headers.get("content-type")).toBe("text/event-stream");
    expect(first.text).toContain(
      'id: 7\nevent: record\ndata: {"seq":7,"record":{"n":\ndata: 7}}\n\nevent: session\n',
    );
    await send("/v1/sessions/a1/watch", { headers: { "last-event-id": "7" } });
    await send("/v1/sessions/a1/watch?afterSeq=8");
    expect(asked).toEqual([undefined, 7n, 8n]);
  });

  it.each(["x", "-1", "1.5", "99999999999999999"])(
    "a stream does not begin after an event that never was: %s",
    async (id) => {
      api = await startStubApi();
      const answer = await send("/v1/sessions/a1/watch", { headers: { "last-event-id": id } });
      expect(answer).toMatchObject({ status: 400, code: "bad_event_id" });
    },
  );

  it("a stream that is refused has a status and no events", async () => {
    api = await startStubApi(undefined, { services: [] });
    expect(await send("/v1/sessions/a1/watch")).toMatchObject({ status: 501, code: "not_implemented" });
  });

  it("that fails on its way says so in its last event", async () => {
    api = await startStubApi(async function* () {
      yield record(1);
      throw new Error("secret");
    });
    const { text } = await send("/v1/sessions/a1/watch");
    expect(text).toMatch(/id: 1\n[^]*event: error\ndata: \{.*"code":"internal".*\}\n\n$/);
    expect(text).not.toContain("secret");
  });

  it("that has nothing to say says so now and then", async () => {
    api = await startStubApi(quiet, { limits: { silentMs: 1, heartbeatMs: 5 } });
    const socket = await openSocket(api.port);
    socket.write(requestText(api.port, "GET /v1/sessions/a1/watch", ["Authorization: Bearer admin"]));
    const text = await readUntil(socket, ":\n\n\r\n3\r\n:\n\n");
    expect(text).toContain("200 OK");
  });

  it("a stream ends when its token is revoked", async () => {
    api = await startStubApi(quiet, { limits: { silentMs: 1, recheckMs: 5 } });
    const headers = { authorization: "Bearer user-1" };
    const watching = await fetch(`${api.url}/v1/sessions/a1/watch`, { headers });
    api.revoked.add("user-1");
    expect(watching.status).toBe(200);
    expect(await watching.text()).toContain('"code":"token_revoked"');
  });

  it("a stream counts against its token until it ends", ofCampaign, async () => {
    api = await startStubApi(quiet, { limits: { silentMs: 1, streamsPerToken: 2 } });
    const headers = { authorization: "Bearer user-1" };
    const over = new AbortController();
    const watch = () => fetch(`${api.url}/v1/sessions/a1/watch`, { headers, signal: over.signal });
    await Promise.all([watch(), watch()]);
    const third = await send("/v1/sessions/a1/watch", { token: "user-1" });
    expect([third.status, third.headers.get("retry-after")]).toEqual([429, "1"]);
    over.abort();
    await expect
      .poll(async () => (await fetch(`${api.url}/v1/sessions/a1/watch`, { headers })).status, {
        timeout: 15_000, // Vitest's own second is soon over where the machine is busy.
      })
      .toBe(200);
  });

  it("a stream is cut when its reader does not read, and never holds more than its limit", async () => {
    let sent = 0;
    const ended = Promise.withResolvers<void>();
    api = await startStubApi(
      async function* () {
        try {
          // Without backpressure, the test must fail before it uses all memory.
          while (sent < 1_000) {
            sent++;
            yield create(WatchResponseSchema, {
              event: { case: "record", value: Buffer.from(`"${"x".repeat(100_000)}"`) },
            });
          }
        } finally {
          ended.resolve();
        }
      },
      { limits: { unreadBytes: 300_000, stalledMs: 50 } },
    );
    const socket = await openSocket(api.port);
    socket.pause().write(requestText(api.port, "GET /v1/sessions/a1/watch", ["Authorization: Bearer admin"]));
    await ended.promise;
    // The two kernels buffer a few megabytes for a socket, which this test cannot control.
    expect(sent).toBeLessThan(200);
    socket.destroy();
  });
});

describe("the document", () => {
  it("the document has every method under its routes, and every reference in it resolves", async () => {
    api = await startStubApi();
    const { text } = await send("/openapi.json");
    const { paths, components } = JSON.parse(text) as {
      paths: Record<string, Record<string, { operationId?: string }>>;
      components: { schemas: Record<string, unknown> };
    };
    const operations = Object.values(paths).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    );
    // OpenAPI requires unique operation ids: further routes of a method have none.
    const methods = METHODS.map(({ name }) => name).sort();
    expect(operations.filter((id) => id !== undefined).sort()).toEqual(methods);
    const references = [...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name!);
    expect(references.filter((name) => !(name in components.schemas))).toEqual([]);
  });

  it("the document names the headers for fields, the required bodies and the values of maps", async () => {
    api = await startStubApi();
    const { paths, components } = JSON.parse((await send("/openapi.json")).text) as OpenApi;
    const headers = Object.entries(paths).flatMap(([path, operations]) =>
      Object.entries(operations).flatMap(([verb, { parameters = [] }]) =>
        parameters.filter(({ in: where }) => where === "header").map(({ name }) => `${verb} ${path} ${name}`),
      ),
    );
    expect(headers).toEqual([
      "post /v1/sessions Idempotency-Key",
      "post /v1/sessions/{sessionId}/signals Idempotency-Key",
      "post /v1/sessions/{sessionId}/answer Idempotency-Key",
      "get /v1/sessions/{sessionId}/watch Last-Event-ID",
    ]);
    expect(paths["/v1/sessions"]!["post"]!.requestBody).toMatchObject({ required: true });
    expect(paths["/v1/sessions/{sessionId}/cancel"]!["post"]!.requestBody).toMatchObject({ required: false });
    expect(components.schemas["StartRequest"]!.properties["demands"]).toMatchObject({
      maxProperties: 32,
      propertyNames: { pattern: "^[A-Za-z0-9][A-Za-z0-9._/-]{0,99}$" },
      additionalProperties: { type: "string", maxLength: 200 },
    });
  });

  it("lists the status of a cancel, and that of a second cancel, which changes nothing", async () => {
    api = await startStubApi();
    const { paths } = JSON.parse((await send("/openapi.json")).text) as {
      paths: Record<string, Record<string, { responses: object }>>;
    };
    const { responses } = paths["/v1/sessions/{sessionId}/cancel"]!["post"]!;
    expect(Object.keys(responses)).toEqual(["200", "202", "default"]);
    expect(Object.keys(paths["/v1/sessions/{sessionId}/pause"]!["post"]!.responses)).toHaveLength(2);
  });

  it("the document includes the contract's comments", async () => {
    api = await startStubApi();
    const { text } = await send("/openapi.json");
    const { paths, components, tags } = JSON.parse(text) as OpenApi;
    const { get } = paths["/v1/runs"]!;
    expect(get!.description).toMatch(/^Claimed runs first/);
    expect(get!.parameters!.find(({ name }) => name === "limit")!.description).toMatch(/^The largest number/);
    expect(components.schemas["Run"]!.properties["blocked"]!.description).toBe(
      "Queued: the reason why no runner has claimed it.",
    );
    expect(tags.map(({ name }) => name)).toContain("RunService");
    const reported = Object.values(paths).flatMap((path) =>
      Object.values(path).filter((each) => each.description),
    );
    expect(reported.length).toBeGreaterThan(20);
  });
});

interface OpenApi {
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          Described & {
            readonly parameters?: readonly (Described & { readonly name: string; readonly in: string })[];
            readonly requestBody?: unknown;
          }
        >
      >
    >
  >;
  readonly components: {
    readonly schemas: Readonly<Record<string, { readonly properties: Readonly<Record<string, Described>> }>>;
  };
}

interface Described {
  readonly description?: string;
}

describe("a service", () => {
  it("a service may answer with another status than the contract's", async () => {
    api = await startStubApi((_desc, _request, context) => setRestStatus(context, 200));
    expect(await send("/v1/sessions/a1/cancel", { method: "POST" })).toMatchObject({ status: 200 });
  });
});

async function* quiet(): AsyncGenerator<Message> {
  await new Promise(() => {});
  yield undefined as never;
}
