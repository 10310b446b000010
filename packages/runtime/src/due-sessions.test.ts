// What is due is run by whoever knows its agent, however much else is due.

import type { CreateSession } from "@holdfast/core";
import { countingRandom, TestClock } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { defineAgent } from "./define.ts";
import { MemoryStorage } from "./memory-storage.ts";
import { createRuntime } from "./runtime.ts";

function creating(sessionId: string, name: string): CreateSession {
  const agent = { name, version: "1" };
  return { type: "create_session", sessionId, agent, input: undefined, seed: 1, flags: 0, format: 1 };
}

test("an agent that is known here does not starve behind 1,200 sessions of others", async () => {
  const storage = new MemoryStorage();
  const foreign = Array.from({ length: 1_200 }, (_, n) => creating(`foreign-${n}`, "foreign"));
  await storage.commit([...foreign, creating("known", "known")], 0);
  const known = defineAgent({ name: "known", run: async () => "done" });
  const runtime = createRuntime({
    storage,
    agents: [known],
    clock: new TestClock(),
    random: countingRandom(),
    development: false,
  });
  expect(await runtime.recover()).toEqual(["known"]);
  expect(await runtime.handle("known").result()).toBe("done");
  expect((await storage.reader.session("foreign-0"))?.status).toBe("submitted");
  await runtime.close();
});
