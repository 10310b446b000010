import assert from "node:assert/strict";
import { test } from "node:test";
import { createRuntime, MemoryStorage } from "holdfast";
import { crashEverywhere, memorySubject } from "holdfast/testing";
import { first } from "./first-agent.ts";

process.env["SECTION_MS"] = "1";

test("the agent writes a section for each part of its outline", async () => {
  const runtime = createRuntime({ storage: new MemoryStorage() });
  const session = await runtime.start(first, "lamps");
  assert.equal((await session.result()).split("\n").length, 3);
  await runtime.close();
});

test("a crash at any point changes nothing", async () => {
  // It runs the agent once for each commit and each task, with a crash there, and compares the ends.
  const report = await crashEverywhere({ name: "first-agent", agent: first, input: "lamps" }, memorySubject);
  assert.deepEqual(report.failures, []);
});
