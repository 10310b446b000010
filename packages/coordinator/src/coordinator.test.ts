// A coordinator as a whole.

import { UnavailableError, type AgentStorage } from "@holdfast/core";
import {
  countingRandom,
  gate,
  MemoryStorage,
  readerWith,
  storageWith,
  TestClock,
  turns,
  until,
} from "@holdfast/testkit/test-runtime";
import { afterEach, describe, expect, test } from "vitest";
import { createCoordinator } from "./coordinator.ts";
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
  test("a session is started by a user and run by a runner, and its result reaches a waiting request", async () => {
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

test("a dispatch cycle that fails because the coordinator was closed is not logged", async () => {
  const [memory, clock, answered] = [new MemoryStorage(), new TestClock(), gate()];
  let asked = 0;
  const storage = storageWith(memory, {
    async due() {
      asked++;
      await answered.opened;
      throw new UnavailableError("storage_unavailable", "the storage was closed");
    },
  });
  const fleet = await openFleet({ storage, clock });
  await clock.advance(5_000);
  await until(() => asked > 1, "it looks for what is due, and for what nobody fits");
  await fleet.close();
  answered.open();
  await turns(10);
  expect(fleet.log).toEqual([]);
});

test("a coordinator that could not begin without storage can be asked to listen again", async () => {
  const memory = new MemoryStorage();
  let isAway = true;
  const document: AgentStorage["reader"]["document"] = async (...asked) => {
    if (isAway) throw new UnavailableError("storage_unavailable", "away");
    return memory.reader.document(...asked);
  };
  const coordinator = createCoordinator({
    storage: storageWith(memory, { reader: readerWith(memory.reader, { document }) }),
    clock: new TestClock(),
    random: countingRandom(),
    schedules: { readCron: () => ({ after: (at) => at }), firingName: (id) => id },
  });
  const where = { host: "127.0.0.1", port: 0 };
  await expect(coordinator.listen(where)).rejects.toMatchObject({ code: "storage_unavailable" });
  isAway = false;
  expect((await coordinator.listen(where)).port).toBeGreaterThan(0);
  await coordinator.close();
});
