// A daemon that nothing ends is warned about, or refused.

import type { TraceEvent } from "@holdfast/core";
import { expect, test } from "vitest";
import { defineAgent } from "./define.ts";
import { MemoryStorage } from "../memory/memory-storage.ts";
import { createRuntime } from "../runtime.ts";

const daemon = defineAgent({
  name: "daemon",
  initial: () => 0,
  turn: async (ctx, n: number) => ({ state: n + Number(await ctx.waitForSignal("go")) }),
});
const free = defineAgent({ name: "free", run: async (ctx) => ctx.waitForSignal("go") });

function open(strictBounds: boolean) {
  const warnings: string[] = [];
  const storage = new MemoryStorage();
  const trace = (event: TraceEvent): void => {
    if (event.type === "warned") warnings.push(event.message);
  };
  return { warnings, storage, runtime: createRuntime({ storage, strictBounds, tracer: { trace } }) };
}

test("a daemon without a time and a budget is started with one warning", async () => {
  const { runtime, warnings } = open(false);
  await runtime.start(daemon, undefined, { sessionId: "d" });
  await runtime.start(daemon, undefined, { sessionId: "d" });
  expect(warnings).toEqual([expect.stringContaining('agent "daemon" may take turns for ever')]);
  await runtime.close();
});

test("a daemon that limits its turns is started without a warning, and refused where bounds are strict", async () => {
  const limited = defineAgent({
    name: "limited",
    initial: () => 0,
    limitsTurns: true,
    turn: async (ctx, n: number) => ({ state: n + Number(await ctx.waitForSignal("go")) }),
  });
  const { runtime, warnings } = open(false);
  await runtime.start(limited, undefined, { sessionId: "d" });
  expect(warnings).toEqual([]);
  await runtime.close();
  const strict = open(true).runtime;
  await expect(strict.start(limited, undefined)).rejects.toMatchObject({ code: "usage" });
  await strict.close();
});

test("where bounds are strict it is refused, and nothing is stored", async () => {
  const { runtime, storage } = open(true);
  await expect(runtime.start(daemon, undefined, { sessionId: "d" })).rejects.toMatchObject({
    code: "usage",
    fix: expect.stringContaining("--ttl"),
  });
  await expect(
    runtime.start(daemon, undefined, { sessionId: "d", budget: { onExhausted: "cancel" } }),
  ).rejects.toMatchObject({ code: "usage" });
  expect(await storage.reader.session("d")).toBeUndefined();
  await runtime.close();
});

test("where bounds are strict a schedule of it is refused, and one with a budget is stored", async () => {
  const { runtime, storage } = open(true);
  const nightly = { id: "nightly", cron: "0 3 * * *", timeZone: "UTC" };
  await expect(runtime.schedule({ ...nightly, start: { agent: daemon } })).rejects.toMatchObject({
    code: "usage",
    at: "strictBounds",
  });
  expect(await storage.reader.schedules()).toEqual([]);
  await runtime.schedule({ ...nightly, start: { agent: daemon, budget: { ttlMs: 60_000 } } });
  await runtime.schedule({ ...nightly, id: "free", start: { agent: free } });
  expect(await storage.reader.schedules()).toHaveLength(2);
  await runtime.close();
});

test("a time, any budget that ends it, or the free form is a bound", async () => {
  const { runtime, warnings } = open(true);
  await runtime.start(daemon, undefined, { timeoutMs: 60_000 });
  for (const limit of ["maxCostMicroUsd", "maxTokens", "maxSteps", "maxTurns", "ttlMs"])
    await runtime.start(daemon, undefined, { budget: { [limit]: 100_000 } });
  await runtime.start(free);
  expect(warnings).toEqual([]);
  await runtime.close();
});
