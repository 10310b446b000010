import assert from "node:assert/strict";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { createRuntime, MemoryStorage, type SessionHandle } from "holdfast";
import { order } from "../agents/order.ts";
import { createApp } from "./app.ts";

process.env["LEDGER"] = join(mkdtempSync(join(tmpdir(), "orders-")), "ledger.log");

test("an order is charged once, waits for an answer, and is shipped", async (t) => {
  const runtime = createRuntime({ storage: new MemoryStorage(), agents: [order] });
  t.after(() => runtime.close());
  const app = createApp(runtime);
  const send = async (method: string, path: string, body?: object) => {
    const answer = await app.request(path, { method, body: JSON.stringify(body) });
    return [answer.status, await answer.json()];
  };
  assert.deepEqual(await send("PUT", "/orders/o-1", { item: "lamp" }), [202, { id: "o-1", created: true }]);
  assert.deepEqual(await send("PUT", "/orders/o-1", { item: "lamp" }), [202, { id: "o-1", created: false }]);
  assert.equal((await send("PUT", "/orders/o-2", {}))[0], 400);
  assert.equal((await send("POST", "/orders/none/answer", { approved: true }))[0], 404);

  const handle = runtime.handle("o-1");
  await asks(handle);
  assert.equal((await send("POST", "/orders/o-1/answer", { approved: true }))[0], 200);
  assert.deepEqual(await handle.result(), { receipt: "receipt of lamp", state: "shipped" });
  const ledger = readFileSync(process.env["LEDGER"]!, "utf8");
  assert.match(ledger, /^charged lamp \S+\nshipped lamp\n$/);
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
