// Reads between two deliveries: those of the agent are reported, and those that Holdfast makes on its behalf
// are not.

import { createRuntime, defineAgent, MemoryStorage } from "@holdfast/runtime";
import { CoordinatorConnection } from "@holdfast/storage/remote";
import { expect, test } from "vitest";

/** The warnings about an agent that makes this read. */
async function warningsOf(read: () => void): Promise<string[]> {
  const warned: string[] = [];
  const storage = new MemoryStorage();
  const runtime = createRuntime({
    storage,
    development: true,
    tracer: { trace: (event) => void (event.type === "warned" && warned.push(event.message)) },
  });
  const agent = defineAgent({ name: "reads", run: async () => read() });
  await (await runtime.start(agent)).result();
  await runtime.close();
  await storage.close();
  return warned;
}

test("a clock that the agent reads is reported, with its line", async () => {
  const warned = await warningsOf(() => void performance.now());
  expect(warned).toHaveLength(1);
  expect(warned[0]).toMatch(/^performance\.now\(\) in an agent .*outside-calls\.test\.ts:\d+:\d+\); use/);
});

// In a checkout our packages do not lie under node_modules.
test("a clock that our packages read while an agent runs is not its doing", async () => {
  const connection = new CoordinatorConnection({ url: "http://127.0.0.1:9", token: "none" });
  expect(await warningsOf(() => void connection.time.monotonic())).toEqual([]);
  connection.close();
});
