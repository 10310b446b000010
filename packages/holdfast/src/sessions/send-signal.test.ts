import { setTimeout as delay } from "node:timers/promises";
import { MemoryStorage } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import type { Access } from "@holdfast/place/find-session";
import { isIdle } from "./send-signal.ts";

const creating = {
  type: "create_session",
  sessionId: "s",
  agent: { name: "agent", version: "1" },
  input: undefined,
  seed: 1,
  flags: 0,
  format: 1,
} as const;

async function accessAs(role: "client" | "owner"): Promise<Access> {
  const storage = new MemoryStorage();
  await storage.commit([creating], 1);
  // The code under test calls only the common methods of the owner's storage.
  return { role, storage, owner: { pid: 1, since: 1 } } as unknown as Access;
}

test("a session that another process takes in a moment is not idle", async () => {
  const access = await accessAs("client");
  const asked = isIdle(access, ["s"]);
  await delay(50);
  await access.storage.claim({ sessionId: "s", owner: "other", now: Date.now(), leaseMs: Infinity });
  expect(await asked).toBe(false);
});

test("a session that no process claims is idle, at once where there is no other process", async () => {
  expect(await isIdle(await accessAs("owner"), ["s"])).toBe(true);
  expect(await isIdle(await accessAs("client"), ["s"])).toBe(true);
});
