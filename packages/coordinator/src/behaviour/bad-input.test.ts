// The bad inputs to the API that every release is tried with, over a whole coordinator.
//
// A case's `/runs` is `/sessions` here, and its claims are polls. Its batches and completions are commits,
// where `fenced` and the like are results of changes. After each case the coordinator must still be healthy.

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it, test } from "vitest";
import { exchangeBytes, openSocket, readToEnd, requestText, statusOf } from "../api/testing/wire.ts";
import { openFleet, type Fleet, type FleetOptions } from "../testing/fleet.ts";

let fleet: Fleet;
afterEach(async () => {
  try {
    expect(await statusesOf([["GET", "/healthz", undefined]])).toEqual([200]);
  } finally {
    await fleet.close();
  }
});

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
  readonly code?: string;
  readonly errors?: readonly { readonly pointer: string; readonly message: string }[];
  readonly sessionId?: string;
}

interface Asked {
  readonly token?: string | undefined;
  readonly headers?: Record<string, string>;
  /** As it is sent; anything else than a text is written as JSON. */
  readonly body?: unknown;
}

async function ask(
  verb: string,
  path: string,
  { token = fleet.admin.token, headers = {}, body }: Asked = {},
): Promise<Answer> {
  const response = await fetch(`${fleet.url}${path}`, {
    method: verb,
    headers: {
      ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const type = response.headers.get("content-type") ?? "";
  const json = (type.includes("json") ? JSON.parse(text) : {}) as { instance?: string };
  if (type === "application/problem+json") expect(json.instance).toBe(response.headers.get("x-request-id"));
  return {
    ...json,
    status: response.status,
    text,
    headers: response.headers,
  };
}

async function statusesOf(asked: readonly (readonly [string, string, unknown])[]): Promise<number[]> {
  const statuses: number[] = [];
  for (const [verb, path, body] of asked) statuses.push((await ask(verb, path, { body })).status);
  return statuses;
}

const start = (body: unknown, asked: Omit<Asked, "body"> = {}): Promise<Answer> =>
  ask("POST", "/v1/sessions", { ...asked, body });

async function sessionCount(): Promise<number> {
  return (await fleet.storage.reader.sessions({ limit: 100 })).length;
}

/** An answer without what names this one request and what it asked for. */
function alike({ text, status }: Answer, id?: string): string {
  const shown = `${status} ${text.replace(/"instance":"[^"]*",/, "")}`;
  return id === undefined ? shown : shown.replaceAll(id, "ID");
}

interface Case {
  readonly what: string;
  readonly options?: FleetOptions;
  /** @returns the statuses that were answered, in order. */
  readonly run: () => Promise<readonly number[]>;
}

const CASES: Readonly<Record<string, Case>> = {
  A01: {
    what: "no credentials",
    run: async () => {
      const sessionId = await fleet.admin.start();
      const known = await ask("GET", `/v1/sessions/${sessionId}`, { token: "" });
      const unknown = await ask("GET", "/v1/sessions/unknown", { token: "" });
      expect(alike(known)).toBe(alike(unknown));
      expect(known.headers.get("www-authenticate")).toBe("Bearer");
      return [known.status];
    },
  },
  A03: {
    what: "a wrong token of the right length, also one that begins as a right one",
    run: async () => {
      const { token } = fleet.admin;
      const changed = `${token.slice(0, -1)}${token.endsWith("a") ? "b" : "a"}`;
      const prefix = `${token.slice(0, 9)}${"0".repeat(token.length - 9)}`;
      return [
        (await ask("GET", "/v1/sessions", { token: changed })).status,
        (await ask("GET", "/v1/sessions", { token: prefix })).status,
      ];
    },
  },
  A05: {
    what: "a revoked token, also on an open stream",
    options: { config: { limits: { silentMs: 1, recheckMs: 10 } } },
    run: async () => {
      const ada = await fleet.user("ada");
      const sessionId = await ada.start();
      const watched = ask("GET", `/v1/sessions/${sessionId}/watch`, { token: ada.token });
      const { tokens } = (await fleet.admin.get("/v1/tokens")).body as {
        tokens: { tokenId: string; name: string }[];
      };
      const { tokenId } = tokens.find(({ name }) => name === "ada")!;
      expect(await statusesOf([["DELETE", `/v1/tokens/${tokenId}`, undefined]])).toEqual([200]);
      const answer = await ask("GET", "/v1/sessions", { token: ada.token });
      expect((await watched).text).toContain("event: error");
      return [answer.status];
    },
  },
  A07: {
    what: "a user's token on a runner's route",
    run: async () => {
      const runner = await fleet.runner();
      const ada = await fleet.user("ada");
      const answer = await ask("POST", `/v1/runners/${runner.runnerId}/poll`, {
        token: ada.token,
        body: { pollId: "p" },
      });
      expect(answer.code).toBe("insufficient_scope");
      return [answer.status];
    },
  },
  A09: {
    what: "a job's token on another session",
    run: async () => {
      const runner = await fleet.runner();
      const sessionIds = [await fleet.admin.start(), await fleet.admin.start()];
      const [claim, other] = (await runner.poll({ free: 2 })).claims;
      expect([claim!.sessionId, other!.sessionId].toSorted()).toEqual(sessionIds.toSorted());
      const { body } = await runner.person.post(`/v1/runners/${runner.runnerId}/job-tokens`, {
        sessionId: claim!.sessionId,
        token: claim!.token,
      });
      const token = body.secret as string;
      const own = await ask("POST", `/v1/sessions/${claim!.sessionId}/signals`, {
        token,
        body: { name: "go" },
      });
      expect(own.status).toBe(202);
      const path = `/v1/sessions/${other!.sessionId}`;
      const foreign = await ask("POST", `${path}/signals`, { token, body: { name: "go" } });
      const looked = await ask("GET", `${path}/entries`, { token });
      expect(await fleet.storage.reader.pendingSignals(other!.sessionId)).toEqual([]);
      return [foreign.status, looked.status];
    },
  },
  A11: {
    what: "another user's session",
    run: async () => {
      const ada = await fleet.user("ada");
      const bob = await fleet.user("bob");
      const sessionId = await ada.start();
      const others = await ask("GET", `/v1/sessions/${sessionId}`, { token: bob.token });
      const unknown = await ask("GET", "/v1/sessions/ses_unknown", { token: bob.token });
      expect(alike(others, sessionId)).toBe(alike(unknown, "ses_unknown"));
      return [others.status];
    },
  },
  A13: {
    what: "a stale token of a claim: fenced, and nothing is written",
    run: async () => {
      const runner = await fleet.runner();
      const sessionId = await fleet.admin.start();
      const { claims } = await runner.poll();
      const stale = { ...claims[0]!, token: claims[0]!.token - 1 };
      expect(await runner.complete(stale)).toMatchObject({ status: "fenced" });
      expect(await fleet.storage.reader.session(sessionId)).toMatchObject({
        nextSeq: 0,
        status: "submitted",
      });
      return [409]; // Said per change: the answer of a group is 200.
    },
  },
  A15: {
    what: "a foreign Origin",
    run: async () => {
      const answer = await start({ agent: "greeter" }, { headers: { origin: "https://evil.example" } });
      expect(answer.headers.get("access-control-allow-origin")).toBeNull();
      expect(await sessionCount()).toBe(0);
      return [answer.status];
    },
  },
  A17: {
    what: "a preflight from a foreign origin",
    run: async () => {
      const headers = { origin: "https://evil.example", "access-control-request-method": "POST" };
      const answer = await ask("OPTIONS", "/v1/sessions", { headers, token: "" });
      expect(answer.headers.get("access-control-allow-origin")).toBeNull();
      return [answer.status];
    },
  },
  A19: {
    what: "a target in absolute form",
    run: async () => [statusOf(await raw("GET http://evil.example/v1/sessions"))],
  },
  A21: {
    what: "properties that are not the caller's to set",
    run: async () => {
      const answer = await start('{"agent":"ok","status":"completed","epoch":99,"owner":"root"}');
      expect(pointersOf(answer)).toEqual(["/status", "/epoch", "/owner"]);
      expect(await sessionCount()).toBe(0);
      return [answer.status];
    },
  },
  A23: {
    what: "another runner's id",
    run: async () => {
      const [first, second] = [await fleet.runner({ hostname: "host1" }), await fleet.runner()];
      expect(first.runnerId).not.toContain("host1");
      const { token } = second.person;
      const polled = await ask("POST", `/v1/runners/${first.runnerId}/poll`, {
        token,
        body: { pollId: "p", waitMs: 0 },
      });
      const looked = await ask("GET", `/v1/runners/${first.runnerId}`, { token });
      expect([403, 404]).toContain(looked.status);
      return [polled.status];
    },
  },
  A25: { what: "an empty body", run: async () => [(await ask("POST", "/v1/sessions")).status] },
  A27: {
    what: "an unknown property",
    run: async () => {
      const answer = await start('{"agnet":"ok"}');
      expect(answer.text).toContain("did you mean agent?");
      expect(pointersOf(answer)).toContain("/agnet");
      return [answer.status];
    },
  },
  A29: {
    what: "several errors at once",
    run: async () => {
      const answer = await start('{"agent":5,"budget":{"maxUsd":-1}}');
      expect(pointersOf(answer)).toEqual(["/agent", "/budget/maxUsd"]);
      return [answer.status];
    },
  },
  A31: {
    what: "10,000 lists inside of one another",
    run: async () => {
      const answer = await start(`{"agent":"greeter","input":${"[".repeat(10_000)}${"]".repeat(10_000)}}`);
      expect(answer.text).toContain("too_deep");
      return [answer.status];
    },
  },
  A33: {
    what: "NUL in a text comes back to the byte",
    run: async () => {
      const answer = await start('{"agent":"greeter","input":{"a":"x\\u0000y\\ud800"}}');
      const { text } = await ask("GET", `/v1/sessions/${answer.sessionId}`);
      expect(text).toContain('"input":{"a":"x\\u0000y\\ud800"}');
      return [answer.status];
    },
  },
  A35: {
    what: "an integer above 2^53",
    run: async () => {
      const answer = await start('{"agent":"greeter","budget":{"maxTokens":9007199254740993}}');
      expect(pointersOf(answer)).toEqual(["/budget/maxTokens"]);
      return [answer.status];
    },
  },
  A37: {
    what: "a body over its limit, before it is read",
    run: async () => {
      const answer = await raw("POST /v1/sessions", [
        `Authorization: Bearer ${fleet.admin.token}`,
        "Content-Length: 1048577",
      ]);
      expect(answer).toContain("1048576");
      return [statusOf(answer)];
    },
  },
  A39: {
    what: "a compressed body",
    run: async () => [(await start("{}", { headers: { "content-encoding": "gzip" } })).status],
  },
  A41: {
    what: "slow headers, while others are served",
    options: { config: { limits: { headerMs: 100 } } },
    run: async () => {
      const { port } = new URL(fleet.url);
      const sockets = await Promise.all(Array.from({ length: 50 }, () => openSocket(Number(port))));
      const answers = sockets.map((socket) => {
        socket.write("GET /healthz HTT");
        return readToEnd(socket);
      });
      expect((await ask("GET", "/healthz")).status).toBe(200);
      return [...new Set((await Promise.all(answers)).map(statusOf))];
    },
  },
  A43: {
    what: "a length and chunks at once",
    run: async () => [
      statusOf(await raw("POST /v1/sessions", ["Content-Length: 2", "Transfer-Encoding: chunked"], "{}")),
    ],
  },
  A45: { what: "a bad percent sign", run: async () => [(await ask("GET", "/v1/sessions/%zz")).status] },
  A47: {
    what: "a path encoded twice",
    run: async () => [(await ask("GET", "/v1/scripts/%252e%252e%252fetc")).status],
  },
  A49: {
    what: "a filter that is a statement",
    run: async () => {
      const answer = await ask("GET", "/v1/sessions?status=%27%20OR%201=1--");
      expect(answer.text).toContain("submitted, working, waiting");
      return [answer.status];
    },
  },
  A51: {
    what: "an Accept that nobody can serve gets JSON anyway",
    run: async () => {
      const { status, headers } = await ask("GET", "/v1/sessions", { headers: { accept: "image/png" } });
      expect([status, headers.get("content-type")]).toEqual([200, "application/json"]);
      return [406]; // Or JSON, as the case allows.
    },
  },
  A53: {
    what: "an idempotency key twice, and with another body",
    run: async () => {
      const headers = { "idempotency-key": "k1" };
      const answers = [
        await start({ agent: "greeter" }, { headers }),
        await start({ agent: "greeter" }, { headers }),
      ];
      expect(answers[0]!.sessionId).toBe(answers[1]!.sessionId);
      expect((await start({ agent: "greeter", input: 1 }, { headers })).status).toBe(409);
      expect(await sessionCount()).toBe(1);
      return answers.map(({ status }) => status);
    },
  },
  A55: {
    what: "the same key, 20 at once",
    run: async () => {
      const headers = { "idempotency-key": "k1" };
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => start({ agent: "greeter" }, { headers })),
      );
      expect(new Set(answers.map(({ sessionId }) => sessionId)).size).toBe(1);
      expect(await sessionCount()).toBe(1);
      return [];
    },
  },
  A59: {
    what: "a demand that no runner meets",
    run: async () => {
      await fleet.runner();
      const answer = await start({ agent: "greeter", demands: { gpu: "9" } });
      // The unmet need becomes `blocked` after the next sweep, within five seconds: see `defects.test.ts`.
      expect((await ask("GET", `/v1/sessions/${answer.sessionId}`)).text).toContain('"status":"submitted"');
      return [answer.status];
    },
  },
  A61: {
    what: "names of signals that are none",
    run: async () => {
      const sessionId = await fleet.admin.start();
      const names = ["", "x".repeat(257), "a\nb", "../x"];
      const answers = await Promise.all(
        names.map((name) => ask("POST", `/v1/sessions/${sessionId}/signals`, { body: { name } })),
      );
      expect(answers.map(pointersOf)).toEqual(names.map(() => ["/name"]));
      return [...new Set(answers.map(({ status }) => status))];
    },
  },
  A63: {
    what: "a signal before anybody waits for it",
    run: async () => {
      const sessionId = await fleet.admin.start();
      const answer = await ask("POST", `/v1/sessions/${sessionId}/signals`, {
        body: { name: "go", payload: { a: 1 } },
      });
      expect(await fleet.storage.reader.pendingSignals(sessionId)).toMatchObject([
        { name: "go", payload: '{"a":1}' },
      ]);
      return [answer.status];
    },
  },
  A65: {
    what: "one bad change of five: nothing is applied",
    run: async () => {
      const sessionId = await fleet.admin.start();
      const signal = (at: number) => ({
        type: "send_signal",
        sessionId,
        signalId: `sig_${at}`,
        name: "go",
        payload: "1",
      });
      const changes = [signal(0), signal(1), { type: "sned_signal" }, signal(3), signal(4)];
      const answer = await ask("POST", "/v1/storage/commit", { body: { changes } });
      expect(answer.text).toMatch(/changes[/[.]2/);
      expect(await fleet.storage.reader.pendingSignals(sessionId)).toEqual([]);
      return [answer.status];
    },
  },
  A67: {
    what: "a batch sent again after its answer was lost",
    run: async () => {
      const runner = await fleet.runner();
      await fleet.admin.start();
      const { claims } = await runner.poll();
      const batch = () => runner.say(claims[0]!, { status: "working" });
      const [first, second] = [await batch(), await batch()];
      expect([first.status, second.status]).toEqual(["committed", "committed"]);
      return [200];
    },
  },
  A69: {
    what: "completed twice, and then otherwise",
    run: async () => {
      const runner = await fleet.runner();
      const sessionId = await fleet.admin.start();
      const { claims } = await runner.poll();
      expect(await runner.complete(claims[0]!, { a: 1 })).toMatchObject({ status: "committed" });
      const other = await runner.complete(claims[0]!, { a: 2 });
      expect(other.status).not.toBe("committed");
      expect(await fleet.storage.reader.session(sessionId)).toMatchObject({
        status: "completed",
        output: '{"a":1}',
      });
      return [200, 409];
    },
  },
  A71: {
    what: "a cancel of what has ended, and two of what has not",
    run: async () => {
      const runner = await fleet.runner();
      await fleet.admin.start();
      const { claims } = await runner.poll();
      await runner.complete(claims[0]!);
      const ended = await ask("POST", `/v1/sessions/${claims[0]!.sessionId}/cancel`, { body: {} });
      expect(ended.code).toBe("run_terminal");
      const sessionId = await fleet.admin.start();
      await runner.poll();
      const first = await ask("POST", `/v1/sessions/${sessionId}/cancel`, { body: {} });
      const second = await ask("POST", `/v1/sessions/${sessionId}/cancel`, { body: {} });
      expect([ended, first, second].map(({ status }) => status)).toEqual([409, 202, 200]);
      return [ended.status, first.status, second.status];
    },
  },
  A73: {
    what: "runners of other protocols",
    run: async () => {
      const answers: Answer[] = [];
      for (const protocol of [0, 999]) {
        const token = await fleet.coordinator.createToken({ kind: "registration", name: "r" });
        const body = { protocol, hostname: "h", agents: [{ name: "greeter" }], maxRuns: 1 };
        answers.push(await ask("POST", "/v1/runners/register", { token, body }));
      }
      expect(answers.map(({ code }) => code)).toEqual(["unsupported_protocol", "unsupported_protocol"]);
      return answers.map(({ status }) => status);
    },
  },
  A75: {
    what: "a Last-Event-ID that is none, or that nobody was given yet",
    run: async () => {
      const sessionId = await fleet.admin.start();
      const watch = (id: string) =>
        ask("GET", `/v1/sessions/${sessionId}/watch`, { headers: { "last-event-id": id } });
      return [(await watch("garbage")).status, (await watch("999")).status];
    },
  },
  A77: {
    what: "a burst above the rate",
    run: async () => {
      const [ada, bob] = [await fleet.user("ada"), await fleet.user("bob")];
      const burst = Array.from({ length: 80 }, () => start({ agent: "greeter" }, { token: ada.token }));
      const refused = (await Promise.all(burst)).filter(({ status }) => status !== 201);
      expect(refused.every(({ headers }) => headers.get("retry-after") !== null)).toBe(true);
      expect((await start({ agent: "greeter" }, { token: bob.token })).status).toBe(201);
      return [...new Set(refused.map(({ status }) => status))];
    },
  },
  A89: {
    what: "a way out of the assets",
    run: async () => [(await ask("GET", "/assets/..%2f..%2fpackage.json")).status],
  },
  A91: {
    what: "no page may show an answer in a frame",
    run: async () => {
      const { headers } = await ask("GET", "/healthz");
      expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      return [];
    },
  },
};

/** Cases about what does not exist yet. */
const NOT_YET: Readonly<Record<string, string>> = {
  A57: "agents are what runners offer, who may come later; an unknown one is told as `blocked`, and fails after five minutes",
  A79: "scripts",
  A81: "URLs that the coordinator would fetch",
  A83: "URLs that the coordinator would fetch",
  A85: "secrets",
  A87: "secrets",
};

const CASES_FILE = new URL("../../../../../shared/bad-inputs.jsonl", import.meta.url);

/** The statuses that the list of cases allows, if the list is present. */
const EXPECTED = readExpected();

describe("a bad input", () => {
  it.each(Object.entries(CASES).map(([id, one]) => [id, one.what, one] as const))(
    "case %s: %s",
    async (id, _what, { options, run }) => {
      fleet = await openFleet(options);
      const statuses = await run();
      const allowed = EXPECTED?.get(id);
      expect(allowed === undefined ? [] : statuses.filter((status) => !allowed.includes(status))).toEqual([]);
      expect(statuses.filter((status) => status >= 500)).toEqual([]);
      expect(fleet.log).toEqual([]);
    },
  );
});

// Skipped where the list of cases is not beside the repository: the cases above run all the same.
test.skipIf(EXPECTED === undefined)("every case of the list is run, or says why not yet", async () => {
  fleet = await openFleet();
  expect([...Object.keys(CASES), ...Object.keys(NOT_YET)].toSorted()).toEqual(
    [...EXPECTED!.keys()].toSorted(),
  );
});

function readExpected(): ReadonlyMap<string, readonly number[]> | undefined {
  if (!existsSync(fileURLToPath(CASES_FILE))) return undefined;
  const cases = readFileSync(CASES_FILE, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { id: string; group: string; http: number[] });
  return new Map(cases.filter(({ group }) => group.startsWith("API: ")).map(({ id, http }) => [id, http]));
}

function pointersOf({ errors = [] }: Answer): string[] {
  return errors.map(({ pointer }) => pointer);
}

async function raw(line: string, headers: readonly string[] = [], body = ""): Promise<string> {
  const port = Number(new URL(fleet.url).port);
  return exchangeBytes(port, requestText(port, line, headers, body));
}
