import { defineWorkspaceTasks, workspacesByRoot } from "@holdfast/agents";
import { expect, test } from "vitest";
import { CHANGING_TASKS } from "./works-in-folder.ts";

test("each task of a workspace either changes files or only looks at them", () => {
  const looking = ["read_file", "list_files", "search", "git_status", "git_diff"];
  const names = Object.values(defineWorkspaceTasks(workspacesByRoot())).map(({ name }) => name);
  expect([...CHANGING_TASKS, ...looking].toSorted()).toEqual(names.toSorted());
});
