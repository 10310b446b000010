// ST4 and ST5: what the changes of one group are to each other.

import { expect, test } from "vitest";
import {
  cancelling,
  creating,
  INVALID,
  PATCH_TO,
  releasing,
  scheduling,
  signalling,
  STARTED,
  statuses,
  type Fixture,
} from "./fixture.ts";

export function groupConformance(fixture: Fixture): void {
  test("ST4: a fenced batch leaves its neighbours in the group untouched", async () => {
    const stalled = await fixture.createClaimed("ses-1");
    const left = await fixture.createClaimed("ses-2");
    const right = await fixture.createClaimed("ses-3");
    await stalled.release();
    const parts = { records: [STARTED] };

    const results = await fixture.storage.commit(
      [left.batch(parts), stalled.batch(parts), right.batch(parts)],
      1,
    );

    expect(statuses(results)).toEqual(["committed", "fenced", "committed"]);
    expect((await fixture.session("ses-1")).nextSeq).toBe(0);
    expect((await fixture.session("ses-2")).nextSeq).toBe(1);
    expect((await fixture.session("ses-3")).nextSeq).toBe(1);
  });

  test("ST4: an invalid batch leaves its neighbours in the group untouched", async () => {
    const [left, broken, right] = [
      await fixture.createClaimed("ses-1"),
      await fixture.createClaimed("ses-2"),
      await fixture.createClaimed("ses-3"),
    ];
    const parts = { records: [STARTED], entries: [{ content: "1" }] };
    const unknown = broken.batch({ ...parts, consumed: ["sig-unknown"] });

    const results = await fixture.storage.commit([left.batch(parts), unknown, right.batch(parts)], 1);

    expect(results).toEqual([{ status: "committed", inbox: 0 }, INVALID, { status: "committed", inbox: 0 }]);
    expect((await fixture.session("ses-2")).entryCount).toBe(0);
    expect((await fixture.session("ses-3")).entryCount).toBe(1);
  });

  test("ST4: refused changes of every type leave their neighbours in the group untouched", async () => {
    await fixture.createIn("completed", "ses-ended");
    await fixture.apply(creating("ses-1"), 0);
    await fixture.apply(signalling("ses-1", "sig-1"));

    const results = await fixture.storage.commit(
      [
        creating("ses-1"),
        signalling("ses-1", "sig-1"),
        signalling("ses-1", "sig-2"),
        signalling("ses-ended", "sig-3"),
        cancelling("ses-ended"),
        signalling("ses-none", "sig-4"),
        releasing({ sessionId: "ses-1", token: 99 }),
        creating("ses-2"),
      ],
      1,
    );

    expect(statuses(results)).toEqual([
      "exists",
      "duplicate",
      "stored",
      "ended",
      "ended",
      "not_found",
      "fenced",
      "created",
    ]);
    expect(await fixture.storage.reader.pendingSignals("ses-1")).toMatchObject([
      { signalId: "sig-1" },
      { signalId: "sig-2" },
    ]);
    expect((await fixture.session("ses-2")).status).toBe("submitted");
  });

  test("ST5: a session created earlier in the group takes what comes later in it", async () => {
    const results = await fixture.storage.commit(
      [
        creating("ses-1"),
        signalling("ses-1", "sig-1"),
        signalling("ses-1", "sig-1"),
        cancelling("ses-1", { mode: "hard" }),
      ],
      1,
    );
    expect(statuses(results)).toEqual(["created", "stored", "duplicate", "requested"]);
    expect((await fixture.session("ses-1")).status).toBe("cancelled");
  });

  test("ST5: two batches of one session in a group follow each other", async () => {
    const claimant = await fixture.createClaimed();
    const first = claimant.batch({ records: [STARTED], entries: [{ content: "1" }] });
    claimant.follow(first);
    const second = claimant.batch({
      records: [scheduling("a")],
      entries: [{ content: "2", parent: 1 }],
      session: PATCH_TO.waiting,
    });

    expect(statuses(await fixture.storage.commit([first, second], 1))).toEqual(["committed", "committed"]);
    expect(await fixture.storage.reader.journal("ses-1", 0, 10)).toEqual([
      ...first.records,
      ...second.records,
    ]);
    expect(await fixture.session("ses-1")).toMatchObject({ nextSeq: 4, entryCount: 2, status: "waiting" });
  });

  test("ST5: two batches in the wrong order are one too early and one in time", async () => {
    const claimant = await fixture.createClaimed();
    const first = claimant.batch({ records: [STARTED] });
    claimant.follow(first);
    const second = claimant.batch({ records: [scheduling("a")] });
    expect(statuses(await fixture.storage.commit([second, first], 1))).toEqual(["invalid", "committed"]);
    expect((await fixture.session("ses-1")).nextSeq).toBe(1);
  });

  test("ST5: a batch consumes a signal that was stored earlier in its group, and not one that comes later", async () => {
    const claimant = await fixture.createClaimed();
    const batch = claimant.batch({ records: [STARTED], consumed: ["sig-1"] });
    expect(statuses(await fixture.storage.commit([batch, signalling("ses-1", "sig-1")], 1))).toEqual([
      "invalid",
      "stored",
    ]);

    const next = claimant.batch({ records: [STARTED], consumed: ["sig-2"] });
    expect(statuses(await fixture.storage.commit([signalling("ses-1", "sig-2"), next], 1))).toEqual([
      "stored",
      "committed",
    ]);
    expect(await fixture.storage.reader.pendingSignals("ses-1")).toMatchObject([{ signalId: "sig-1" }]);
  });

  test("ST5: a batch behind the hard cancel of its session in the group is too late", async () => {
    const claimant = await fixture.createClaimed();
    const group = [
      cancelling("ses-1", { mode: "hard" }),
      claimant.batch({ records: [STARTED] }),
      signalling("ses-1", "sig-1"),
    ];
    const [requested, late, signal] = await fixture.storage.commit(group, 1);
    expect(requested).toEqual({ status: "requested", sessionStatus: "cancelled" });
    expect(["invalid", "fenced"]).toContain(late!.status);
    expect(signal).toEqual({ status: "ended", sessionStatus: "cancelled" });
  });

  test("ST5: a batch behind the release of its claim in the group is fenced", async () => {
    const claimant = await fixture.createClaimed();
    const group = [releasing(claimant), claimant.batch({ records: [STARTED] })];
    expect(statuses(await fixture.storage.commit(group, 1))).toEqual(["released", "fenced"]);
  });
}
