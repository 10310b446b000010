// The places from which the files of an allowed executor may come.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

import { isReachedIn, requireOutside } from "./executor-files.ts";

let base: string;
let project: string;
let outside: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-executor-files-")));
  project = join(base, "project");
  outside = join(base, "outside");
  for (const folder of [project, outside, join(project, "bin")]) mkdirSync(folder);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

function program(path: string): string {
  writeFileSync(path, "#!/bin/sh\ntouch ran\n", { mode: 0o755 });
  return path;
}

test("a program without a slash is started by the path that was checked", () => {
  program(join(outside, "tool"));
  program(join(project, "bin", "tool"));
  const path = [join(project, "bin"), outside].join(delimiter);
  expect(requireOutside("x", ["tool", "--fast"], [project], path)).toEqual([join(outside, "tool"), "--fast"]);
  expect(requireOutside("x", ["no-such-tool"], [project], path)).toEqual(["no-such-tool"]);
});

test("a link before two dots is followed as the system does", () => {
  mkdirSync(join(project, "deep"));
  symlinkSync(join(project, "deep"), join(outside, "in"));
  expect(isReachedIn(`${outside}/in/../mine`, project)).toBe(true);
  expect(isReachedIn(`${outside}/./x/../mine`, project)).toBe(false);
});
