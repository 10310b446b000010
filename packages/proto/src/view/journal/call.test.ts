import { expect, test } from "vitest";
import { patchedLines, viewCall } from "./call.ts";

test.each([
  ["shell", { command: "npm test" }, "Run", "npm test"],
  ["Bash", { command: "ls -la", description: "List files" }, "Run", "ls -la"],
  ["execute", { command: "npm test", cwd: "/work" }, "Run", "npm test"],
  ["exec_command", { cmd: ["git", "status"] }, "Run", "git status"],
  ["Read", { file_path: "/src/app.ts" }, "Read", "/src/app.ts"],
  ["read", { title: "Read app.ts", path: "src/app.ts" }, "Read", "src/app.ts"],
  ["edit_file", { paths: ["a.ts", "b.ts"] }, "Edit", "a.ts b.ts"],
  ["Grep", { pattern: "TODO", path: "src" }, "Search", "TODO"],
  ["WebSearch", { query: "sqlite wal" }, "Search the web for", "sqlite wal"],
  ["Task", { description: "Review the change", prompt: "Read …" }, "Delegate", "Review the change"],
  ["mcp__github__create_issue", { title: "Broken", body: "…" }, "github: create_issue", "Broken"],
  ["charge", { cents: 900, to: "card" }, "charge", "card"],
  ["charge", { cents: 900 }, "charge", '{"cents":900}'],
  ["now", {}, "now", ""],
  ["now", undefined, "now", ""],
  ["say", "hello", "say", "hello"],
])("%s %j", (name, input, verb, subject) => {
  expect(viewCall(name, input)).toMatchObject({ verb, subject });
});

test("a path is said to be one, and begins at the folder of the work where it lies in it", () => {
  const path = "/srv/app/src/add.ts";
  const subjectIn = (folder?: string) => viewCall("Edit", { file_path: path }, folder).subject;
  expect(viewCall("Edit", { file_path: path }, "/srv/app")).toEqual({
    verb: "Edit",
    subject: "src/add.ts",
    isPath: true,
  });
  expect(subjectIn("/srv/app/")).toBe("src/add.ts");
  expect([subjectIn(), subjectIn("/srv/ap"), subjectIn(path)]).toEqual([path, path, path]);
  expect(viewCall("Bash", { command: `cat ${path}` }, "/srv/app")).toEqual({
    verb: "Run",
    subject: `cat ${path}`,
  });
});

test.each([
  ["edit_file", { path: "a.ts", oldText: "one\ntwo\nthree", newText: "one\n2\nthree" }],
  ["Edit", { file_path: "a.ts", old_string: "one\ntwo\n", new_string: "one\n2\n" }],
  ["edit", { filePath: "a.ts", oldString: "two", newString: "2" }],
  ["MultiEdit", { file_path: "a.ts", edits: [{ old_string: "two", new_string: "2" }] }],
  ["apply_patch", { path: "a.ts", patch: "--- a/a.ts\n+++ b/a.ts\n@@ -1 +1 @@\n one\n-two\n+2" }],
])("%s shows the lines that differ", (name, input) => {
  expect(viewCall(name, input)).toMatchObject({
    verb: "Edit",
    subject: "a.ts",
    isPath: true,
    change: [
      { type: "deleted", text: "two" },
      { type: "added", text: "2" },
    ],
  });
});

test("lines that are the same on both sides of a change are kept apart from it", () => {
  const { change } = viewCall("Edit", { path: "a", oldText: "x\nx", newText: "x\nx\nx" });
  expect(change).toEqual([{ type: "added", text: "x" }]);
});

test("a file that is written is all new", () => {
  expect(viewCall("Write", { file_path: "a.md", content: "one\n\ntwo\n" }).change).toEqual([
    { type: "added", text: "one" },
    { type: "added", text: "" },
    { type: "added", text: "two" },
  ]);
});

test("a line of a patch that begins like its head is a line", () => {
  expect(patchedLines("--- a/a\n+++ b/a\n---x\n+ y")).toEqual([
    { type: "deleted", text: "--x" },
    { type: "added", text: " y" },
  ]);
});

test("a comment that a patch removes or adds is a line", () => {
  const names = "--- a/q.sql\n+++ b/q.sql\n";
  const lines = [
    { type: "deleted", text: "-- drop the table" },
    { type: "added", text: "++ keep it" },
  ];
  const changed = "--- drop the table\n+++ keep it";
  expect(patchedLines(`${names}@@ -1,2 +1,2 @@\n${changed}\n same\n${names}@@ -1 +1 @@\n${changed}`)).toEqual(
    [...lines, ...lines],
  );
  expect(patchedLines("--- drop the table\n same")).toEqual(lines.slice(0, 1));
});
