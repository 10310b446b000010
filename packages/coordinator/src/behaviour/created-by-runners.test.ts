// Sessions that a runner creates in its batches: whose environments they have.

import { afterEach, beforeEach, expect, test } from "vitest";
import { openFleet, Person, type FakeRunner, type Fleet } from "../testing/fleet.ts";

let fleet: Fleet;
let ada: Person;
let bob: Person;
beforeEach(async () => {
  fleet = await openFleet({ environmentKeys: ["the key ".repeat(5)] });
  [ada, bob] = [await fleet.user("ada"), await fleet.user("bob")];
  const files = [{ path: "helper.md", base64: Buffer.from("helper").toString("base64") }];
  await fleet.admin.post("/v1/catalogue/agent/helper/versions", { files, variables: ["TOKEN"] });
  await setToken(ada, "of-ada");
  await setToken(fleet.admin, "of-the-shop", { project: "shop" });
  await setToken(fleet.admin, "of-the-bank", { project: "bank" });
});
afterEach(() => fleet.close());

async function setToken(who: Person, value: string, more: object = {}): Promise<void> {
  const keys = [{ name: "TOKEN", value, secret: true }];
  expect((await who.call("PATCH", "/v1/environments/base", { keys, ...more })).status).toBe(200);
}

/** The tokens of a session without a parent that the holder creates in a batch, as that of a successor. */
async function tokensOfCreated(
  holder: FakeRunner,
  taker: FakeRunner,
  placement: object,
): Promise<readonly (string | undefined)[]> {
  const [held] = (await holder.poll()).claims;
  const item = await fleet.admin.get("/v1/catalogue/agent/helper");
  const version = (item.body.current as string).slice(0, 16);
  const sessionId = `${held!.sessionId}-1`;
  const effect = { type: "create_session", sessionId, agent: { name: "helper", version }, placement };
  const effects = [{ ...effect, seed: 1, flags: 0, format: 1 }];
  expect((await holder.say(held!, { status: "working" }, { effects })).status).toBe("committed");
  const { claims } = await taker.poll({ waitMs: 1_000 });
  const claim = claims.find((one) => one.sessionId === sessionId);
  expect(claim, "the runner of its project gets it").toBeDefined();
  const path = `/v1/sessions/${sessionId}/environments`;
  const { status, body } = await taker.person.post(path, { claimToken: claim!.token });
  expect(status).toBe(200);
  const environments = body.environments as readonly { keys: readonly { value?: string }[] }[];
  return environments.flatMap(({ keys }) => keys.map(({ value }) => value));
}

test("a session that a runner creates has the owner of the session that it holds", async () => {
  const runner = await fleet.runner({ agents: ["greeter", "helper"] });
  await fleet.admin.start();
  expect(await tokensOfCreated(runner, runner, { owner: "ada" })).toEqual([]);
});

test.each([
  ["shop", { demands: { project: "shop" } }, ["of-the-shop"]],
  ["bank", {}, []],
])(
  "a session that a runner creates without a parent has the project of the session that it holds (%s)",
  async (project, start, tokens) => {
    const holder = await fleet.runner({ agents: ["greeter"], labels: { project: "shop" } });
    const taker = await fleet.runner({ agents: ["helper"], labels: { project } });
    await bob.start(start);
    expect(await tokensOfCreated(holder, taker, { demands: { project: "bank" } })).toEqual(tokens);
  },
);
