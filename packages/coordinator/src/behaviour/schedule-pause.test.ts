// A schedule that is paused and continued, over real HTTP.

import { TestClock } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { openFleet } from "../testing/fleet.ts";

test("a paused schedule starts nothing, also when it is put again, and continues after its pause", async () => {
  const clock = new TestClock();
  const fleet = await openFleet({ clock });
  try {
    const { admin } = fleet;
    const tick = { cron: "* * * * * *", start: { agent: "greeter" } };
    const count = async (): Promise<number> => (await admin.get("/v1/sessions")).body.sessions.length;
    await admin.call("PUT", "/v1/schedules/tick", tick);
    const paused = await admin.post("/v1/schedules/tick/pause");
    expect([paused.status, paused.body.isPaused, paused.body.nextAt]).toEqual([200, true, undefined]);
    await admin.call("PUT", "/v1/schedules/tick", tick);
    await clock.advance(5_000);
    expect(await count()).toBe(0);
    const { body } = await admin.post("/v1/schedules/tick/unpause");
    expect([body.isPaused, body.nextAt > clock.now()]).toEqual([false, true]);
    await clock.advance(5_000);
    expect(await count()).toBeGreaterThan(0);
    expect((await admin.post("/v1/schedules/none/pause")).status).toBe(404);
    const { rows } = (await admin.get("/v1/audit?before=0")).body;
    expect(rows.map(({ action }: { readonly action: string }) => action)).toEqual(
      expect.arrayContaining(["schedule.pause", "schedule.unpause"]),
    );
  } finally {
    await fleet.close();
  }
});
