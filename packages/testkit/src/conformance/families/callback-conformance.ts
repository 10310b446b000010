// ST27: the callbacks of children, whose parent is notified of their end alone.

import type { SessionPatch } from "@holdfast/core";
import { expect, test } from "vitest";
import {
  cancelling,
  creating,
  PATCH_TO,
  pausing,
  signalling,
  spawning,
  STARTED,
  type Claimant,
  type Fixture,
} from "../fixture.ts";

export function callbackConformance(fixture: Fixture): void {
  /** A child whose parent wants its end alone. */
  async function spawnFor(parent: Claimant, notify: "end" | "callback"): Promise<Claimant> {
    const origin = { sessionId: "ses-parent", child: 0, onEnd: "cancel", notify } as const;
    const effects = [creating("ses-child", { parent: origin })];
    await parent.commit({ records: [spawning("agent")], effects });
    return fixture.claim("ses-child", "owner-1", 1);
  }
  /** The child sends its parent an event. */
  const report = (child: Claimant) =>
    child.commit({ effects: [signalling("ses-parent", "sig-word", { name: "child:0" })] });

  const endings: readonly [string, SessionPatch, object][] = [
    ["completed", PATCH_TO.completed, { type: "completed", output: "done" }],
    ["failed", { ...PATCH_TO.failed, progress: "7" }, { type: "failed", progress: 7 }],
    ["cancelled", { ...PATCH_TO.cancelled, output: '"part"' }, { type: "cancelled", output: "part" }],
  ];
  for (const [ending, session, sent] of endings) {
    test(`ST27: a child that is ${ending} calls its parent back, once, and tells it nothing else`, async () => {
      const parent = await fixture.createClaimed("ses-parent");
      const child = await spawnFor(parent, "callback");
      await report(child);
      expect(await fixture.sent("ses-parent")).toEqual([]);
      const batch = child.batch({ records: [STARTED], session });
      await fixture.apply(batch);
      const event = expect.objectContaining(sent) as unknown;
      const expected = [
        ["child-end:0", event],
        ["child:ended", { child: "ses-child", event }],
      ];
      expect(await fixture.sent("ses-parent")).toEqual(expected);
      await fixture.apply(batch);
      await fixture.storage.due({ now: 1_000_000, limit: 10 });
      expect(await fixture.sent("ses-parent")).toEqual(expected);
    });
  }

  test("ST27: a parent that asked for the end alone is told of no pause and no signal", async () => {
    const parent = await fixture.createClaimed("ses-parent");
    const child = await spawnFor(parent, "end");
    await report(child);
    await fixture.apply(pausing("ses-child"));
    await fixture.apply(cancelling("ses-child", { mode: "hard", reason: "enough" }));
    expect(await fixture.sent("ses-parent")).toEqual([
      ["child-end:0", { type: "cancelled", reason: "enough" }],
    ]);
  });

  test("ST27: a callback makes a parent due that waits for any child", async () => {
    const parent = await fixture.createClaimed("ses-parent");
    const child = await spawnFor(parent, "callback");
    await parent.commit({
      session: { status: "waiting", waits: [{ type: "signal", id: 3, name: "child:ended" }] },
    });
    await parent.release();
    expect((await fixture.storage.due({ now: 1, limit: 10 })).sessionIds).toEqual([]);
    await child.commit({ session: PATCH_TO.completed });
    expect((await fixture.storage.due({ now: 1, limit: 10 })).sessionIds).toEqual(["ses-parent"]);
  });
}
