import { createRuntime, defineTask, MemoryStorage } from "@holdfast/runtime";
import { expect, test } from "vitest";
import { testAgent } from "./test-agent.ts";

test("an agent for tests does its steps in order, or those of its input", async () => {
  const double = defineTask({ name: "double", run: (n) => Number(n) * 2 });
  const agent = testAgent({
    name: "told",
    steps: [
      { say: "hello" },
      { task: "double", input: 21 },
      { wait: "go" },
      { sleepMs: 1 },
      { progress: 0.5 },
      { ask: "ok?" },
    ],
  });
  const storage = new MemoryStorage();
  const runtime = createRuntime({ storage, tasks: [double], development: false });
  const handle = await runtime.start(agent);
  await handle.signal("go", { n: 1 });
  await handle.signal("unheard");
  const result = handle.result();
  while ((await handle.session()).status !== "input_required")
    await new Promise((resolve) => setImmediate(resolve));
  await handle.answer({ approved: true });
  expect(await result).toEqual([42, { n: 1 }, { approved: true }]);
  expect((await storage.reader.entries(handle.sessionId, 0, 9)).map(({ content }) => content)).toEqual([
    '"hello"',
  ]);
  const failing = await runtime.start(agent, { steps: [{ wait: "go" }, { fail: "as told" }] });
  await failing.signal("go");
  expect(await failing.settled()).toMatchObject({ status: "failed", error: { message: "as told" } });
  await runtime.close();
});
