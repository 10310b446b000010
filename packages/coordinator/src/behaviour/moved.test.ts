// Requests for a session that is moving or has moved away: each is answered with the new place and waits for
// nothing.

import { afterEach, beforeEach, expect, test } from "vitest";
import { openFleet, type Answer, type Fleet, type Person } from "../testing/fleet.ts";

const TO = "https://there.example";
const MOVED = { status: 409, code: "session_moved", at: TO };

let fleet: Fleet;
let ada: Person;
let sessionId: string;
beforeEach(async () => {
  fleet = await openFleet();
  ada = await fleet.user("ada");
  sessionId = await ada.start({ idempotencyKey: "k", budget: { maxSteps: 5 } });
});
afterEach(() => fleet.close());

const freeze = () => ada.commit({ type: "begin_move", sessionId, moveId: "mov-1", to: TO });
const move = () => ada.commit({ type: "end_move", sessionId, moveId: "mov-1", outcome: "moved" });
const path = (rest = "") => `/v1/sessions/${sessionId}${rest}`;

test.each<readonly [string, () => Promise<Answer>]>([
  ["a signal", () => ada.post(path("/signals"), { name: "go" })],
  ["a cancel", () => ada.post(path("/cancel"))],
  ["a hard cancel", () => ada.post(path("/cancel"), { mode: "hard" })],
  ["a pause", () => ada.post(path("/pause"))],
  ["an unpause", () => ada.post(path("/unpause"))],
  ["a budget", () => ada.call("PATCH", path("/budget"), { maxSteps: 9 })],
  [
    "a child that it did not ask for",
    () => ada.post("/v1/sessions", { agent: "a", invocation: "async_callback", parentSessionId: sessionId }),
  ],
])("%s is refused, and told where the session is", async (_, ask) => {
  await freeze();
  expect((await ask()).body).toMatchObject(MOVED);
  await move();
  expect((await ask()).body).toMatchObject(MOVED);
  expect(fleet.log).toEqual([]);
});

test("it is told where it went, alone and in lists", async () => {
  expect((await ada.get(path())).body.movedTo).toBeUndefined();
  await freeze();
  expect((await ada.get(path())).body).toMatchObject({ status: "submitted", movedTo: TO });
  await move();
  expect((await ada.get("/v1/sessions")).body.sessions).toMatchObject([{ sessionId, movedTo: TO }]);
});

test("its result is waited for while it may come back, and no longer", async () => {
  await freeze();
  expect((await ada.get(path("/result?waitMs=1"))).body).toMatchObject({ ended: false });
  const waiting = ada.get(path("/result?waitMs=30000"));
  await move();
  expect((await waiting).body).toMatchObject(MOVED);
  expect((await ada.get(path("/result"))).body).toMatchObject(MOVED);
  const again = { idempotencyKey: "k", budget: { maxSteps: 5 } };
  const sync = { agent: "greeter", ...again, invocation: "sync" };
  expect((await ada.post("/v1/sessions", sync)).body).toMatchObject(MOVED);
  expect(await ada.start(again)).toBe(sessionId);
});

test("its stream tells what there is, and ends with where it went", async () => {
  const response = await fetch(`${fleet.url}${path("/watch")}`, {
    headers: { authorization: `Bearer ${ada.token}` },
  });
  await freeze();
  await move();
  const text = await response.text();
  const events = [...text.matchAll(/^event: (.*)\ndata: (.*)$/gm)].map(
    ([, event, data]) => [event, JSON.parse(data!)] as const,
  );
  expect(events.at(0)).toMatchObject(["session", { session: { status: "submitted" } }]);
  expect(events.at(-2)).toMatchObject(["session", { session: { movedTo: TO } }]);
  expect(events.at(-1)).toMatchObject(["error", MOVED]);
});
