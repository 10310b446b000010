// The title of a session at the API.

import { MemoryStorage } from "@holdfast/testkit/test-runtime";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openFleet, type Fleet, type Person } from "../testing/fleet.ts";

let fleet: Fleet;
let ada: Person;
beforeAll(async () => {
  fleet = await openFleet({ storage: new MemoryStorage() });
  ada = await fleet.user("ada");
});
afterAll(() => fleet.close());

test("a session has the title of its input or of its start, and a person replaces it", async () => {
  const { body: plain } = await ada.call("POST", "/v1/sessions", {
    agent: "greeter",
    input: { task: "Greet\nAda" },
  });
  expect(plain.title).toBe("Greet");
  const { body: named } = await ada.call("POST", "/v1/sessions", { agent: "greeter", title: "The greeting" });
  expect(named.title).toBe("The greeting");
  const { body: none } = await ada.call("POST", "/v1/sessions", { agent: "greeter" });
  expect(none).not.toHaveProperty("title");

  const path = `/v1/sessions/${plain.sessionId}/title`;
  expect(await ada.call("PUT", path, { title: "Greet\u202e everybody" })).toMatchObject({
    status: 200,
    body: { title: "Greet everybody", status: plain.status },
  });
  expect((await ada.get(`/v1/sessions/${plain.sessionId}`)).body.title).toBe("Greet everybody");
  expect((await ada.call("PUT", path, {})).body.title).toBe("Greet");
  expect((await ada.call("PUT", path, { title: "x".repeat(10_001) })).status).toBe(422);
});
