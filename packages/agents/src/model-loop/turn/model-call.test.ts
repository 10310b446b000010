import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HoldfastError, PauseError } from "@holdfast/core";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";

import type { AgentRecord } from "../../record/agent-record.ts";
import type { ModelProvider } from "../../models/model-provider.ts";
import { workspacesByRoot } from "../../tasks/workspace-source.ts";
import { RECORD } from "../../testing/agent-record.ts";
import { fakeModel } from "../../testing/fake-model.ts";
import { ModelLoop } from "../model-loop.ts";

let folder: string;
let runtime: Runtime;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "model-call-"));
  runtime = createRuntime({ storage: new MemoryStorage() });
});

afterEach(async () => {
  await runtime.close();
  await rm(folder, { recursive: true, force: true });
});

const limited = () =>
  new PauseError("quota_exceeded", "over its limit", { pause: { reason: "quota", pool: "p" } });
const down = () =>
  Object.assign(new HoldfastError("model_unavailable", "down"), { name: "NonRetryableError" });

/** Models by name: each answers with its name, unless it throws. */
function start(record: Partial<AgentRecord>, throws: Record<string, () => Error | undefined>) {
  const asked: string[] = [];
  const model = (wanted = "none"): ModelProvider =>
    fakeModel(() => {
      asked.push(wanted);
      const error = throws[wanted]?.();
      if (error !== undefined) throw error;
      return { text: wanted, model: wanted };
    });
  const loop = new ModelLoop({ model, workspace: workspacesByRoot(), root: folder });
  return { asked, handle: runtime.start(loop.agent({ ...RECORD, ...record }), "hi") };
}

test("a model that is over its usage limit leaves its place to the next of the list", async () => {
  const { asked, handle } = start(
    { model: "a/1", fallbackModels: ["b/2", "c/3"] },
    { "a/1": limited, "b/2": down },
  );
  expect(await (await handle).result()).toBe("c/3");
  expect(asked).toEqual(["a/1", "b/2", "c/3"]);
});

test("a list without a model that answers pauses for the first that comes back, which is asked again", async () => {
  let isReset = false;
  const { asked, handle } = start(
    { model: "a/1", fallbackModels: ["b/2", "c/3"] },
    { "a/1": down, "b/2": () => (isReset ? undefined : limited()), "c/3": down },
  );
  const session = await handle;
  expect(await session.settled()).toMatchObject({ status: "paused", fault: { code: "quota_exceeded" } });
  expect(asked).toEqual(["a/1", "b/2", "c/3", "b/2"]);
  isReset = true;
  await session.unpause();
  expect(await session.result()).toBe("b/2");
});

test("a list of models that cannot be reached fails with the error of the last", async () => {
  const { handle } = start({ model: "a/1", fallbackModels: ["b/2"] }, { "a/1": down, "b/2": down });
  expect(await (await handle).settled()).toMatchObject({
    status: "failed",
    error: { cause: { message: "down" } },
  });
});
