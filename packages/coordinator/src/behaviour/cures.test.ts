// Cures of the errors of REST: each is met, its advice is followed, and the same call succeeds.
// `scripts/cures.test.ts` finds the rows by their first argument.

import { request, type OutgoingHttpHeaders } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openFleet, type FakeRunner, type Fleet, type Person } from "../testing/fleet.ts";

let fleet: Fleet;
let ada: Person;
let runner: FakeRunner;
beforeAll(async () => {
  fleet = await openFleet();
  ada = await fleet.user("ada");
  runner = await fleet.runner({ agents: ["lead"] });
});
afterAll(() => fleet.close());

interface Said {
  readonly status: number;
  readonly code?: string;
  /** The whole answer, with its advice. */
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test says of it is its type.
  readonly body: any;
}

const cure = (code: string, how: string, heal: (code: string) => Promise<void>): void =>
  test(`${code}: ${how}`, () => heal(code));

async function call(line: string, body?: string, headers: OutgoingHttpHeaders = {}): Promise<Said> {
  const [method = "", path = ""] = line.split(" ");
  return new Promise((resolve, reject) => {
    const sent = request(
      `${fleet.url}${path}`,
      {
        method,
        headers: {
          authorization: `Bearer ${ada.token}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.on("end", () => {
          const parsed = /^[{[]/.test(text) ? JSON.parse(text) : undefined;
          resolve({ status: response.statusCode ?? 0, code: parsed?.code, text, body: parsed });
        });
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

async function refused(
  code: string,
  advice: RegExp,
  line: string,
  body?: string,
  headers: OutgoingHttpHeaders = {},
): Promise<Said> {
  const said = await call(line, body, headers);
  expect(said).toMatchObject({ code });
  expect(said.text).toMatch(advice);
  return said;
}

async function works(line: string, body?: string, headers: OutgoingHttpHeaders = {}): Promise<Said> {
  const said = await call(line, body, headers);
  expect(said.status, said.text).toBeLessThan(300);
  return said;
}

const START = '{"agent":"greeter"}';

cure("validation", "correct the field that is pointed at", async (code) => {
  const { body } = await refused(code, /limit/, "GET /v1/sessions?limit=0");
  expect(body.errors).toMatchObject([{ pointer: "/limit" }]);
  await works("GET /v1/sessions?limit=1");
});

cure("malformed_json", "close what is open", async (code) => {
  await refused(code, /JSON/, "POST /v1/sessions", START.slice(0, -1));
  await works("POST /v1/sessions", START);
});

cure("bad_path", "encode the percent sign", async (code) => {
  await refused(code, /percent signs followed by two/, "GET /v1/sessions?agent=%zz");
  await works(`GET /v1/sessions?agent=${encodeURIComponent("%zz")}`);
});

cure("bad_request", "send each header once", async (code) => {
  const twice = { Authorization: [`Bearer ${ada.token}`, "x"] } as unknown as OutgoingHttpHeaders;
  await refused(code, /authorization is given more than once/, "POST /v1/sessions", START, twice);
  await works("POST /v1/sessions", START);
});

cure("bad_event_id", "watch from an event that was sent, or from the first", async (code) => {
  const { body } = await works("POST /v1/sessions", START);
  const path = `/v1/sessions/${body.sessionId}/watch`;
  await refused(code, /or nothing/, `GET ${path}?afterSeq=99`);
  const stop = new AbortController();
  const headers = { authorization: `Bearer ${ada.token}` };
  expect((await fetch(`${fleet.url}${path}`, { headers, signal: stop.signal })).status).toBe(200);
  stop.abort();
});

cure("unauthenticated", "send a token that an admin has made", async (code) => {
  const { text } = await refused(code, /kind registration/, "GET /v1/sessions", undefined, {
    authorization: "",
  });
  expect(text).toContain("Authorization: Bearer TOKEN");
  const made = await fleet.admin.post("/v1/tokens", { kind: "user", name: "new" });
  await works("GET /v1/sessions", undefined, { authorization: `Bearer ${made.body.secret}` });
});

cure("token_revoked", "have an admin make another token", async (code) => {
  const made = await fleet.admin.post("/v1/tokens", { kind: "user", name: "eve" });
  await fleet.admin.call("DELETE", `/v1/tokens/${made.body.token.tokenId}`);
  await refused(code, /token create/, "GET /v1/sessions", undefined, {
    authorization: `Bearer ${made.body.secret}`,
  });
  const other = await fleet.admin.post("/v1/tokens", { kind: "user", name: "eve" });
  await works("GET /v1/sessions", undefined, { authorization: `Bearer ${other.body.secret}` });
});

cure("insufficient_scope", "call it with a token of the kind that is expected", async (code) => {
  await refused(code, /"expected":"a token of kind admin"/, "GET /v1/tokens");
  await works("GET /v1/tokens", undefined, { authorization: `Bearer ${fleet.admin.token}` });
});

cure("forbidden", "start the child of the agent's own session", async (code) => {
  const sessionId = await ada.start({ agent: "lead" });
  const [claim] = (await runner.poll()).claims;
  const job = await runner.person.post(`/v1/runners/${runner.runnerId}/job-tokens`, {
    sessionId,
    token: claim?.token,
  });
  const authorization = `Bearer ${job.body.secret}`;
  await refused(code, /own parentSessionId/, "POST /v1/sessions", START, { authorization });
  const child = { agent: "greeter", invocation: "async_callback", parentSessionId: sessionId };
  await works("POST /v1/sessions", JSON.stringify(child), { authorization });
});

cure("forbidden_origin", "name the origin in the configuration", async (code) => {
  const origin = "https://console.example";
  await refused(code, /a configured one/, "GET /healthz", undefined, { origin });
  const configured = await openFleet({ config: { origins: [origin] } });
  expect((await configured.admin.call("GET", "/healthz", undefined, { origin })).status).toBe(200);
  await configured.close();
});

cure("not_found", "take a path of /openapi.json", async (code) => {
  const { text } = await refused(code, /`(.*)` for the paths/, "GET /v1/session");
  const [, advised] = /`(.*)` for the paths/.exec(text) ?? [];
  const { body } = await works(`GET ${advised}`);
  const path = Object.keys(body.paths).find((one) => one.startsWith("/v1/session"));
  await works(`GET ${path}`);
});

cure("method_not_allowed", "take a method that is expected", async (code) => {
  const { body } = await refused(code, /expected/, "PATCH /v1/sessions", "{}");
  const [method] = (body.expected as string).split(", ");
  await works(`${method} /v1/sessions`);
});

cure("not_implemented", "call a method that there is", async (code) => {
  const connect = "/holdfast.v1.SessionService";
  await refused("unimplemented", /not_implemented|does not exist/, `POST ${connect}/Lst`, "{}");
  expect(code).toBe("not_implemented");
  await works(`POST ${connect}/List`, "{}");
});

cure("unsupported_media_type", "send JSON", async (code) => {
  const { body } = await refused(code, /expected/, "POST /v1/sessions", START, {
    "content-type": "text/plain",
  });
  const [, type = ""] = /^Content-Type: (.*)$/.exec(body.expected as string) ?? [];
  await works("POST /v1/sessions", START, { "content-type": type });
});

cure("too_large", "stay below the limit", async (code) => {
  const { body } = await refused(code, /limit/, "POST /v1/sessions", inputOf(2 ** 21));
  const [, limit] = /at most (\d+)/.exec(body.expected as string) ?? [];
  await works("POST /v1/sessions", inputOf(Number(limit) / 2));
});

cure("headers_too_large", "send shorter headers", async (code) => {
  await refused(code, /shorter headers/, "GET /v1/sessions", undefined, { "x-large": "x".repeat(17_000) });
  await works("GET /v1/sessions", undefined, { "x-large": "x" });
});

cure("idempotency_conflict", "use another key for another request", async (code) => {
  const other = '{"agent":"other"}';
  await works("POST /v1/sessions", START, { "idempotency-key": "one" });
  await refused(code, /use another key/, "POST /v1/sessions", other, { "idempotency-key": "one" });
  await works("POST /v1/sessions", other, { "idempotency-key": "two" });
});

cure("session_not_found", "list the sessions", async (code) => {
  await works("POST /v1/sessions", START);
  await refused(code, /list the sessions/, "GET /v1/sessions/ses_none");
  const { body } = await works("GET /v1/sessions");
  await works(`GET /v1/sessions/${body.sessions[0].sessionId}`);
});

cure("schedule_not_found", "list the schedules", async (code) => {
  await works("PUT /v1/schedules/nightly", '{"cron":"0 2 * * *","start":{"agent":"greeter"}}');
  await refused(code, /list the schedules/, "DELETE /v1/schedules/nightli");
  const { body } = await works("GET /v1/schedules");
  await works(`DELETE /v1/schedules/${body.schedules[0].scheduleId}`);
});

cure("runner_not_found", "list the runners", async (code) => {
  const { body } = await fleet.admin.get("/v1/runners/rnr_none");
  expect(body).toMatchObject({ code, fix: expect.stringContaining("runners") });
  const listed = (await fleet.admin.get("/v1/runners")).body.runners;
  expect((await fleet.admin.get(`/v1/runners/${listed[0].runnerId}`)).status).toBe(200);
});

cure("token_not_found", "list the tokens", async (code) => {
  const { body } = await fleet.admin.call("DELETE", "/v1/tokens/tok_none");
  expect(body).toMatchObject({ code, fix: expect.stringContaining("token") });
  const { tokens } = (await fleet.admin.get("/v1/tokens")).body;
  const { tokenId } = tokens.find((one: { name: string }) => one.name === "new") ?? tokens[0];
  expect((await fleet.admin.call("DELETE", `/v1/tokens/${tokenId}`)).status).toBeLessThan(300);
});

cure("session_ended", "fork the session, and signal the fork", async (code) => {
  const ended = await cancelled();
  await refused(code, /fork it/, `POST /v1/sessions/${ended}/signals`, '{"name":"go"}');
  const { body } = await works(`POST /v1/sessions/${ended}/fork`, "{}");
  await works(`POST /v1/sessions/${body.sessionId}/signals`, '{"name":"go"}');
});

cure("run_terminal", "fork the session, and pause the fork", async (code) => {
  const ended = await cancelled();
  await refused(code, /fork it/, `POST /v1/sessions/${ended}/pause`, "{}");
  const { body } = await works(`POST /v1/sessions/${ended}/fork`, "{}");
  await works(`POST /v1/sessions/${body.sessionId}/pause`, "{}");
});

async function cancelled(): Promise<string> {
  const { body } = await works("POST /v1/sessions", START);
  await works(`POST /v1/sessions/${body.sessionId}/cancel`, '{"mode":"hard"}');
  return body.sessionId as string;
}

function inputOf(characters: number): string {
  return JSON.stringify({ agent: "greeter", input: "x".repeat(characters) });
}
