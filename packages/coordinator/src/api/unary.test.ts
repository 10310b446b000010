// Binary unary calls beyond what all protocols share (conformance.test.ts): how they end, and what is no
// message.

import { defined } from "@holdfast/core";
import { toBinary } from "@bufbuild/protobuf";
import { afterEach, expect, it } from "vitest";
import { METHODS } from "./contract.ts";
import { sampleOf } from "./testing/sample.ts";
import { startStubApi, type StubApi } from "./testing/stub-api.ts";

let api: StubApi;
afterEach(() => api.close());

const { desc } = METHODS.find(({ name }) => name === "RunnerService.Poll")!;

function poll(
  headers: Record<string, string> = {},
  body: Uint8Array = toBinary(desc.input, sampleOf(desc.input)),
  signal?: AbortSignal,
) {
  return fetch(`${api.url}/${desc.parent.typeName}/${desc.name}`, {
    method: "POST",
    headers: { "content-type": "application/proto", authorization: "Bearer runner", ...headers },
    body: new Uint8Array(body),
    ...defined({ signal }),
  });
}

/** An API of which a poll waits until it is over. */
async function startWaiting() {
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
  const { promise: over, resolve: onOver } = Promise.withResolvers<undefined>();
  api = await startStubApi((_desc, _request, { signal }) => {
    signal.addEventListener("abort", () => onOver(undefined));
    onAsked();
    return over;
  });
  return { asked, over };
}

it("unary-2: a call ends when its time is over", async () => {
  const { over } = await startWaiting();
  const answer = poll({ "connect-timeout-ms": "20" });
  await over;
  expect((await answer).status).toBe(200); // The service decides the answer.
});

it("unary-2: a call ends when its caller goes", async () => {
  const { asked, over } = await startWaiting();
  const caller = new AbortController();
  const answer = poll({}, undefined, caller.signal).catch(() => "gone");
  await asked;
  caller.abort();
  expect(await answer).toBe("gone");
  await over;
});

it("unary-2: a call ends when the API closes", async () => {
  const { asked, over } = await startWaiting();
  const answer = poll();
  await asked;
  void api.close();
  await over;
  expect((await answer).status).toBe(200);
});

it.each([
  ["a time that is none", { "connect-timeout-ms": "soon" }, undefined],
  ["a body that is no message", {}, new Uint8Array([255, 255, 255])],
  ["a body that is cut off", {}, toBinary(desc.input, sampleOf(desc.input)).slice(0, 3)],
])("unary-1: %s is refused, and nothing is told of where", async (_, headers, body) => {
  api = await startStubApi();
  const answer = await poll(headers, body);
  expect(answer.status).toBe(400);
  const text = await answer.text();
  expect(JSON.parse(text)).toMatchObject({ code: "invalid_argument" });
  expect(text).not.toContain("    at ");
});

it("unary-1: a token that is not known is refused before the body is read", async () => {
  api = await startStubApi();
  const answer = await poll({ authorization: "Bearer nobody" }, new Uint8Array([255]));
  expect(answer.status).toBe(401);
  expect(await answer.json()).toMatchObject({ code: "unauthenticated" });
});
