// Budget charges for attempts that died with their process, as the API shows and releases them over real
// HTTP.

import type { Charge } from "@holdfast/core";
import { afterEach, expect, test } from "vitest";
import { openFleet, type Fleet } from "../testing/fleet.ts";

const fleets: Fleet[] = [];
afterEach(() => Promise.all(fleets.splice(0).map((fleet) => fleet.close())));

test("a session shows what its budget was charged for lost attempts, and its owner alone releases it, once", async () => {
  const fleet = await openFleet();
  fleets.push(fleet);
  const [ada, bob] = [await fleet.user("ada"), await fleet.user("bob")];
  const runner = await fleet.runner();
  const sessionId = await ada.start({ budget: { maxTokens: 100 } });
  const path = `/v1/sessions/${sessionId}`;
  const [claim] = (await runner.poll()).claims;
  const amount = { tokens: 60, costMicroUsd: 0, steps: 1, turns: 0 };
  const charges: readonly Charge[] = [
    { type: "reserve", task: 0, amount },
    { type: "settle", task: 0, used: amount, lost: true },
  ];
  const working = { status: "working", waits: [] } as const;
  await runner.say(claim!, working, { charges: charges.slice(0, 1) });
  expect((await ada.get(path)).body.account).not.toHaveProperty("lost");
  await runner.say(claim!, working, { charges: charges.slice(1) });
  expect((await ada.get(path)).body.account).toMatchObject({ spent: { tokens: 60 }, lost: { tokens: 60 } });

  const before = (await fleet.storage.reader.audit({ limit: 1_000 })).length;
  expect((await bob.post(`${path}/release-lost`, {})).status).toBe(404);
  for (let times = 0; times < 2; times++) {
    const { status, body } = await ada.post(`${path}/release-lost`, {});
    expect(status).toBe(200);
    expect(body.account.spent.tokens ?? 0).toBe(0);
    expect(body.account).not.toHaveProperty("lost");
  }
  const rows = (await fleet.storage.reader.audit({ limit: 1_000 })).slice(before);
  const object = `session:${sessionId}`;
  const row = { actor: "user:ada", action: "session.release_lost", object, outcome: "requested" };
  expect(rows).toMatchObject([row, row]);
});
