// The budget that an agent has for its sessions.

import { expect, onTestFinished, test } from "vitest";
import { defineAgent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";

test("an agent has a budget of its own, which a start replaces, and which its schedules have", async () => {
  const storage = new MemoryStorage();
  const runtime = createRuntime({ storage, development: false });
  onTestFinished(() => runtime.close());
  const agent = defineAgent({ name: "thrifty", budget: { maxSteps: 3 }, run: async () => "done" });
  const limitsOf = async (sessionId: string) => (await storage.reader.session(sessionId))?.account?.limits;
  await runtime.start(agent, null, { sessionId: "own" });
  await runtime.start(agent, null, { sessionId: "given", budget: { maxTokens: 9 } });
  expect([await limitsOf("own"), await limitsOf("given")]).toEqual([{ maxSteps: 3 }, { maxTokens: 9 }]);
  await runtime.schedule({
    id: "nightly",
    cron: "0 3 * * *",
    timeZone: "UTC",
    start: { agent, input: null },
  });
  expect((await storage.reader.schedules())[0]?.action).toMatchObject({ budget: { maxSteps: 3 } });
  expect(() => defineAgent({ name: "wrong", budget: { maxSteps: -1 }, run: async () => 1 })).toThrow(
    "maxSteps",
  );
});
