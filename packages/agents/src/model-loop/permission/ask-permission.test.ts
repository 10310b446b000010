// Rules and kept answers in sessions of the model loop: what a call may do that no rule and no person allowed.

import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentTracer } from "@holdfast/core";
import { createRuntime, MemoryStorage, type Runtime } from "@holdfast/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";

import type { PermissionRule } from "../../agent-files/agent-record.ts";
import { workspacesByRoot } from "../../tasks/workspace-source.ts";
import { RECORD } from "../../testing/agent-record.ts";
import { fakeModel } from "../../testing/fake-model.ts";
import { ModelLoop } from "../model-loop.ts";
import type { ProjectRules } from "./ask-permission.ts";

let folder: string;
let runtime: Runtime | undefined;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-rules-")));
});
afterEach(async () => {
  await runtime?.close();
  runtime = undefined;
  rmSync(folder, { recursive: true, force: true });
});

type Call = readonly [tool: string, input: object];

/** One session that makes these calls one after the other. Its questions are answered in their order, and then with no. */
async function play(
  calls: readonly Call[],
  permissions: readonly PermissionRule[],
  answers: readonly unknown[] = [],
  parts: { readonly projectRules?: ProjectRules } = {},
) {
  const questions: string[] = [];
  const tracer: AgentTracer = {
    trace: (event) => {
      if (event.type !== "waiting") return;
      for (const wait of event.waits) {
        if (wait.type !== "input" || questions.includes(`${wait.id} ${wait.prompt}`)) continue;
        questions.push(`${wait.id} ${wait.prompt}`);
        const answer = answers[questions.length - 1] ?? { approved: false };
        void runtime?.answer(event.sessionId, answer, { question: wait.id });
      }
    },
  };
  const model = fakeModel((_request, number) =>
    number < calls.length ? { calls: [calls[number] as [string, object]] } : { text: "Done." },
  );
  const loop = new ModelLoop({ model, workspace: workspacesByRoot(), root: folder, ...parts });
  await runtime?.close();
  runtime = createRuntime({ storage: new MemoryStorage(), tracer });
  const agent = loop.agent({ ...RECORD, permissions });
  const outcome = await (await runtime.start(agent, "Do it.")).settled();
  const results = (model.requests.at(-1)?.messages ?? [])
    .filter(({ role }) => role === "tool")
    .map(({ content }) => (content as { readonly text: string }).text);
  return { outcome, results, questions: questions.map((text) => text.replace(/^\d+ /, "")) };
}

const write = (path: string): Call => ["write_file", { path, content: "x" }];
const FOR_SESSION = { approved: true, remember: { scope: "session" } };

test("an answer that is kept for a folder's path permits no file below it", async () => {
  mkdirSync(join(folder, "src"));
  const { questions } = await play([write("src/"), write("src/deep/evil.ts")], [], [FOR_SESSION]);
  expect(questions).toEqual(["Allow write_file: src/?", "Allow write_file: src/deep/evil.ts?"]);
  expect(existsSync(join(folder, "src/deep/evil.ts"))).toBe(false);
});

test("a pattern that cannot be used is not kept, and one that was kept lets later calls ask", async () => {
  const kept: PermissionRule[] = [];
  const projectRules: ProjectRules = { read: () => kept, add: (rule) => void kept.push(rule) };
  const unusable = { approved: true, remember: { scope: "project", pattern: "./" } };
  await play([write("a.txt")], [], [unusable], { projectRules });
  expect(kept).toEqual([]);
  await play([write("./")], [], [{ approved: true, remember: { scope: "project" } }], { projectRules });
  expect(kept).toEqual([{ decision: "allow", tool: "write_file", pattern: "." }]);

  kept.push({ decision: "allow", tool: "write_file", pattern: "./" }); // As an earlier version kept it.
  const { outcome, questions } = await play([write("ok.txt")], [], [], { projectRules });
  expect(outcome.status).toBe("completed");
  expect(questions).toEqual(["Allow write_file: ok.txt?"]);
});
