// Answers that name no question, for several open questions.

import { TestClock, turns } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";
import { defineAgent } from "../agents/define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";

test("answers without a question go to one open question after another, also before they are read", async () => {
  const storage = new MemoryStorage();
  const agent = defineAgent({
    name: "asks",
    run: (ctx) => ctx.all([ctx.requestInput("first?"), ctx.requestInput("second?")]),
  });
  const runtime = createRuntime({ storage, agents: [agent], clock: new TestClock(), development: false });
  const session = await runtime.start(agent);
  await session.pause();
  await turns(10);
  expect(await session.answer({ approved: true })).toEqual({ status: "stored" });
  expect(await session.answer({ approved: false })).toEqual({ status: "stored" });
  expect(await session.answer({ approved: false })).toEqual({ status: "duplicate" }); // All have one, and the first stands.
  await session.unpause();
  expect(await session.result()).toEqual([{ approved: true }, { approved: false }]);
  await runtime.close();
});
