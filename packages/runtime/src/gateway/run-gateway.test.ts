import { HoldfastError } from "@holdfast/core";
import { Redactor } from "@holdfast/system";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { request as httpRequest, type RequestOptions } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { GatewayCall, GatewayRoutes } from "./gateway-routes.ts";
import { startRunGateway, type RunGateway } from "./run-gateway.ts";

const SECRET = "sk-CANARY-0123456789";
const run = { sessionId: "ses_1", runId: "run_1" };

let calls: GatewayCall[];
let gateway: RunGateway;
let folder: string;

const routes: GatewayRoutes = {
  "POST /events": async (call) => {
    calls.push(call);
    return { body: { ok: true } };
  },
  "GET /sessions/{sessionId}/affinity": async (call) => {
    calls.push(call);
    return { body: { of: call.sessionId, key: SECRET } };
  },
  "GET /children/{childId}": async ({ params }) => ({ body: params }),
  "PATCH /metadata": async () => ({}),
  "POST /conflict": async () => {
    throw new HoldfastError("session_ended", `it has ended, ${SECRET}`, { fix: `not ${SECRET}` });
  },
  "POST /broken": async () => {
    throw new TypeError(`a stack and ${SECRET}`);
  },
};

beforeEach(async () => {
  calls = [];
  folder = mkdtempSync(join(tmpdir(), "holdfast-gateway-"));
  gateway = await startRunGateway({ run, routes, redactor: new Redactor([SECRET]) });
});
afterEach(async () => {
  await gateway.close();
  rmSync(folder, { recursive: true, force: true });
});

const json = (body: unknown, method = "POST"): RequestInit => ({
  method,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

describe("a caller with the token", () => {
  test("an executor that sends no token is served by the token in its base URL", async () => {
    const answer = await fetch(`${gateway.url}/events`, json({ session_id: "ses_1", event_type: "result" }));
    expect([answer.status, await answer.json()]).toEqual([200, { ok: true }]);
    expect(calls).toMatchObject([{ ...run, body: { session_id: "ses_1", event_type: "result" } }]);
  });

  test("a caller may send the token as a bearer token, and then not in the URL", async () => {
    const headers = { authorization: `Bearer ${gateway.token}` };
    const answer = await fetch(`${gateway.origin}/sessions/ses_1/affinity?deep=yes`, { headers });
    expect(await answer.json()).toEqual({ of: "ses_1", key: "[secret]" });
    expect(calls).toMatchObject([{ ...run, query: { deep: "yes" } }]);
  });

  test("an answer without a body is a 204", async () => {
    const answer = await fetch(`${gateway.url}/metadata`, json({}, "PATCH"));
    expect([answer.status, await answer.text()]).toEqual([204, ""]);
  });

  test("a secret in a body, a path, a query, an answer or an error is replaced", async () => {
    await fetch(
      `${gateway.url}/events?q=${SECRET}`,
      json({ text: `x ${SECRET} ${gateway.token}`, [SECRET]: 1 }),
    );
    expect(calls[0]).toMatchObject({
      body: { text: "x [secret] [secret]", "[secret]": 1 },
      query: { q: "[secret]" },
    });
    const child = await fetch(`${gateway.url}/children/${SECRET}`);
    expect(await child.json()).toEqual({ childId: "[secret]" });
    const refused = await fetch(`${gateway.url}/conflict`, json({}));
    expect([refused.status, await refused.json()]).toEqual([
      409,
      expect.objectContaining({
        code: "session_ended",
        detail: "it has ended, [secret]",
        fix: "not [secret]",
      }),
    ]);
  });

  test("an error that nobody foresaw shows no text of its own", async () => {
    const answer = await fetch(`${gateway.url}/broken`, json({}));
    const text = await answer.text();
    expect(answer.status).toBe(500);
    expect(text).not.toContain("stack");
    expect(text).not.toContain("CANARY");
  });
});

describe("a request that is refused reaches no handler", () => {
  const refused: readonly (readonly [string, number, (gateway: RunGateway) => Promise<Response>])[] = [
    ["without a token", 401, ({ origin }) => fetch(`${origin}/events`, json({}))],
    [
      "with the token of another run",
      401,
      ({ origin, token }) => fetch(`${origin}/job/${token.replace(/.$/, "x")}/events`, json({})),
    ],
    ["about another session in its path", 403, ({ url }) => fetch(`${url}/sessions/ses_2/affinity`)],
    [
      "about another session in its body",
      403,
      ({ url }) => fetch(`${url}/events`, json({ session_id: "ses_2" })),
    ],
    ["to a route that is not allowed", 404, ({ url }) => fetch(`${url}/runner/register`, json({}))],
    ["to a route by a path with dots", 404, ({ url }) => fetch(`${url}/children/..%2f..%2fevents/x`)],
    ["by a method that is not allowed", 405, ({ url }) => fetch(`${url}/events`, { method: "DELETE" })],
    ["with a body that is no JSON", 400, ({ url }) => fetch(`${url}/events`, { ...json({}), body: "{" })],
    ["with a list as its body", 422, ({ url }) => fetch(`${url}/events`, json([]))],
    [
      "with a form as its body",
      415,
      ({ url }) => fetch(`${url}/events`, { method: "POST", body: new URLSearchParams({ a: "b" }) }),
    ],
    [
      "with more than a mebibyte",
      413,
      ({ url }) => fetch(`${url}/events`, json({ text: "x".repeat(1024 * 1024) })),
    ],
    [
      "of a web page",
      403,
      ({ url }) =>
        fetch(`${url}/events`, {
          ...json({}),
          headers: { origin: "null", "content-type": "application/json" },
        }),
    ],
  ];
  test.each(refused)("a request %s gets %d", async (_what, status, call) => {
    const answer = await call(gateway);
    expect(answer.status).toBe(status);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(await answer.json()).toMatchObject({ status, detail: expect.any(String) });
    expect(calls).toEqual([]);
  });

  test.each([
    ["a name that points here", { headers: { host: "evil.example" } }, 403],
    ["a target with a host", { path: "http://127.0.0.1/events" }, 400],
  ])("a request for %s is refused", async (_what, options, status) => {
    const { hostname, port, pathname } = new URL(gateway.url);
    const answer = await raw({ hostname, port, path: `${pathname}/events`, method: "POST", ...options });
    expect(answer.status).toBe(status);
    expect(calls).toEqual([]);
  });
});

test("a Unix socket is for its user only, and is gone with the gateway", async () => {
  const socketPath = join(folder, "run.sock");
  const umask = process.umask(0);
  const other = await startRunGateway({ run, routes, redactor: new Redactor(), socketPath });
  expect(process.umask(umask)).toBe(0);
  expect(statSync(socketPath).mode & 0o777).toBe(0o600);
  const path = `${new URL(other.url).pathname}/children/ses_3`;
  const answer = await raw({ socketPath, path, headers: { host: "localhost" } });
  expect(answer).toEqual({ status: 200, text: '{"childId":"ses_3"}' });
  await other.close();
  expect(() => statSync(socketPath)).toThrow("ENOENT");
});

test("after its end a gateway answers nothing, and a waiting call is aborted", async () => {
  const waiting = Promise.withResolvers<AbortSignal>();
  const other = await startRunGateway({
    run,
    redactor: new Redactor(),
    routes: {
      "GET /wait": async ({ signal }) => {
        waiting.resolve(signal);
        return new Promise<never>(() => {});
      },
    },
  });
  const call = fetch(`${other.url}/wait`);
  const signal = await waiting.promise;
  await other.close();
  expect(signal.aborted).toBe(true);
  await expect(call).rejects.toThrow("fetch failed");
  const { port } = new URL(other.url);
  const code = await new Promise((resolve) =>
    connect(Number(port), "127.0.0.1").on("error", (error: NodeJS.ErrnoException) => resolve(error.code)),
  );
  expect(code).toBe("ECONNREFUSED");
});

test("a route that is no method and path is refused at the start", async () => {
  const wrong = startRunGateway({ run, redactor: new Redactor(), routes: { "events ": async () => ({}) } });
  await expect(wrong).rejects.toThrow('"events " is no route of a gateway');
});

function raw(options: RequestOptions): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(options, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (chunk: string) => (text += chunk));
      answer.on("end", () => resolve({ status: answer.statusCode, text }));
    });
    sent.on("error", reject);
    sent.end();
  });
}
