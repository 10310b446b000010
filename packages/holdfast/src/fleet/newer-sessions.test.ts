// Sessions that a newer Holdfast began, on a fleet whose runner is older: as in the middle of an upgrade.

import { BEHAVIOUR_FLAGS, JOURNAL_FORMAT } from "@holdfast/core";
import { defineAgent } from "@holdfast/runtime";
import { afterEach, expect, test } from "vitest";
import { startSession } from "../testing/coordinator-client.ts";
import { ended } from "../testing/fleet-sessions.ts";
import { openFleet, type Fleet } from "../testing/fleet.ts";

let fleet: Fleet | undefined;
afterEach(async () => {
  await fleet?.close();
  fleet = undefined;
});

const echo = defineAgent({ name: "echo", run: async (ctx, input) => ctx.run("echo", () => input) });

test("a runner is not given a session with a behaviour flag that it does not know, and runs others meanwhile", async () => {
  fleet = await openFleet();
  const agent = { name: echo.name, version: echo.version };
  const creation = { type: "create_session", agent, seed: 1, input: "1", format: JOURNAL_FORMAT } as const;
  await fleet.remote.commit([{ ...creation, sessionId: "newer", flags: BEHAVIOUR_FLAGS + 1 }], 0);
  const before = await fleet.storage.reader.session("newer");
  const runner = await fleet.runner({ agents: [echo], maxRuns: 1 });
  for (const n of [1, 2]) await ended(fleet, await startSession(fleet, { agent: "echo", input: { n } }));

  expect(await fleet.storage.reader.session("newer")).toEqual(before);
  expect(before?.status).toBe("submitted");
  expect(JSON.stringify(runner.events)).not.toContain("newer");
  const claim = { sessionId: "newer", owner: "newer runner", now: 0, leaseMs: Infinity };
  expect(await fleet.storage.claim(claim)).toMatchObject({ status: "claimed", losses: 0 });
});
