// A path that is not a file must not keep a command waiting.

import { spawnSync } from "node:child_process";
import { mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { isFolder, readGiven } from "./given-file.ts";

const folder = mkdtempSync(join(tmpdir(), "holdfast-given-"));
const path = (name: string): string => join(folder, name);
beforeAll(() => {
  spawnSync("mkfifo", [path("pipe")]);
  symlinkSync("circle", path("circle"));
  writeFileSync(path("file"), "12345");
});

test.each([
  ["pipe", "it is not a file"],
  ["/dev/zero", "it is not a file"],
  [".", "it is a folder"],
  ["circle", "ELOOP"],
  ["none", "ENOENT"],
])("%s is not read", (name, why) => {
  expect(() => readGiven(name.startsWith("/") ? name : path(name), 10)).toThrow(why);
});

test("a file is read whole, or not at all", () => {
  expect(readGiven(path("file"), 5).toString()).toBe("12345");
  expect(() => readGiven(path("file"), 4)).toThrow("it has 5 bytes; the limit is 4");
});

test("a path that cannot exist is no folder", () => {
  expect([".", "file", "circle", "none", "file/below"].map((name) => isFolder(path(name)))).toEqual([
    true,
    false,
    false,
    false,
    false,
  ]);
});
