// `EarlierCode`: which runners may get a session that a superseded runner keeps.

import { describe, expect, test } from "vitest";
import { MemoryStorage, TestClock } from "@holdfast/testkit/test-runtime";
import { Registry, type StoredRunner } from "../store/registry.ts";
import { creation } from "../testing/dispatch-stand.ts";
import { EarlierCode } from "./earlier-code.ts";
import { Pollers } from "./poller.ts";
import type { Candidate } from "./rules.ts";

const LEASE_MS = 15_000;
const KEPT: Candidate = { sessionId: "kept", agent: "agent", version: "1", since: 0, checkpointSeq: 4 };

async function open(old: Partial<StoredRunner> = {}) {
  const [storage, clock] = [new MemoryStorage(), new TestClock()];
  const registry = new Registry({ storage, clock });
  for (const runnerId of ["old", "new"])
    await registry.change(runnerId, undefined, () => ({
      runnerId,
      tokenId: runnerId,
      hostname: "h",
      project: "",
      labels: {},
      taskKinds: [],
      agents: [{ name: "agent" }],
      maxRuns: 9,
      registeredAt: 0,
      seenAt: 0,
      ...(runnerId === "old" ? old : {}),
    }));
  const pollers = new Pollers(clock);
  const earlier = new EarlierCode({ storage, clock, registry, leaseMs: LEASE_MS }, pollers);
  const poll = (runnerId: string, kept?: readonly string[]): void => {
    const poller = pollers.of(runnerId);
    poller.lastSeenAt = clock.monotonic();
    poller.kept = kept && new Set(kept);
  };
  const onlyAt = async (candidate: Candidate): Promise<readonly string[] | undefined> => {
    const [placed] = await earlier.place([candidate]);
    return placed!.onlyAt && [...placed!.onlyAt];
  };
  return { storage, clock, registry, earlier, poll, onlyAt };
}

describe("a session that a superseded runner keeps", () => {
  test("it goes to the newer code, and back when it diverges there, until its next checkpoint", async () => {
    const { earlier, poll, onlyAt } = await open();
    poll("new");
    poll("old", ["kept"]);
    expect(await onlyAt(KEPT)).toEqual(["new"]);
    earlier.diverged("kept", "new");
    expect(await onlyAt(KEPT)).toEqual(["old"]);
    expect(await onlyAt({ ...KEPT, checkpointSeq: 9 })).toEqual(["new"]);
  });

  test("it stays with the earlier code when the newer code has not its agent or its version", async () => {
    const { registry, poll, onlyAt } = await open();
    poll("new");
    poll("old", ["kept"]);
    await registry.change("new", undefined, (runner) => ({
      ...runner!,
      agents: [{ name: "agent", version: "2" }],
    }));
    expect(await onlyAt(KEPT)).toEqual(["old"]);
  });

  test("another session, and one whose keeper is silent for a lease, may go to any runner", async () => {
    const { clock, earlier, poll, onlyAt } = await open();
    poll("new");
    poll("old", ["kept"]);
    earlier.diverged("kept", "new");
    expect(await onlyAt({ ...KEPT, sessionId: "other" })).toBeUndefined();
    await clock.advance(LEASE_MS);
    poll("new");
    expect(await onlyAt(KEPT)).toBeUndefined();
  });

  test("earlier-code-3: after a restart of the coordinator, a stored keeper is waited for during one lease", async () => {
    const { clock, earlier, poll, onlyAt } = await open({ superseded: true });
    poll("new");
    expect(await onlyAt(KEPT)).toEqual(["new"]);
    earlier.diverged("kept", "new");
    expect(await onlyAt(KEPT)).toEqual(["old"]);
    await clock.advance(LEASE_MS);
    poll("new");
    expect(await onlyAt(KEPT)).toBeUndefined();
  });

  test("it leaves its runner when it ends or another runner commits to it, and the first that stays ends the search", async () => {
    const { storage, clock, earlier } = await open();
    await storage.commit([creation("ended"), creation("stays"), creation("behind")], clock.now());
    const end = (sessionId: string) =>
      ({ type: "request_cancel", sessionId, mode: "hard", graceMs: 0 }) as const;
    await storage.commit([end("ended"), end("behind")], clock.now());
    const kept = ["ended", "gone", "stays", "behind"].map((sessionId) => ({ sessionId, nextSeq: 0 }));
    expect(await earlier.leftOf("old", kept)).toEqual(["ended", "gone"]);
  });
});
