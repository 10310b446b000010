// The coordinator checks the input of a session by the schemas that runners announce, before the session
// exists.

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openFleet, type Fleet, type Person } from "../testing/fleet.ts";

const ORDER = {
  type: "object",
  properties: { size: { enum: ["small", "large"] }, count: { type: "integer" } },
  required: ["size"],
  additionalProperties: false,
};

let fleet: Fleet;
let ada: Person;
beforeEach(async () => {
  fleet = await openFleet();
  ada = await fleet.user("ada");
});
afterEach(() => fleet.close());

const orders = (schemas = { order: ORDER } as Record<string, object>, options = {}) =>
  fleet.runner({ agents: ["order"], schemas, ...options });
const sessions = async () => (await fleet.admin.get("/v1/sessions")).body.sessions ?? [];

describe("a wrong input is refused, and leaves no session", () => {
  test.each<[what: string, input: unknown, errors: readonly (readonly [string, string])[]]>([
    ["a missing input", undefined, [["/input", "must be object"]]],
    ["another type", "two small ones", [["/input", "must be object"]]],
    ["a missing field", {}, [["/input", "must have required property 'size'"]]],
    [
      "several wrong fields",
      { size: "huge", count: 1.5, colour: "red" },
      [
        ["/input", 'must NOT have additional properties: "colour"'],
        ["/input/count", "must be integer"],
        ["/input/size", 'must be one of "small", "large"'],
      ],
    ],
  ])("%s", async (_what, input, errors) => {
    await orders();
    const { status, body } = await ada.post("/v1/sessions", { agent: "order", input });
    expect(status).toBe(422);
    expect(body).toMatchObject({ code: "invalid_input", at: "/input" });
    const said = (body.errors as readonly { pointer: string; message: string }[]).map(
      ({ pointer, message }) => [pointer, message] as const,
    );
    expect(said.toSorted(([a], [b]) => (a < b ? -1 : 1))).toEqual(errors);
    expect(JSON.parse((body.expected as string).replace("a value of ", ""))).toEqual(ORDER);
    expect(await sessions()).toEqual([]);
  });

  test("the input of a child with a callback, and of a schedule, is checked, too", async () => {
    await orders({ order: ORDER }, { agents: ["order", "greeter"] });
    const parentSessionId = await ada.start();
    const child = { agent: "order", input: 1, invocation: "async_callback", parentSessionId };
    expect((await ada.post("/v1/sessions", child)).body.code).toBe("invalid_input");
    expect(await sessions()).toHaveLength(1);
    const start = { agent: "order", input: { size: "huge" } };
    const put = await ada.call("PUT", "/v1/schedules/nightly", { cron: "0 3 * * *", start });
    expect(put.body).toMatchObject({ code: "invalid_input", at: "/start/input" });
  });

  test("the schema stays after polls of the runner, which announce none", async () => {
    const runner = await orders();
    await runner.poll({ waitMs: 0 });
    expect((await ada.post("/v1/sessions", { agent: "order", input: 1 })).status).toBe(422);
  });
});

test("the list of agents has the schema", async () => {
  await orders();
  const { agents } = (await ada.get("/v1/agents")).body;
  expect(agents).toEqual([{ name: "order", versions: [], runners: 1, inputSchema: ORDER, tags: [] }]);
});

test("an input is accepted when one of the runners that would take the session accepts it", async () => {
  await orders();
  await orders({ order: { type: "string" } }, { labels: { gpu: "yes" } });
  await orders({ order: { type: "number" } }, { owner: "bob" });
  const start = (input: unknown, demands = {}) =>
    ada.post("/v1/sessions", { agent: "order", input, demands });
  expect((await start("small")).status).toBe(201);
  expect((await start({ size: "small" })).status).toBe(201);
  expect((await start({ size: "small" }, { gpu: "yes" })).status).toBe(422);
  expect((await start(7)).status).toBe(422);
});

test("a repeated request is answered again, although its agent has another schema since", async () => {
  const runner = await orders({});
  const request = { agent: "order", input: 1, sessionId: "mine" };
  expect((await ada.post("/v1/sessions", request)).status).toBe(201);
  await runner.person.post(`/v1/runners/${runner.runnerId}/deregister`);
  await orders();
  expect((await ada.post("/v1/sessions", request)).status).toBe(201);
});

test.each([
  ["is no schema", { type: "nothing" }],
  ["refers to another place", { $ref: "https://example.invalid/schema" }],
  ["has a pattern that is searched for without end", { type: "string", pattern: "^(a|a)*$" }],
])("a schema of a runner that %s refuses nothing and keeps nobody waiting", async (_what, schema) => {
  await orders({ order: schema });
  const input = `${"a".repeat(40)}b`;
  expect((await ada.post("/v1/sessions", { agent: "order", input })).status).toBe(201);
});

test("schemas that are too large together are refused at the registration", async () => {
  const large = { description: "x".repeat(150_000) };
  const text = await fleet.coordinator.createToken({ kind: "registration", name: "r" });
  const agents = ["a", "b"].map((name) => ({ name, inputSchema: large }));
  const registration = { protocol: 1, hostname: "box", maxRuns: 1, agents };
  const response = await fetch(`${fleet.url}/v1/runners/register`, {
    method: "POST",
    headers: { authorization: `Bearer ${text}`, "content-type": "application/json" },
    body: JSON.stringify(registration),
  });
  expect(await response.json()).toMatchObject({ code: "usage", at: "agents/1/inputSchema" });
});
