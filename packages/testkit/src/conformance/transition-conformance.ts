// ST23: which way a session's status goes.

import type { SessionStatus } from "@holdfast/core";
import { expect, test } from "vitest";
import { INVALID, PATCH_TO, STARTED, type Fixture } from "./fixture.ts";

export function transitionConformance(fixture: Fixture): void {
  for (const [from, declared] of Object.entries(DECLARED) as [SessionStatus, readonly SessionStatus[]][]) {
    const kept = declared.length === 0 ? "to nothing" : `to ${declared.join(", ")} and nothing else`;
    test(`ST23: a session goes from ${from} ${kept}`, async () => {
      for (const to of STATUSES) {
        const sessionId = `ses-${to}`;
        const claimant = await fixture.createIn(from, sessionId);
        const patch = to === "cancelling" ? { status: to } : PATCH_TO[to];
        const result = await claimant.commit({ records: [STARTED], session: patch });
        const status = (await fixture.session(sessionId)).status;
        if (declared.includes(to)) {
          expect({ result: result.status, status }, `${from} to ${to}`).toEqual({
            result: "committed",
            status: to,
          });
        } else if (KEPT[from]?.includes(to)) {
          expect({ result: result.status, status }, `${from} to ${to}`).toEqual({
            result: "committed",
            status: from,
          });
        } else {
          expect(result, `${from} to ${to}`).toEqual(INVALID);
          expect(status).toBe(from);
        }
      }
    });
  }

  // Nothing could ever wake it, and nobody could see why it stands.
  test("ST23: a session does not wait without naming what it waits for", async () => {
    const claimant = await fixture.createClaimed();
    expect(await claimant.commit({ session: { status: "waiting", waits: [] } })).toEqual(INVALID);
    expect(await claimant.commit({ session: { status: "waiting", wakeAt: 5 } })).toEqual(INVALID);
    const waits = [{ type: "timer", id: 0, at: 5 }] as const;
    expect(await claimant.commit({ session: { status: "input_required", waits } })).toEqual(INVALID);
    expect(await claimant.commit({ session: { status: "waiting", waits } })).toMatchObject({
      status: "committed",
    });
  });

  test("ST23: a session does not pause without a reason", async () => {
    const claimant = await fixture.createClaimed();
    expect(await claimant.commit({ session: { status: "paused" } })).toEqual(INVALID);
    expect(await claimant.commit({ session: PATCH_TO.paused })).toMatchObject({ status: "committed" });
    expect(await claimant.commit({ session: { status: "paused" } })).toMatchObject({ status: "committed" });
    expect((await fixture.session("ses-1")).pauseReason).toBe("by_user");
  });
}

const STATUSES: readonly SessionStatus[] = [
  "submitted",
  "working",
  "waiting",
  "input_required",
  "paused",
  "cancelling",
  "completed",
  "failed",
  "cancelled",
];

/** L1, written down a second time: a change of the table has to be made twice. */
const DECLARED: { readonly [from in SessionStatus]: readonly SessionStatus[] } = {
  submitted: STATUSES,
  working: STATUSES.filter((status) => status !== "submitted"),
  waiting: STATUSES.filter((status) => status !== "submitted"),
  input_required: STATUSES.filter((status) => status !== "submitted"),
  paused: ["paused", "completed", "failed", "cancelled"],
  cancelling: ["paused", "cancelling", "failed", "cancelled"],
  completed: [],
  failed: [],
  cancelled: [],
};

/** Statuses of an agent that has not received its cancel (ST16) or pause (ST30). Its batch is kept, its status is not. */
const UNAWARE: readonly SessionStatus[] = ["submitted", "working", "waiting", "input_required"];
const KEPT: { readonly [from in SessionStatus]?: readonly SessionStatus[] } = {
  cancelling: UNAWARE,
  paused: [...UNAWARE, "cancelling"],
};
