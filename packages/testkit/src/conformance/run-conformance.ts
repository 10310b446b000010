// ST50: the runs of a session that have ended are kept with it, in the transaction that ends them.

import { ENDED_RUNS, endedRunsOf, type EndedRun } from "@holdfast/core";
import { expect, test } from "vitest";
import { creating, PATCH_TO, type Claimant, type Fixture } from "./fixture.ts";

/** The most that are kept for a session. */
const KEPT = 50;

export function runConformance(fixture: Fixture): void {
  const run = { holder: "rnr-1", since: 3 };
  const release = ({ sessionId, token }: Claimant, more: object = { run }, now = 9) =>
    fixture.apply({ type: "release_claim", sessionId, token, ...more }, now);
  const runsOf = async (sessionId = "ses-1"): Promise<readonly EndedRun[]> => {
    const document = await fixture.storage.reader.document(ENDED_RUNS, sessionId);
    return document === undefined ? [] : endedRunsOf(document);
  };
  const claim = () => fixture.claim("ses-1", "owner-1", 9);

  test("ST50: a release with a note keeps the run, with the status its session has then", async () => {
    const claimant = await fixture.createClaimed("ses-1");
    await claimant.commit({ session: PATCH_TO.waiting });
    expect(await release(claimant)).toEqual({ status: "released" });
    const { token } = claimant;
    expect(await runsOf()).toEqual([{ ...run, token, endedAt: 9, outcome: "waiting" }]);
  });

  test("ST50: a batch that ends its session keeps the run, and one that does not keeps none", async () => {
    const claimant = await fixture.createClaimed("ses-1");
    const commit = async (session: (typeof PATCH_TO)["working"]) => {
      const batch = { ...claimant.batch({ session }), run };
      expect(await fixture.apply(batch, 7)).toMatchObject({ status: "committed" });
      claimant.follow(batch);
    };
    await commit(PATCH_TO.working);
    expect(await runsOf()).toEqual([]);
    await commit(PATCH_TO.completed);
    expect(await runsOf()).toEqual([{ ...run, token: claimant.token, endedAt: 7, outcome: "completed" }]);
  });

  test("ST50: a change without a note keeps no run, and neither does one that is fenced", async () => {
    const first = await fixture.createClaimed("ses-1");
    await release(first, {});
    const second = await claim();
    expect(await release(first)).toEqual({ status: "fenced" });
    expect(await fixture.apply({ ...first.batch({ session: PATCH_TO.completed }), run }, 1)).toEqual({
      status: "fenced",
    });
    expect(await runsOf()).toEqual([]);
    await second.commit({ session: PATCH_TO.completed });
    expect(await runsOf()).toEqual([]);
  });

  test("ST50: a hard cancel keeps the run of a claim with a lease, once, with its owner", async () => {
    await fixture.apply(creating("ses-1"), 0);
    await fixture.apply(creating("ses-2", { parent: { sessionId: "ses-1", child: 0, onEnd: "cancel" } }), 0);
    await fixture.apply(creating("ses-3"), 0);
    const [one, two] = [await claim(), await fixture.claim("ses-2", "owner-2", 9)];
    await fixture.claim("ses-3", "owner-1", 9, Infinity);
    for (const sessionId of ["ses-1", "ses-3"])
      await fixture.apply({ type: "request_cancel", sessionId, mode: "hard", graceMs: 0 }, 10);
    const ended = { endedAt: 10, outcome: "cancelled" };
    const kept = [{ holder: "owner-1", token: one.token, ...ended }];
    expect(await runsOf("ses-1")).toEqual(kept);
    expect(await runsOf("ses-2")).toEqual([{ holder: "owner-2", token: two.token, ...ended }]);
    expect(await runsOf("ses-3")).toEqual([]);
    await release(one, { run }, 12);
    expect(await runsOf("ses-1")).toEqual(kept);
  });

  test("ST50: a hard cancel keeps no run of a claim that was released", async () => {
    await release(await fixture.createClaimed("ses-1"), {});
    await fixture.apply({ type: "request_cancel", sessionId: "ses-1", mode: "hard", graceMs: 0 }, 10);
    expect(await runsOf()).toEqual([]);
  });

  test("ST50: a graceful cancel whose time is up keeps the run", async () => {
    await fixture.apply(creating("ses-1"), 0);
    const { token } = await claim();
    await fixture.apply({ type: "request_cancel", sessionId: "ses-1", mode: "graceful", graceMs: 5 }, 10);
    expect(await runsOf()).toEqual([]);
    await fixture.storage.due({ now: 15, limit: 1 });
    expect(await runsOf()).toMatchObject([{ holder: "owner-1", token, outcome: "cancelled" }]);
  });

  test(`ST50: the newest ${KEPT} runs of a session are kept, and go with it when it is deleted`, async () => {
    let claimant = await fixture.createClaimed("ses-1");
    const tokens: number[] = [];
    for (let i = 0; i <= KEPT; i++) {
      if (i > 0) claimant = await claim();
      tokens.push(claimant.token);
      await release(claimant);
    }
    expect((await runsOf()).map(({ token }) => token)).toEqual(tokens.slice(1));
    const last = await claim();
    await fixture.apply({ ...last.batch({ session: PATCH_TO.completed }), run }, 1);
    expect((await runsOf()).at(-1)).toMatchObject({ outcome: "completed", token: last.token });
    expect(await fixture.apply({ type: "delete_session", sessionId: "ses-1", subtree: "refuse" }, 1)).toEqual(
      { status: "deleted", sessions: 1 },
    );
    expect(await runsOf()).toEqual([]);
  });
}
