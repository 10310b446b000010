import { afterEach, describe, expect, test } from "vitest";
import { openFleet, type Fleet, type FleetOptions } from "./testing/fleet.ts";

const opened: Fleet[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((fleet) => fleet.close()));
});
async function open(options: FleetOptions = {}): Promise<Fleet> {
  const fleet = await openFleet(options);
  opened.push(fleet);
  return fleet;
}

describe("a session's life over the API", () => {
  test("started by a user, done by a runner, told to who waits", async () => {
    const fleet = await open();
    const ada = await fleet.user("ada");
    const runner = await fleet.runner();
    const sessionId = await ada.start({ input: { name: "Ada" } });
    const waits = ada.get(`/v1/sessions/${sessionId}/result?waitMs=20000`);
    const { claims } = await runner.poll();
    expect(claims.map((claim) => claim.sessionId)).toEqual([sessionId]);
    expect(claims[0]!.snapshot.session).toMatchObject({
      input: '{"name":"Ada"}',
      placement: { owner: "ada" },
    });
    expect(await runner.complete(claims[0]!, { said: "hello" })).toMatchObject({ status: "committed" });
    expect((await waits).body).toMatchObject({ status: "completed", ended: true, output: { said: "hello" } });
  });
});
