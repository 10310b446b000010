import { CancelledError, TaskFailedError, type RecordedError } from "@holdfast/core";
import type { AgentContext } from "@holdfast/runtime";
import { expect, test } from "vitest";

import { workspacesByRoot } from "../tasks/workspace-source.ts";
import { defineWorkspaceTasks } from "../tasks/workspace-tasks.ts";
import { cutText } from "../model-loop/tools/tool.ts";
import { codingTools } from "./coding-tools.ts";

const TOOLS = codingTools(defineWorkspaceTasks(workspacesByRoot()), "npm test");

/** A context whose tasks all end like this. */
function ending(outcome: Error, asked: unknown[] = []): AgentContext {
  return {
    scheduleTask: (task: { name: string }, input: unknown, options: unknown) => {
      asked.push([task.name, input, options]);
      return Promise.reject(outcome);
    },
  } as unknown as AgentContext;
}

const failed = (cause: RecordedError): TaskFailedError =>
  new TaskFailedError({ taskId: "t", kind: "shell", attempts: 1 }, cause);

function call(name: string, input: object, ctx: AgentContext): Promise<unknown> {
  return TOOLS.get(name)?.prepare(input).schedule(ctx, "/repo") ?? expect.fail(`no tool ${name}`);
}

test("a command that a crash cut off is told as what it is", async () => {
  const lost = failed({
    name: "AttemptLostError",
    message: "attempt 1 of 1 was running when its process ended",
    code: "task_failed",
  });
  expect(await call("shell", { command: "deploy" }, ending(lost))).toEqual({
    text: expect.stringContaining("Find out before you repeat it"),
    isError: true,
  });
});

test("a command is repeated after a crash only if the model said that it may be; tests always are", async () => {
  const asked: unknown[] = [];
  const ctx = ending(failed({ name: "Error", message: "x" }), asked);
  await call("shell", { command: "ls", repeatable: true }, ctx);
  await call("shell", { command: "deploy" }, ctx);
  await call("run_tests", {}, ctx);
  expect(asked).toEqual([
    ["shell", { command: "ls", workspace: "/repo" }, { retry: { maxAttempts: 100 } }],
    ["shell", { command: "deploy", workspace: "/repo" }, {}],
    ["shell", { command: "npm test", workspace: "/repo" }, { retry: { maxAttempts: 100 } }],
  ]);
});

test("a failed task is a result the model reads; a cancel is not the model's business", async () => {
  const missing = failed({ name: "HoldfastError", message: 'there is no file "x"', code: "file_not_found" });
  expect(await call("read_file", { path: "x" }, ending(missing))).toEqual({
    text: 'there is no file "x"',
    isError: true,
  });
  await expect(
    call("read_file", { path: "x" }, ending(new CancelledError("the session"))),
  ).rejects.toMatchObject({ code: "cancelled" });
});

test("a model cannot choose another workspace, and gets its mistakes explained", () => {
  const prepare = (input: object): unknown => TOOLS.get("read_file")?.prepare(input);
  expect(() => prepare({ path: "x", workspace: "/etc" })).toThrow(/workspace/);
  expect(() => prepare({ path: 1 })).toThrow(/read_file are not right[^]*path/);
  for (const { offered } of TOOLS.values()) expect(JSON.stringify(offered)).not.toContain('"workspace"');
});

test("a long result loses its middle", () => {
  const text = cutText(`begin${"x".repeat(1_000)}end`, 100);
  expect(text).toMatch(/^beginx+\n\[\.\.\. 908 characters left out \.\.\.\]\nx+end$/);
});
