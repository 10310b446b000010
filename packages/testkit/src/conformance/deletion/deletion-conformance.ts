// ST43: what is deleted is gone, and nothing that goes on misses it.

import { expect, test } from "vitest";
import {
  checkpointing,
  creating,
  ENDINGS,
  LEASE_MS,
  PATCH_TO,
  reserving,
  scheduling,
  signalling,
  STARTED,
  type Claimant,
  type Fixture,
} from "../fixture.ts";

export function deletionConformance(fixture: Fixture): void {
  const remove = (sessionId: string, subtree: "refuse" | "delete" = "refuse", now = 1) =>
    fixture.apply({ type: "delete_session", sessionId, subtree }, now);
  const end = async (claimant: Claimant) =>
    expect(await claimant.commit({ session: PATCH_TO.completed })).toMatchObject({ status: "committed" });
  const listed = async () =>
    (await fixture.storage.reader.sessions({ limit: 100 })).map(({ sessionId }) => sessionId);

  for (const status of ENDINGS) {
    test(`ST43: a session that is ${status} is deleted, with all that was its own`, async () => {
      await fixture.createIn("working", "ses-before");
      const claimant = await fixture.createClaimed("ses-1");
      await claimant.commit({
        records: [STARTED, scheduling("a"), checkpointing("1")],
        entries: [{ content: '"hello"' }],
      });
      await fixture.apply(signalling("ses-1", "sig-1"));
      await claimant.commit({ session: PATCH_TO[status] });
      await fixture.createIn("working", "ses-after");
      expect(await remove("ses-1")).toEqual({ status: "deleted", sessions: 1 });
      const { reader } = fixture.storage;
      expect(await reader.session("ses-1")).toBeUndefined();
      expect(await fixture.storage.load("ses-1")).toBeUndefined();
      expect(await reader.journal("ses-1", 0, 10)).toEqual([]);
      expect(await reader.entries("ses-1", 0, 10)).toEqual([]);
      expect(await reader.pendingSignals("ses-1")).toEqual([]);
      expect(await listed()).toEqual(["ses-after", "ses-before"]);
      expect(await fixture.apply(signalling("ses-1", "sig-2"))).toEqual({ status: "not_found" });
      expect(await claimant.release()).toEqual({ status: "not_found" });
      expect(await fixture.storage.claim({ sessionId: "ses-1", owner: "o", now: 1, leaseMs: 1 })).toEqual({
        status: "not_found",
      });
      expect(await remove("ses-1")).toEqual({ status: "not_found" });
    });
  }

  for (const status of [
    "submitted",
    "working",
    "waiting",
    "input_required",
    "paused",
    "cancelling",
  ] as const) {
    test(`ST43: a session that is ${status} is not deleted`, async () => {
      await fixture.createIn(status);
      const before = await fixture.everything("ses-1");
      for (const subtree of ["refuse", "delete"] as const) {
        expect(await remove("ses-1", subtree)).toEqual({
          status: "not_ended",
          sessionId: "ses-1",
          sessionStatus: status,
        });
      }
      expect(await fixture.everything("ses-1")).toEqual(before);
    });
  }

  /** A parent that has ended, with a child, and one below that. */
  async function threeLevels(): Promise<{ child: Claimant; below: Claimant }> {
    const parent = await fixture.createClaimed("ses-1");
    const onEnd = "leave" as const;
    const child = await fixture.spawn(parent, "ses-2", {
      parent: { sessionId: "ses-1", child: parent.nextSeq, onEnd },
    });
    const below = await fixture.spawn(child, "ses-3", {
      parent: { sessionId: "ses-2", child: child.nextSeq, onEnd },
    });
    await end(parent);
    return { child, below };
  }

  test("ST43: a session with children is deleted only with them", async () => {
    const { child, below } = await threeLevels();
    await end(child);
    await end(below);
    const before = await listed();
    expect(await remove("ses-1")).toEqual({ status: "has_children" });
    expect(await listed()).toEqual(before);
    expect(await remove("ses-1", "delete")).toEqual({ status: "deleted", sessions: 3 });
    expect(await listed()).toEqual([]);
  });

  test("ST43: nothing is deleted while any below goes on", async () => {
    const { child, below } = await threeLevels();
    await end(child);
    const before = await listed();
    expect(await remove("ses-1", "delete")).toEqual({
      status: "not_ended",
      sessionId: "ses-3",
      sessionStatus: "submitted",
    });
    expect(await listed()).toEqual(before);
    await end(below);
    expect(await remove("ses-3")).toEqual({ status: "deleted", sessions: 1 });
    expect(await remove("ses-2")).toEqual({ status: "deleted", sessions: 1 });
    expect(await remove("ses-1")).toEqual({ status: "deleted", sessions: 1 });
  });

  // It pays for the one that took over, whose conversation begins with its own.
  test("ST43: a predecessor stays until its successor has ended", async () => {
    const first = await fixture.createClaimed("ses-1");
    const handing = {
      session: { ...PATCH_TO.completed, handedOffTo: "ses-2" },
      effects: [creating("ses-2")],
    };
    expect(await first.commit(handing)).toMatchObject({ status: "committed" });
    expect(await remove("ses-1")).toMatchObject({ status: "not_ended", sessionId: "ses-2" });
    await end(await fixture.claim("ses-2", "owner-1", 0));
    expect(await remove("ses-1")).toEqual({ status: "deleted", sessions: 1 });
    expect(await listed()).toEqual(["ses-2"]);
  });

  // It pays for these as well.
  test("ST43: a predecessor stays while any session below its successor is active", async () => {
    await fixture.apply(creating("ses-1", { budget: { maxTokens: 5 } }));
    const first = await fixture.claim("ses-1", "owner-1", 0);
    await first.commit({
      session: { ...PATCH_TO.completed, handedOffTo: "ses-2" },
      effects: [creating("ses-2")],
    });
    const second = await fixture.claim("ses-2", "owner-1", 0);
    const parent = { sessionId: "ses-2", child: 0, onEnd: "leave" } as const;
    await second.commit({ effects: [creating("ses-3", { parent })] });
    await end(second);
    expect((await fixture.session("ses-3")).payers).toEqual(["ses-1"]);
    expect(await remove("ses-1")).toMatchObject({ status: "not_ended", sessionId: "ses-3" });
    await end(await fixture.claim("ses-3", "owner-1", 0));
    expect(await remove("ses-1")).toEqual({ status: "deleted", sessions: 1 });
  });

  test("ST43: a new session with its id can be made, and has nothing of the first", async () => {
    const first = await fixture.createClaimed("ses-1", "owner-1");
    await fixture.apply(signalling("ses-1", "sig-1", { dedupKey: "k" }));
    const sent = first.batch({ records: [STARTED], session: PATCH_TO.completed });
    await fixture.apply(sent);
    await remove("ses-1");
    await fixture.apply(creating("ses-1", { input: '"new"' }), 2);
    expect(await fixture.session("ses-1")).toMatchObject({ status: "submitted", input: '"new"', nextSeq: 0 });
    const second = await fixture.claim("ses-1", "owner-2", 2);
    // The holder of the first session did not receive the answer to its end.
    expect(await fixture.apply(sent)).toEqual({ status: "fenced" });
    expect(await fixture.apply(signalling("ses-1", "sig-1", { dedupKey: "k" }))).toMatchObject({
      status: "stored",
      order: 1,
    });
    expect(await second.commit({ records: [STARTED] })).toMatchObject({ status: "committed" });
  });

  // Its place in the order is unknown, and starting over would show the first page twice.
  test("ST43: a page behind a deleted session is refused, others go on", async () => {
    for (const n of [1, 2, 3, 4]) await fixture.createIn("completed", `ses-${n}`);
    await remove("ses-3");
    await expect(fixture.storage.reader.sessions({ limit: 5, before: "ses-3" })).rejects.toMatchObject({
      code: "session_not_found",
    });
    const page = await fixture.storage.reader.sessions({ limit: 5, before: "ses-4" });
    expect(page.map(({ sessionId }) => sessionId)).toEqual(["ses-2", "ses-1"]);
  });

  test("ST43: in one group it is gone for what follows", async () => {
    await fixture.createIn("completed", "ses-1");
    const results = await fixture.storage.commit(
      [
        { type: "delete_session", sessionId: "ses-1", subtree: "refuse" },
        signalling("ses-1", "sig-1"),
        creating("ses-1"),
        signalling("ses-1", "sig-1"),
      ],
      1,
    );
    expect(results.map(({ status }) => status)).toEqual(["deleted", "not_found", "created", "stored"]);
    expect(await listed()).toEqual(["ses-1"]);
  });

  test("ST43: a session that is made again in one group with the end of the first belongs to its creator", async () => {
    await end(await fixture.createClaimed("ses-1", "owner-1"));
    const claimFor = { owner: "owner-2", leaseMs: LEASE_MS };
    const [, made] = await fixture.storage.commit(
      [{ type: "delete_session", sessionId: "ses-1", subtree: "refuse" }, creating("ses-1", { claimFor })],
      1,
    );
    const { token } = made as { readonly token: number };
    const batch = { sessionId: "ses-1", token, firstSeq: 0, records: [], entries: [], consumed: [] } as const;
    expect(await fixture.apply({ type: "commit_batch", ...batch }, 2)).toMatchObject({
      status: "committed",
    });
    expect(await fixture.storage.claim({ sessionId: "ses-1", owner: "o", now: 2, leaseMs: 1 })).toMatchObject(
      {
        status: "busy",
      },
    );
  });

  test("ST43: budgets, deadlines and leases of the deleted count no more", async () => {
    const deadlineAt = 500;
    await fixture.apply(creating("ses-1", { budget: { maxTokens: 10 }, deadlineAt }), 0);
    const claimant = await fixture.claim("ses-1", "owner-1", 0);
    await claimant.commit({ records: [scheduling("a")], charges: [reserving(0, 5)] });
    await end(claimant);
    expect(await remove("ses-1")).toEqual({ status: "deleted", sessions: 1 });
    expect(await fixture.storage.renew({ owner: "owner-1", now: 1, leaseMs: LEASE_MS })).toEqual({
      sessions: 0,
    });
    expect(await fixture.storage.due({ now: 1_000_000, limit: 10 })).toEqual({
      sessionIds: [],
      schedules: [],
    });
  });

  // Content is stored once wherever it occurs: it goes with the last that has it.
  test("ST43: large content that others have stays theirs", async () => {
    const large = JSON.stringify("x".repeat(200_000));
    for (const sessionId of ["ses-1", "ses-2"]) {
      const claimant = await fixture.createClaimed(sessionId);
      await claimant.commit({ records: [STARTED, scheduling("a", large)], entries: [{ content: large }] });
      await claimant.commit({ session: { status: "completed", output: large } });
    }
    const kept = await fixture.everything("ses-2");
    expect(await remove("ses-1")).toMatchObject({ status: "deleted" });
    expect(await fixture.everything("ses-2")).toEqual(kept);
  });

  test("ST43: a long history is deleted whole", async () => {
    const claimant = await fixture.createClaimed();
    for (let n = 0; n < 50; n++)
      await claimant.commit({ records: Array.from({ length: 40 }, () => scheduling("a", '"x"')) });
    await end(claimant);
    expect(await remove("ses-1")).toEqual({ status: "deleted", sessions: 1 });
    expect(await fixture.storage.reader.journal("ses-1", 0, 10_000)).toEqual([]);
  });

  if (fixture.subject.reopen !== undefined) {
    test("ST43: deleted sessions are gone after opening again, and later ones are there", async () => {
      const { child, below } = await threeLevels();
      await end(child);
      await end(below);
      await remove("ses-1", "delete");
      await fixture.reopen();
      expect(await listed()).toEqual([]);
      await fixture.apply(creating("ses-3"), 5);
      await fixture.apply(creating("ses-4"), 5);
      await fixture.reopen();
      expect(await listed()).toEqual(["ses-4", "ses-3"]);
      expect(await fixture.session("ses-3")).toMatchObject({ createdAt: 5, nextSeq: 0 });
    });
  }
}
