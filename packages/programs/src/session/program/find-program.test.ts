// The version of an external agent's program, which another process may end before it answers.

import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProcessSupervisor } from "@holdfast/system/processes";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findProgram } from "./find-program.ts";
import { ProgramAnswers } from "./program-answers.ts";

let folder: string;
let program: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "find-program-"));
  program = join(folder, "agent");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const env = { PATH: process.env["PATH"] ?? "" };

let answers: ProgramAnswers;
beforeEach(() => {
  answers = new ProgramAnswers(new ProcessSupervisor({ environment: env, namespaces: "never" }));
});

/** A program that notes each question for its version, and then runs these lines. */
function find(lines: string): Promise<unknown> {
  writeFileSync(program, `#!/bin/sh\necho asked >> asked\n${lines}\n`, { mode: 0o755 });
  return look();
}
function look(): Promise<unknown> {
  const wanted = { name: program, title: "an agent", versionMin: "1.0.0", install: "npm install agent" };
  return findProgram(wanted, answers, env, folder);
}
const asked = () => readFileSync(join(folder, "asked"), "utf8").trim().split("\n").length;

test("a program that was killed before it named its version is asked again", async () => {
  expect(await find('[ "$(wc -l < asked)" = 1 ] && kill -9 $$\necho 1.2.3')).toEqual({
    program,
    version: "1.2.3",
  });
  expect(asked()).toBe(2);
});

test("a program that is always killed has no wrong version: the search may be repeated", async () => {
  await expect(find("kill -9 $$")).rejects.toMatchObject({
    code: "unavailable",
    got: "ended by SIGKILL",
    fix: expect.stringContaining("in a terminal"),
  });
  expect(asked()).toBe(3);
});

test.each([
  ["too old", "echo 0.9.0", "version 0.9.0"],
  ["without a version", "exit 3", "no version (exit code 3)"],
])("a program that is %s is refused at once", async (_what, lines, got) => {
  await expect(find(lines)).rejects.toMatchObject({ code: "version_unsupported", got });
  expect(asked()).toBe(1);
});

test("a version holds for the next look, until the file of the program changes", async () => {
  expect(await find("echo 1.2.3")).toEqual({ program, version: "1.2.3" });
  expect(await look()).toEqual({ program, version: "1.2.3" });
  expect(asked()).toBe(1);
  const later = new Date(Date.now() + 5_000);
  writeFileSync(program, "#!/bin/sh\necho asked >> asked\necho 1.3.0\n");
  utimesSync(program, later, later);
  expect(await look()).toEqual({ program, version: "1.3.0" });
  expect(asked()).toBe(2);
});

test("a program that failed is asked again", async () => {
  await expect(find("test -e mended && echo 1.2.3")).rejects.toMatchObject({ code: "version_unsupported" });
  writeFileSync(join(folder, "mended"), "");
  expect(await look()).toEqual({ program, version: "1.2.3" });
});
