// A test fakes the timers of its process. Storages and servers of that process stand still for no fake.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { createRuntime, defineAgent, openSqliteStorage } from "../index.ts";

const FAKED = [
  "setTimeout",
  "clearTimeout",
  "setInterval",
  "clearInterval",
  "setImmediate",
  "clearImmediate",
  "queueMicrotask",
] as const;

const reminder = defineAgent({
  name: "reminder",
  run: async (ctx, ms: number) => {
    await ctx.sleep(ms);
    return ctx.run("mail", () => "sent");
  },
});

afterEach(() => void vi.useRealTimers());

test("a database is opened, shared and closed while the timers of the process are faked", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "test.db");
  vi.useFakeTimers({ toFake: [...FAKED] });
  const owner = await openSqliteStorage({ path });
  const client = await openSqliteStorage({ path }); // Over the socket of the first.
  const runtimes = [createRuntime({ storage: owner }), createRuntime({ storage: client })];
  for (const runtime of runtimes) {
    expect(await (await runtime.start(reminder, 5)).result()).toBe("sent");
    await runtime.close();
  }
  await client.close();
  await owner.close();
  expect(vi.getTimerCount()).toBe(0);
}, 20_000);
