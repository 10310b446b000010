// Every method of the contract, called as gRPC, Connect and REST, answers the same and refuses the same.

import { create, equals, toJsonString, type Message } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-node";
import { ERROR_TABLE, HoldfastError, type ErrorCode } from "@holdfast/core";
import { SessionSchema, SessionService, type Session } from "@holdfast/proto";
import { isCampaign } from "@holdfast/testkit/campaign";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { METHODS } from "./contract.ts";
import { factsOf } from "./fields.ts";
import { CLIENTS, callRest, type Answered } from "./testing/clients.ts";
import { sampleOf } from "./testing/sample.ts";
import { KINDS, startStubApi, type StubApi } from "./testing/stub-api.ts";
import { tokenFor } from "../call/token-advice.ts";

const WAYS = Object.entries(CLIENTS);

/** Every code an API may answer with: those that only an agent meets are `unknown`. */
const CODES = Object.entries(ERROR_TABLE).flatMap(([code, { rpc }]) =>
  rpc === "unknown" ? [] : [code as ErrorCode],
);

const SOME_CODES = ["session_not_found", "storage_unavailable"] as const;

// One API for all methods: its start costs more than the calls of a method.
let api: StubApi;
let received: Message[] = [];
let behaviour: () => unknown;
beforeAll(async () => {
  api = await startStubApi((_desc, message) => {
    received.push(message);
    return behaviour();
  });
});
afterAll(() => api.close());
beforeEach(() => {
  behaviour = () => undefined;
});

describe.each(METHODS.map((method) => [method.name, method] as const))("%s", (_name, method) => {
  const { desc } = method;
  const token = KINDS.find((kind) => method.callers.has(kind));
  const request = sampleOf(desc.input);
  const callAll = (
    to: { token?: string | undefined },
    message = request,
    ways = WAYS,
  ): Promise<Answered[]> => {
    received = [];
    const called = to.token === undefined ? { url: api.url } : { url: api.url, token: to.token };
    return Promise.all(ways.map(([, call]) => call(called, desc, message)));
  };

  it("each way to call a method sends the same request and receives the same answer", async () => {
    for (const answered of await callAll({ token })) {
      expect(answered).toHaveProperty("messages");
      if (!("messages" in answered)) continue;
      const expected = method.isStream
        ? [sampleOf(desc.output), sampleOf(desc.output)]
        : [sampleOf(desc.output)];
      expect(answered.messages.map((message) => toJsonString(desc.output, message))).toEqual(
        expected.map((message) => toJsonString(desc.output, message)),
      );
      expect(answered.messages.every((message, at) => equals(desc.output, message, expected[at]!))).toBe(
        true,
      );
    }
    expect(received.map((message) => toJsonString(desc.input, message))).toEqual(
      WAYS.map(() => toJsonString(desc.input, request)),
    );
  });

  it("each way to call a method receives the same code for an error of the service", async () => {
    const isWhole = isCampaign || method.name === "SessionService.Start";
    for (const code of isWhole ? CODES : SOME_CODES.slice(0, 1)) {
      behaviour = () => {
        throw new HoldfastError(code, "because");
      };
      expect(await callAll({ token }), code).toEqual(refusals(code, []));
    }
    behaviour = () => {
      throw new TypeError("secret");
    };
    expect(await callAll({ token })).toEqual(refusals("internal", []));
  });

  const [rule] = method.rules;
  const missing = desc.input.fields.filter(
    (field) => factsOf(field).isRequired && rule?.path.includes(`{${field.name}}`) === false,
  );
  if (missing.length > 0) {
    it("points at the same fields", async () => {
      const without = sampleOf(desc.input);
      for (const { localName } of missing) {
        Object.assign(without, { [localName]: (create(desc.input) as never)[localName] });
      }
      const expected = refusals(
        "validation",
        missing.map(({ jsonName }) => `/${jsonName}`),
      );
      // Where the body is one field, a body that is not there is no JSON.
      if (rule?.body !== "*") expected[2] = refusals("malformed_json", [])[2]!;
      expect(await callAll({ token }, without)).toEqual(expected);
      expect(received).toEqual([]);
    });
  }

  it("a method refuses a call without a valid token, and reveals nothing else", async () => {
    if (method.isOpen)
      return expect((await callAll({})).every((answered) => "messages" in answered)).toBe(true);
    expect(await callAll({})).toEqual(refusals("unauthenticated", []));
    expect(await callAll({ token: "wrong" })).toEqual(refusals("unauthenticated", []));
    api.revoked.add("user-gone");
    expect(await callAll({ token: "user-gone" })).toEqual(refusals("token_revoked", []));
    expect(received).toEqual([]);
  });

  it("a method accepts the roles that the contract lists, and no others", async () => {
    // The role is judged before the protocol matters, and it is half of the calls of this file.
    const ways = isCampaign ? WAYS : WAYS.slice(-1);
    for (const kind of KINDS) {
      const answers = await callAll({ token: `${kind}-1` }, request, ways);
      if (method.isOpen || method.callers.has(kind)) {
        expect(answers.map((answered) => "messages" in answered)).toEqual(ways.map(() => true));
      } else {
        expect(answers, kind).toEqual(refusals("insufficient_scope", []).slice(-ways.length));
        expect(tokenFor(method.callers).fix, kind).toMatch(/`holdfast token create|a runner /);
        expect(received).toEqual([]);
      }
    }
  });

  it("answers under each of its routes", async () => {
    for (const route of method.rules) {
      const called = token === undefined ? { url: api.url } : { url: api.url, token };
      expect(await callRest(called, desc, request, route)).toHaveProperty("messages");
    }
  });
});

describe("gRPC-Web", () => {
  it("answers as the others do", async () => {
    const transport = createGrpcWebTransport({ baseUrl: api.url, httpVersion: "1.1" });
    const client = createClient(SessionService, transport);
    const headers = { authorization: "Bearer admin" };
    const session = await client.get({ sessionId: "a1" }, { headers });
    expect(equals(SessionSchema, session, sampleOf(SessionSchema) as Session)).toBe(true);
    const refused = client.get({ sessionId: "a1" });
    await expect(refused).rejects.toMatchObject({ code: Code.Unauthenticated });
    let events = 0;
    for await (const _ of client.watch({ sessionId: "a1" }, { headers })) events++;
    expect(events).toBe(2);
  });
});

describe("a method that is not offered", () => {
  it("a method that is not offered is answered with a code of its own", async () => {
    const bare = await startStubApi(undefined, { services: [] });
    const { desc } = METHODS[0]!;
    const called = { url: bare.url, token: "admin" };
    const answers = await Promise.all(WAYS.map(([, call]) => call(called, desc, sampleOf(desc.input))));
    expect(answers).toEqual(refusals("not_implemented", []));
    await bare.close();
  });
});

describe("requests that the gates refuse", () => {
  it("a refusal by a gate has the form of the caller's protocol and names the reason", async () => {
    const { desc } = METHODS.find(({ isStream }) => !isStream)!;
    const called = { url: api.url, token: "admin", origin: "https://evil.example" };
    const answers = await Promise.all(WAYS.map(([, call]) => call(called, desc, sampleOf(desc.input))));
    expect(answers).toEqual(refusals("forbidden_origin", []));
    const web = createClient(
      SessionService,
      createGrpcWebTransport({ baseUrl: api.url, httpVersion: "1.1" }),
    );
    const refused = web.get({ sessionId: "a1" }, { headers: { origin: called.origin } });
    await expect(refused).rejects.toMatchObject({ code: Code.PermissionDenied });
  });
});

/** The same refusal in the words of gRPC, Connect and REST. */
function refusals(code: ErrorCode, pointers: readonly string[]) {
  const { http, rpc } = ERROR_TABLE[code];
  return [
    { code, as: rpc, pointers },
    { code, as: rpc, pointers },
    { code, as: http, pointers },
  ];
}
