import { TaskFailedError } from "@holdfast/core";
import { expect, test } from "vitest";

import { REPEATABLE } from "../../tasks/shell-task.ts";
import { defineWorkspaceTasks } from "../../tasks/workspace-tasks.ts";
import { workspacesByRoot } from "../../tasks/workspace-source.ts";
import { cutText, type ToolContext } from "./tool.ts";
import { workspaceTools } from "./workspace-tools.ts";

const TOOLS = workspaceTools(defineWorkspaceTasks(workspacesByRoot()));

function toolNamed(name: string) {
  return TOOLS.find(({ offered }) => offered.name === name) ?? expect.fail(`no tool ${name}`);
}

test("a command is repeated after a crash only if the model said that it may be", async () => {
  const asked: unknown[] = [];
  const failed = new TaskFailedError(
    { taskId: "t", kind: "shell", attempts: 1 },
    { name: "Error", message: "x" },
  );
  const ctx = {
    scheduleTask: (task: { name: string }, input: unknown, options: unknown) => {
      asked.push([task.name, input, options]);
      return Promise.reject(failed);
    },
  } as unknown as ToolContext;
  const shell = toolNamed("shell");
  await shell.prepare({ command: "ls", repeatable: true }).schedule(ctx, "/repo", {}, "1");
  await shell.prepare({ command: "deploy" }).schedule(ctx, "/repo", {}, "2");
  expect(asked).toEqual([
    ["shell", { command: "ls", workspace: "/repo" }, REPEATABLE],
    ["shell", { command: "deploy", workspace: "/repo" }, {}],
  ]);
});

test("a model cannot choose another workspace, and gets its mistakes explained", () => {
  const prepare = (input: object): unknown => toolNamed("read_file").prepare(input);
  expect(() => prepare({ path: "x", workspace: "/etc" })).toThrow(/workspace/);
  expect(() => prepare({ path: 1 })).toThrow(/read_file are not right[^]*path/);
  for (const { offered } of TOOLS) expect(JSON.stringify(offered)).not.toContain('"workspace"');
});

test("a long result loses its middle", () => {
  const text = cutText(`begin${"x".repeat(1_000)}end`, 100);
  expect(text).toMatch(/^beginx+\n\[\.\.\. 908 characters left out \.\.\.\]\nx+end$/);
});
