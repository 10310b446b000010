// The fate of a tool call that a crash cut off, by the effect class that the agent file declares.

import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EffectClass } from "@holdfast/core";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { vanishRuntime } from "@holdfast/runtime/internal";
import { releaseClaim } from "@holdfast/testkit/test-runtime";
import { afterEach, beforeEach, expect, test } from "vitest";

import type { ToolContent } from "../../models/model-provider.ts";
import { workspacesByRoot } from "../../tasks/workspace-source.ts";
import { RECORD } from "../../testing/agent-record.ts";
import { fakeModel } from "../../testing/fake-model.ts";
import { declaredEffect } from "./declared-effect.ts";
import { ModelLoop } from "../model-loop.ts";

let folder: string;
let runtime: Runtime | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "declared-effect-"));
});

afterEach(async () => {
  await runtime?.close();
  await rm(folder, { recursive: true, force: true });
});

/** Hangs when it runs for the first time. */
const COMMAND = "echo ran >> log; [ $(wc -l < log) -gt 1 ] || sleep 60";

test.each<[string, Record<string, EffectClass>, object, number, RegExp]>([
  ["a command is not run again", {}, {}, 1, /nobody knows whether it took effect/],
  ["a command that the file calls repeatable is run again", { shell: "repeatable" }, {}, 2, /exit code 0/],
  ["a command that the model calls repeatable is run again", {}, { repeatable: true }, 2, /exit code 0/],
  [
    "the word of the file counts more than the word of the model",
    { shell: "once" },
    { repeatable: true },
    1,
    /nobody knows whether it took effect/,
  ],
])("after a crash: %s", async (_, effects, more, runs, result) => {
  const storage = new MemoryStorage();
  const model = fakeModel((request, number) =>
    number === 0
      ? { calls: [["shell", { command: COMMAND, ...more }]] }
      : { text: (request.messages.at(-1)!.content as ToolContent).text },
  );
  const loop = new ModelLoop({ model, workspace: workspacesByRoot(), root: folder });
  const permissions = [{ decision: "allow", tool: "shell", pattern: null }] as const;
  const agent = loop.agent({ ...RECORD, effects, permissions });
  const first = createRuntime({ storage });
  const { sessionId } = await first.start(agent, "go");
  const log = join(folder, "log");
  // The shell makes the file before it writes the line.
  await expect.poll(() => existsSync(log) && readFileSync(log, "utf8"), { timeout: 20_000 }).toBe("ran\n");
  vanishRuntime(first);
  await releaseClaim(storage, sessionId);
  runtime = createRuntime({ storage, agents: [agent] });
  expect(await (await runtime.resume(sessionId)).result()).toMatch(result);
  expect(readFileSync(log, "utf8")).toBe("ran\n".repeat(runs));
});

test("a class is declared for one tool or for a pattern, and the name goes first", () => {
  const record = { ...RECORD, effects: { "mcp__a__*": "read", mcp__a__pay: "once" } as const };
  expect(declaredEffect(record, "mcp__a__pay")).toBe("once");
  expect(declaredEffect(record, "mcp__a__list")).toBe("read");
  expect(declaredEffect(record, "shell")).toBeUndefined();
});
