// Lists of tools are read in each form that files of other tools have them in.

import { expect, test } from "vitest";
import { toolTexts } from "./tool-rules.ts";

test.each<readonly [text: string, tools: readonly string[]]>([
  ["Read,Grep", ["Read", "Grep"]],
  ["Read Grep\tGlob", ["Read", "Grep", "Glob"]],
  ["Read, Grep Glob,", ["Read", "Grep", "Glob"]],
  ["[Read, Grep]", ["Read", "Grep"]],
  ["Read Bash(git diff:*) Grep", ["Read", "Bash(git diff:*)", "Grep"]],
  ["Bash(a, b c) Read", ["Bash(a, b c)", "Read"]],
  ["Bash(echo (x)) Read", ["Bash(echo (x))", "Read"]],
  // Divided, the first one would be all commands.
  ["Read Bash (git diff:*)", ["Read", "Bash (git diff:*)"]],
  ["Bash  (git diff:*)", ["Bash  (git diff:*)"]],
  ["Bash (echo (x) y)", ["Bash (echo (x) y)"]],
  ["", []],
])("%s", (text, tools) => {
  expect(toolTexts(text)).toEqual(tools);
});

test("the items of a list are not divided, and a long text takes no long time", () => {
  expect(toolTexts(["Read Grep", " Glob "])).toEqual(["Read Grep", "Glob"]);
  expect(toolTexts(`Read${" ".repeat(500_000)}Grep`)).toEqual(["Read", "Grep"]);
});
