import { expect, test } from "vitest";
import { parseDiff } from "./parse-diff.ts";

const DIFF = `diff --git a/value.txt b/value.txt
index 1..2 100644
--- a/value.txt
+++ b/value.txt
@@ -1,3 +1,3 @@ heading
 first
--- a/fake.txt
+++ b/fake.txt
 last
\\ No newline at end of file
diff --git a/old name.txt b/new name.txt
similarity index 100%
rename from old name.txt
rename to new name.txt
diff --git "a/gr\\303\\274n.txt" "b/gr\\303\\274n.txt"
new file mode 100644
--- /dev/null
+++ "b/gr\\303\\274n.txt"
@@ -0,0 +1 @@
+neu
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -7 +0,0 @@
-x
diff --git a/dir/empty b/dir/empty
new file mode 100644
index 0..0
diff --git a/picture.png b/picture.png
index 1..2 100644
Binary files a/picture.png and b/picture.png differ
`;

test("files are told apart by path, change and numbers of lines", () => {
  expect(parseDiff(DIFF).map(({ lines: _lines, ...file }) => file)).toEqual([
    { path: "value.txt", change: "changed", isBinary: false, added: 1, deleted: 1 },
    { path: "new name.txt", from: "old name.txt", change: "renamed", isBinary: false, added: 0, deleted: 0 },
    { path: "grün.txt", change: "added", isBinary: false, added: 1, deleted: 0 },
    { path: "gone.txt", change: "deleted", isBinary: false, added: 0, deleted: 1 },
    { path: "dir/empty", change: "added", isBinary: false, added: 0, deleted: 0 },
    { path: "picture.png", change: "changed", isBinary: true, added: 0, deleted: 0 },
  ]);
});

test("a line of a file that looks like a head of git is a line (parse-diff-1)", () => {
  expect(parseDiff(DIFF)[0]!.lines).toEqual([
    { type: "head", text: "@@ -1,3 +1,3 @@ heading" },
    { type: "same", text: "first", before: 1, after: 1 },
    { type: "deleted", text: "-- a/fake.txt", before: 2 },
    { type: "added", text: "++ b/fake.txt", after: 2 },
    { type: "same", text: "last", before: 3, after: 3 },
    { type: "note", text: "No newline at end of file" },
  ]);
});

test("a text that is no diff has no file", () => {
  expect(parseDiff("")).toEqual([]);
  expect(parseDiff("+++ b/x\n@@ -1 +1 @@\n+x")).toEqual([]);
});
