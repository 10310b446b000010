// `Unmatched` while its sweep runs and sessions change. How sessions without a runner end is tested in
// `defects.test.ts`.

import type { CreateSession } from "@holdfast/core";
import { MemoryStorage, storageWith, TestClock } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { Registry } from "../store/registry.ts";
import { NO_MATCH_MS } from "./rules.ts";
import { Unmatched } from "./unmatched.ts";

const CREATION: CreateSession = {
  type: "create_session",
  sessionId: "s",
  agent: { name: "agent", version: "1" },
  input: "null",
  seed: 1,
  flags: 0,
  format: 1,
};

test("unmatched-3: a session that ran after it was found due is left unchanged", async () => {
  const [clock, storage] = [new TestClock(), new MemoryStorage()];
  const now = () => clock.now();
  /** A runner came, and went again. */
  const run = async () => {
    const claim = await storage.claim({ sessionId: "s", owner: "r", now: now(), leaseMs: 1_000 });
    const { token } = claim as { readonly token: number };
    const waits = [{ type: "signal", id: 0, name: "go" }] as const;
    const session = { status: "waiting", waits } as const;
    const batch = { token, firstSeq: 0, records: [], entries: [], consumed: [], session };
    const release = { type: "release_claim", sessionId: "s", token } as const;
    await storage.commit([{ type: "commit_batch", sessionId: "s", ...batch }, release], now());
  };
  let isTime = false;
  const seen = storageWith(storage, {
    async claim(claim) {
      if (isTime) await run();
      return storage.claim(claim);
    },
  });
  await storage.commit([CREATION], now());
  const unmatched = new Unmatched({
    storage: seen,
    clock,
    registry: new Registry({ storage: seen, clock }),
    isKept: async () => false,
  });
  await unmatched.sweep();
  await clock.advance(NO_MATCH_MS);
  isTime = true;
  await unmatched.sweep();
  expect((await storage.reader.session("s"))?.status).toBe("waiting");
  expect(await storage.heldClaims({ now: now(), limit: 1 })).toEqual([]);
});
