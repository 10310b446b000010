import assert from "node:assert/strict";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { createRuntime, MemoryStorage, type SessionHandle } from "holdfast";
import { order } from "./order.ts";

process.env["LEDGER"] = join(mkdtempSync(join(tmpdir(), "orders-")), "ledger.log");

test("an order is charged, waits for an answer, and is shipped", async (t) => {
  const runtime = createRuntime({ storage: new MemoryStorage() });
  t.after(() => runtime.close());
  const handle = await runtime.start(order, { item: "lamp" });
  await asks(handle);
  await handle.answer({ approved: true });
  assert.deepEqual(await handle.result(), { receipt: "receipt of lamp", state: "shipped" });
  assert.match(readFileSync(process.env["LEDGER"]!, "utf8"), /^charged lamp \S+\nshipped lamp\n$/);
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
