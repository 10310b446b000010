import assert from "node:assert/strict";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { createRuntime, MemoryStorage, type SessionHandle } from "holdfast";
import { startScriptedModelServer } from "holdfast/testing";
import { script } from "../model/script.ts";
import { assistant } from "./assistant.ts";

test("a refund waits for a person, and is made once", async (t) => {
  const server = await startScriptedModelServer({ script });
  t.after(() => server.close());
  process.env["HOLDFAST_SCRIPTED_MODEL_URL"] = server.url;
  process.chdir(mkdtempSync(join(tmpdir(), "assistant-")));
  const runtime = createRuntime({ storage: new MemoryStorage() });
  t.after(() => runtime.close());
  const session = await runtime.start(assistant, "My lamp of order 7 is broken.");
  await asks(session);
  await session.answer({ approved: true });
  assert.equal(await session.result(), "You get 49 EUR back.");
  assert.match(readFileSync("refunds.log", "utf8"), /^49 EUR for 7 \(\S+\)\n$/);
});

async function asks(session: SessionHandle): Promise<void> {
  for (let i = 0; i < 1_000; i++) {
    const { status, error } = await session.session();
    if (status === "input_required") return;
    if (status !== "working") assert.fail(`the session is ${status}: ${error?.message ?? ""}`);
    await pause(10);
  }
  assert.fail("the session asks nothing");
}
