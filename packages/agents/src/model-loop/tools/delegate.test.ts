import { tmpdir } from "node:os";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { afterEach, expect, test } from "vitest";

import { RECORD } from "../../testing/agent-record.ts";
import { fakeModel } from "../../testing/fake-model.ts";
import { workspacesByRoot } from "../../tasks/workspace-source.ts";
import { ModelLoop } from "../model-loop.ts";

let runtime: Runtime | undefined;
afterEach(() => runtime?.close());

test("a session keeps the descriptions of the agents that it may start when their files have changed", async () => {
  const model = fakeModel((_request, number) =>
    number === 0 ? { calls: [["ask_user", { question: "Go on?" }]] } : { text: "Done." },
  );
  const lead = (description: string) => {
    const loop = new ModelLoop({ model, workspace: workspacesByRoot(), root: tmpdir() });
    return loop.agent({ ...RECORD, tools: null }, [loop.agent({ ...RECORD, name: "other", description })]);
  };
  const storage = new MemoryStorage();
  runtime = createRuntime({ storage });
  const handle = await runtime.start(lead("Helps."), "hi");
  await expect.poll(async () => (await handle.session()).status).toBe("input_required");
  await runtime.close();
  // The first turn has its model call in the journal, with the tools.
  runtime = createRuntime({ storage, agents: [lead("Helps otherwise.")] });
  const resumed = await runtime.resume(handle.sessionId);
  await runtime.answer(handle.sessionId, "yes");
  expect(await resumed.result()).toBe("Done.");
  const described = model.requests.map(
    ({ tools }) => tools.find(({ name }) => name === "delegate")?.description,
  );
  expect(described).toEqual([expect.stringMatching(/- other: Helps\.$/), described[0]]);
});
