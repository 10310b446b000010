import { expect, test } from "vitest";
import { codexCallOf, codexResultOf } from "./codex-items.ts";

test.each([
  ["a new file", { type: "add" }, "# Title\n- item\n", "+# Title\n+- item"],
  ["a new file, as older versions say it", "add", "- item\n", "+- item"],
  ["a deleted file", { type: "delete" }, "a\n\nb\n", "-a\n-\n-b"],
  ["a changed file", { type: "update", move_path: null }, "@@ -1 +1 @@\n-a\n+b\n", "@@ -1 +1 @@\n-a\n+b\n"],
  ["an empty file", { type: "add" }, "", ""],
])("the result of a change has the patch of %s", (_what, kind, diff, patch) => {
  const item = { type: "fileChange", status: "completed", changes: [{ path: "a.md", kind, diff }] };
  expect(codexResultOf(item)).toEqual({ text: `a.md\n${patch}`, isError: false });
});

test("the call of a change says what would be changed", () => {
  const change = { path: "a.md", kind: { type: "add" }, diff: "a\n" };
  const call = (...changes: object[]) => codexCallOf({ type: "fileChange", changes })?.input;
  expect(call(change)).toEqual({ path: "a.md", patch: "a.md\n+a" });
  expect(call(change, { ...change, path: "b.md" })).toEqual({
    paths: ["a.md", "b.md"],
    patch: "a.md\n+a\nb.md\n+a",
  });
  expect(call({ path: "a.md" })).toEqual({ path: "a.md" });
});
