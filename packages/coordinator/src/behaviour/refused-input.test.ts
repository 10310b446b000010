// Refused input that takes one request each, with its status, code and place. One coordinator gets all of
// them and is healthy afterwards. `bad-input.test.ts` has the cases that take more than one request.

import { createHash, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exchangeBytes, requestText, statusOf } from "../api/testing/wire.ts";
import { openFleet, type Answer, type Fleet, type Person } from "../testing/fleet.ts";

let fleet: Fleet;
let ada: Person;
let bob: Person;
let sessionId: string;
beforeAll(async () => {
  fleet = await openFleet();
  [ada, bob] = [await fleet.user("ada"), await fleet.user("bob")];
  sessionId = await ada.start();
});
afterAll(async () => {
  try {
    expect(fleet.log).toEqual([]);
    expect((await fleet.admin.get("/v1/sessions")).status).toBe(200);
  } finally {
    await fleet.close();
  }
});

type Row = [
  what: string,
  line: string,
  body: string | undefined,
  status: number,
  code: string,
  pointer?: string,
];

const CHUNKED = "2\r\n{}\r\n0\r\n\r\n";
const TOO_LATE = String(Number.MAX_SAFE_INTEGER);

describe("refused", () => {
  test.each<Row>([
    ["a NUL in the path", "GET /v1/sessions/%00", undefined, 400, "bad_path"],
    ["a NUL in a filter", "GET /v1/runs?agent=%00", undefined, 422, "validation", "/agent"],
    ["a cursor that is none", "GET /v1/sessions?cursor=x", undefined, 422, "validation", "/cursor"],
    ["a cursor of runs that is none", "GET /v1/runs?cursor=x", undefined, 422, "validation", "/cursor"],
    ["a filter that is no UTF-8", "GET /v1/sessions?agent=%ff", undefined, 400, "bad_path"],
    ["a bad percent sign in a filter", "GET /v1/sessions?agent=%zz", undefined, 400, "bad_path"],
    ["a second question mark", "GET /v1/sessions??limit=1", undefined, 422, "validation", "/?limit"],
    [
      "a number above all numbers",
      "POST /v1/sessions",
      '{"agent":"a","input":[1e999]}',
      422,
      "validation",
      "/input",
    ],
    [
      "queued tasks by a schedule",
      "PUT /v1/schedules/s",
      '{"cron":"* * * * *","start":{"agent":"task:a"}}',
      422,
      "usage",
    ],
    ["a schedule that is not there", "DELETE /v1/schedules/none", undefined, 404, "schedule_not_found"],
    ["a budget where there is none", "PATCH /v1/sessions/OWN/budget", '{"maxTokens":5}', 422, "usage"],
    ["no such path", "GET /v1/sesions", undefined, 404, "not_found"],
    ["arguments of another read", "POST /v1/storage/read", '{"query":"schedules","params":[]}', 422, "usage"],
    ["a negative limit", "GET /v1/sessions?limit=-1", undefined, 422, "validation", "/limit"],
    ["an unknown parameter", "GET /v1/sessions?staus=x", undefined, 422, "validation", "/staus"],
    ["what follows the JSON", "POST /v1/sessions", '{"agent":"a"}x', 400, "malformed_json"],
    ["a byte-order mark", "POST /v1/sessions", '\uFEFF{"agent":"a"}', 400, "malformed_json"],
    ["a key twice", "POST /v1/sessions", '{"agent":"a","agent":"b"}', 422, "validation", "/agent"],
    [
      "a demand twice",
      "POST /v1/sessions",
      '{"agent":"a","demands":{"gpu":"1","gpu":"2"}}',
      422,
      "validation",
      "/demands/gpu",
    ],
    ["__proto__", "POST /v1/sessions", '{"agent":"a","__proto__":{}}', 422, "validation", "/__proto__"],
    [
      "half of a surrogate pair in a name",
      "POST /v1/sessions",
      '{"agent":"a","agentVersion":"\\ud800"}',
      422,
      "validation",
      "/agentVersion",
    ],
    ["no limit where one must be", "POST /v1/storage/due", "{}", 422, "validation", "/limit"],
    ["an entry that is not there", "POST /v1/storage/conversation", "OWN", 404, "not_found"],
    [
      "a time-out beyond all integers",
      "POST /v1/sessions",
      `{"agent":"a","timeoutMs":${TOO_LATE}}`,
      422,
      "validation",
      "/timeoutMs",
    ],
    [
      "a budget's time beyond all integers",
      "POST /v1/sessions",
      `{"agent":"a","budget":{"ttlMs":${TOO_LATE}}}`,
      422,
      "validation",
      "/budget/ttlMs",
    ],
  ])("%s", async (_, line, body, status, code, pointer) => {
    const own = JSON.stringify({ sessionId, leaf: 7 });
    const answer = await send(line.replace("OWN", sessionId), body === "OWN" ? own : body);
    expect([answer.status, answer.json.code]).toEqual([status, code]);
    expect(answer.json.fix ?? answer.json.expected).toEqual(expect.any(String));
    const pointers = (answer.json.errors ?? []).map((error: { pointer: string }) => error.pointer);
    expect(pointers).toEqual(pointer === undefined ? [] : [pointer]);
  });

  test("a request without a host is refused like one with two hosts", async () => {
    const answer = await exchangeBytes(
      Number(new URL(fleet.url).port),
      "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n",
    );
    expect(statusOf(answer)).toBe(400);
    expect(answer).toContain("application/problem+json");
  });

  test.each([
    ["GET /v1/tokens?cursor=ses_1", "/cursor"],
    ["GET /v1/runners?cursor=ses_1", "/cursor"],
    ['POST /v1/tokens {"kind":"registration","name":"r","ttlMs":7200000}', "/ttlMs"],
    [`POST /v1/tokens {"kind":"user","name":"u","ttlMs":${TOO_LATE}}`, "/ttlMs"],
  ])("an admin's, too: %s", async (line, pointer) => {
    const [verb, path, body] = line.split(" ");
    const answer = await fleet.admin.call(verb!, path!, body === undefined ? undefined : JSON.parse(body));
    expect(answer).toMatchObject({ status: 422, body: { errors: [{ pointer }] } });
  });

  test("an escaped path is the same path, also without a token", async () => {
    expect((await send("GET /%761/sessions", undefined)).status).toBe(200);
    expect((await send("GET /%761/sessions", undefined, { authorization: "" })).status).toBe(401);
  });

  test.each(["/healthz", "/openapi.json"])("a HEAD is a GET without its body: %s", async (path) => {
    const answer = await fetch(`${fleet.url}${path}`, { method: "HEAD" });
    expect([answer.status, await answer.text()]).toEqual([200, ""]);
  });

  test.each([
    ["a proxy is asked for", "CONNECT x:1", [], 400],
    ["a body that is compressed on its way", "POST /v1/sessions", ["Transfer-Encoding: gzip, chunked"], 415],
    ["an expectation that nobody has", "GET /healthz", ["Expect: a-miracle"], 200],
  ] as const)("%s: the answer has a status", async (_, line, headers, status) => {
    const port = Number(new URL(fleet.url).port);
    const all = [`Authorization: Bearer ${ada.token}`, "Content-Type: application/json", ...headers];
    const answer = await exchangeBytes(
      port,
      requestText(port, line, all, line.startsWith("POST") ? CHUNKED : ""),
    );
    expect(statusOf(answer)).toBe(status);
    expect(answer).toContain(status === 200 ? '{"status":"ok"}' : '"expected"');
  });

  test("an idempotency key is refused by methods that ignore it, because a repeat would not be safe", async () => {
    const answer = await send(`POST /v1/sessions/${sessionId}/fork`, "{}", { "idempotency-key": "k" });
    expect(answer).toMatchObject({ status: 422, json: { errors: [{ pointer: "/idempotencyKey" }] } });
  });

  test("a value that Connect cannot read is reported by its place, and a secret in the wrong field is not quoted", async () => {
    const secret = "hf_usr_0123456789";
    const start = "POST /holdfast.v1.SessionService/Start";
    for (const body of [
      `{"agent":"a","timeoutMs":"${secret}"}`,
      `{"agent":"a","demands":["${secret}"]}`,
      secret,
    ]) {
      const { status, json } = await send(start, body);
      expect(status).toBe(400);
      expect(JSON.stringify(json)).not.toContain(secret);
      expect(json.details).toHaveLength(1);
    }
    const { json } = await send(start, Buffer.from('{"agent":"a","agentVersion":"\xff"}', "latin1"));
    expect(json.message).toContain("UTF-8");
  });

  test.each([
    ["POST", { "content-type": "text/xml" }, 415],
    ["PUT", {}, 405],
  ])("Connect by %s with %o is answered in Connect's form", async (verb, headers, status) => {
    const answer = await send(`${verb} /holdfast.v1.SessionService/Start`, "{}", headers);
    expect(answer).toMatchObject({ status, json: { expected: expect.any(String) } });
  });

  test("REST with the type of gRPC is refused like any other type", async () => {
    const { status } = await send("POST /v1/sessions", "{}", { "content-type": "application/grpc" });
    expect(status).toBe(415);
  });

  test("more mistakes than anybody reads: counted, and told up to a hundred", async () => {
    const unknown = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`agen${i}`, 1]));
    const { json } = await send("POST /v1/sessions", JSON.stringify(unknown));
    expect(json.errors).toHaveLength(100);
    expect(json.detail).toContain("5000 more");
  });

  test("a registration token that was used: as everybody who is not known, with a challenge", async () => {
    const token = await fleet.coordinator.createToken({ kind: "registration", name: "r" });
    const register = (process: string): Promise<Response> =>
      fetch(`${fleet.url}/v1/runners/register`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify({
          protocol: 1,
          hostname: "h",
          agents: [],
          maxRuns: 1,
          process: process.repeat(32),
        }),
      });
    expect((await register("a")).status).toBe(200);
    const { status, headers } = await register("b");
    expect([status, headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
  });

  test("a token where its id belongs is not told back", async () => {
    const answer = await fleet.admin.call("DELETE", `/v1/tokens/${ada.token}`);
    expect(answer).toMatchObject({ status: 404, body: { code: "token_not_found" } });
    expect(JSON.stringify(answer.body)).not.toContain(ada.token);
  });

  test("X13: a place in a list of the storage port reveals no other user's session", async () => {
    const below = (before: string): Promise<Answer> =>
      bob.post("/v1/storage/read", { query: "sessions", params: { limit: 1, before } });
    expect([(await below(sessionId)).status, (await below("ses_unknown")).status]).toEqual([404, 404]);
  });

  test("X13: another user's session as a cursor is refused as one that is not there", async () => {
    const others = await bob.get(`/v1/sessions?cursor=${sessionId}`);
    const unknown = await bob.get("/v1/sessions?cursor=ses_unknown");
    expect([others.status, unknown.status]).toEqual([422, 422]);
    const [first, second] = [others, unknown].map(({ body }) => ({ ...body, instance: "" }));
    expect(first).toEqual(second);
  });
});

// Each of these made an answer that nobody could read, or a list that failed for everybody.
describe("a user's runtime stores nothing that breaks what others are told", () => {
  test.each<[what: string, creation: object]>([
    ["an input that is no JSON", { input: "{bad" }],
    ["an input that ends its member", { input: '1,"status":"completed"' }],
    ["a priority that is no integer", { placement: { priority: 0.5 } }],
    ["a priority of more than 32 bits", { placement: { priority: 2 ** 40 } }],
    ["a depth of more than 32 bits", { depth: 2 ** 40 }],
    ["a deadline that is no time", { deadlineAt: 1e300 }],
  ])("%s", async (_, creation) => {
    const id = `made-${randomUUID()}`;
    const agent = { name: "a", version: "1" };
    const change = {
      type: "create_session",
      sessionId: id,
      agent,
      seed: 1,
      flags: 0,
      format: 1,
      ...creation,
    };
    expect(await ada.post("/v1/storage/commit", { changes: [change] })).toMatchObject({
      status: 422,
      body: { code: "usage", at: "changes/0" },
    });
    expect(await fleet.storage.reader.session(id)).toBeUndefined();
  });

  // Its checksum says that nothing was damaged, and not that we wrote it.
  test.each<[what: string, change: (session: Record<string, unknown>) => void]>([
    ["waits that are none", (session) => (session["waits"] = [{ type: "timer", id: "x" }])],
    ["a depth that is no number", (session) => (session["depth"] = null)],
    ["an input that is no JSON", (session) => (session["input"] = "{bad")],
    ["a time beyond all integers", (session) => (session["createdAt"] = 1e300)],
    ["no payers", (session) => delete session["payers"]],
  ])("a forged session file: %s", async (_, change) => {
    const exported = await fetch(`${fleet.url}/v1/sessions/${sessionId}/export`, {
      headers: { authorization: `Bearer ${ada.token}` },
    });
    const [header] = [...(await exported.text()).matchAll(/^data: (.*)$/gm)].map(
      ([, data]) => (JSON.parse(data!) as { line: { session: Record<string, unknown> } }).line,
    );
    change(header!.session);
    const line = JSON.stringify(header);
    const sha256 = createHash("sha256").update(`${line}\n`).digest("hex");
    const body = { sessionId: `forged-${randomUUID()}`, lines: [header, { sha256 }] };
    const answer = await ada.post("/v1/sessions/import", body);
    expect(answer).toMatchObject({
      status: 422,
      body: { code: "usage", at: "lines", fix: expect.any(String) },
    });
    expect(await fleet.storage.reader.session(body.sessionId)).toBeUndefined();
  });

  test("a schedule whose times are no integers", async () => {
    const schedule = {
      scheduleId: "fractions",
      cron: "* * * * *",
      timeZone: "UTC",
      action: { type: "start", agent: { name: "a", version: "1" } },
      nextAt: 9e14 + 0.5,
      lastAt: 0.5,
      createdAt: 1.5,
    };
    expect(
      await ada.post("/v1/storage/commit", { changes: [{ type: "put_schedule", schedule }] }),
    ).toMatchObject({
      status: 200,
    });
    expect(await fleet.admin.get("/v1/schedules")).toMatchObject({ status: 200 });
    expect((await fleet.admin.call("DELETE", "/v1/schedules/fractions")).status).toBe(200);
  });
});

async function send(
  line: string,
  body: string | Buffer | undefined,
  headers: Record<string, string> = {},
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test says of it is its type.
): Promise<{ readonly status: number; readonly json: any }> {
  const [method, path] = line.split(" ");
  const response = await fetch(`${fleet.url}${path!}`, {
    method: method!,
    headers: { authorization: `Bearer ${ada.token}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: new Uint8Array(Buffer.from(body)) }),
  });
  return { status: response.status, json: await response.json() };
}
