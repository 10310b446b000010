// The usage that a failed call of a model reports, by the way it failed.

import type { TaskContext } from "@holdfast/runtime";
import { startScriptedModelServer, type ScriptedModelServer } from "@holdfast/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";

import { modelTask } from "./model-task.ts";
import { scriptedModel } from "./resolve-model.ts";

let server: ScriptedModelServer;
beforeAll(async () => {
  server = await startScriptedModelServer({ script: () => ({ text: "half" }) });
});
afterAll(() => server.close());

async function usageOf(url: string): Promise<unknown[]> {
  const usage: unknown[] = [];
  const context: Partial<TaskContext> = {
    attempt: 1,
    signal: new AbortController().signal,
    streamToken: () => {},
    reportUsage: (one) => void usage.push(one),
  };
  const input = { system: "You help.", messages: [{ role: "user", content: "Hello" }] };
  await expect(modelTask(scriptedModel(url)).run(input, context as TaskContext)).rejects.toMatchObject({
    code: "model_unavailable",
  });
  return usage;
}

test("a call that reached no server costs nothing", async () => {
  const nothing = [{ model: "scripted/scripted-model", inputTokens: 0, outputTokens: 0, costMicroUsd: 0 }];
  const refused = "http://127.0.0.1:49151";
  const unresolved = "http://nosuch.invalid";
  const withoutTls = server.url.replace("http:", "https:");
  for (const url of [refused, unresolved, withoutTls]) expect(await usageOf(url), url).toEqual(nothing);
});

test("a call that was cut off in its answer does not say what it used", async () => {
  server.setFaults({ 1: { type: "cut", afterChunks: 1 } });
  expect(await usageOf(server.url)).toEqual([]);
});
