// Limits that stop a program which starts too much, as its caller sees them over REST, by a fake clock.

import { LIMITS } from "@holdfast/core";
import { TestClock } from "@holdfast/testkit/test-runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openFleet, type Fleet, type Person } from "../testing/fleet.ts";

let clock: TestClock;
let fleet: Fleet;
beforeEach(async () => {
  clock = new TestClock();
  fleet = await openFleet({ clock });
});
afterEach(() => fleet.close());

async function start({ token }: Person, body: object = {}): Promise<Response> {
  return fetch(`${fleet.url}/v1/sessions`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ agent: "greeter", ...body }),
  });
}

/** The statuses of so many starts, one after the other. */
async function starts(person: Person, count: number): Promise<readonly number[]> {
  const statuses: number[] = [];
  for (let at = 0; at < count; at++) statuses.push((await start(person)).status);
  return statuses;
}

describe("a token's rate of starts", () => {
  test("a token may make 50 starts at once and 10 a second, and a refused start names the limit and the time to wait", async () => {
    const [ada, bob] = [await fleet.user("ada"), await fleet.user("bob")];
    expect(new Set(await starts(ada, 50))).toEqual(new Set([201]));
    const refused = await start(ada);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(await refused.json()).toMatchObject({
      code: "rate_limited",
      detail: expect.stringContaining("the token has reached its limit of starts"),
      expected: "at most 10 starts a second, in bursts of at most 50",
      fix: "try again in 100 ms",
    });
    expect((await start(bob)).status).toBe(201);
    await clock.advance(1_000);
    expect(await starts(ada, 11)).toEqual([...Array<number>(10).fill(201), 429]);
  });

  test("the rate of starts limits neither reads nor admins", async () => {
    const ada = await fleet.user("ada");
    await starts(ada, 51);
    expect((await ada.get("/v1/sessions")).status).toBe(200);
    expect(new Set(await starts(fleet.admin, 60))).toEqual(new Set([201]));
  });
});

describe("a family of sessions", () => {
  const below = (parentSessionId: string) => ({ invocation: "async_callback", parentSessionId });

  test("a start below the deepest session is refused with the limit and its number", async () => {
    let sessionId = await fleet.admin.start();
    for (let depth = 1; depth <= LIMITS.depth; depth++) sessionId = await fleet.admin.start(below(sessionId));
    const refused = await start(fleet.admin, below(sessionId));
    expect(await refused.json()).toMatchObject({
      status: refused.status,
      code: "limit_exceeded",
      detail: expect.stringContaining(sessionId),
      expected: `at most the limit "depth" (${LIMITS.depth})`,
    });
    expect((await fleet.admin.get(`/v1/sessions/${sessionId}`)).body).toMatchObject({ depth: LIMITS.depth });
  });

  test("a start of one child too many is refused with the limit and its number", async () => {
    const parentId = await fleet.admin.start();
    const one = { agent: { name: "greeter", version: "1" }, input: "null", seed: 1, flags: 0, format: 1 };
    const children = Array.from({ length: LIMITS.children }, (_, child) => ({
      ...one,
      type: "create_session" as const,
      sessionId: `child-${child}`,
      parent: { sessionId: parentId, child, onEnd: "leave" as const },
      depth: 1,
    }));
    await fleet.storage.commit(children, clock.now());
    const refused = await start(fleet.admin, below(parentId));
    expect(await refused.json()).toMatchObject({
      status: refused.status,
      code: "limit_exceeded",
      detail: expect.stringContaining(parentId),
      expected: `at most the limit "children" (${LIMITS.children})`,
    });
  });
});
