import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineTask, createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";

import { RECORD } from "../testing/agent-record.ts";
import { fakeModel, type Say } from "../testing/fake-model.ts";
import { workspacesByRoot } from "../tasks/workspace-source.ts";
import type { AnyCapability, Capability } from "./capability.ts";
import { ModelLoop } from "./model-loop.ts";
import { defineTool } from "./tools/tool.ts";

let folder: string;
let runtime: Runtime | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "capability-"));
});

afterEach(async () => {
  await runtime?.close();
  await rm(folder, { recursive: true, force: true });
});

const lookUp = defineTask<{ readonly word: string }, string>({
  name: "look_up",
  run: ({ word }) => Promise.resolve(`the meaning of ${word}`),
});

/** A capability whose tool looks words up. Its facts say how often it was prepared. */
function dictionary(prepared: { count: number }): Capability<number> {
  return {
    name: "dictionary",
    tasks: [lookUp],
    prepare: () => Promise.resolve(++prepared.count),
    offer: (count) => ({
      instructions: `Dictionary ${count}.`,
      tools: [
        defineTool({
          name: "define",
          description: "Look a word up.",
          input: z.strictObject({ word: z.string() }),
          isReading: true,
          run: (ctx, input) => ctx.scheduleTask(lookUp, input),
        }),
      ],
    }),
  };
}

async function run(capabilities: readonly AnyCapability[], script: readonly Say[]) {
  const model = fakeModel(script);
  const loop = new ModelLoop({ model, workspace: workspacesByRoot(), root: folder, capabilities });
  runtime = createRuntime({ storage: new MemoryStorage() });
  return { model, handle: await runtime.start(loop.agent(RECORD), "hi") };
}

test("a capability is prepared once, and its tool and instructions are in every request", async () => {
  const prepared = { count: 0 };
  const { model, handle } = await run(
    [dictionary(prepared)],
    [{ calls: [["define", { word: "durable" }]] }, { text: "Done." }],
  );
  expect(await handle.result()).toBe("Done.");
  expect(prepared.count).toBe(1);
  expect(model.requests).toHaveLength(2);
  for (const { system, tools } of model.requests) {
    expect(system).toMatch(/^You help\.\n\nDictionary 1\.\n\n/);
    expect(tools?.map(({ name }) => name)).toContain("define");
  }
  expect(model.requests[1]?.messages.at(-1)).toMatchObject({ content: { text: "the meaning of durable" } });
});

test("a capability that the agent does not use adds nothing", async () => {
  const unused: AnyCapability = { ...dictionary({ count: 0 }), prepare: () => Promise.resolve(null) };
  const { model, handle } = await run([unused], [{ text: "Done." }]);
  expect(await handle.result()).toBe("Done.");
  expect(model.requests[0]?.system).not.toContain("Dictionary");
  expect(model.requests[0]?.tools?.map(({ name }) => name)).not.toContain("define");
});

test("two tools of one name fail the session before its first model call, and the error names both owners", async () => {
  const other: AnyCapability = { ...dictionary({ count: 0 }), name: "thesaurus", tasks: [] };
  const { model, handle } = await run([dictionary({ count: 0 }), other], [{ text: "Done." }]);
  await expect(handle.result()).rejects.toThrow(
    /two tools "define", one from dictionary and one from thesaurus/,
  );
  expect(model.requests).toHaveLength(0);
});
