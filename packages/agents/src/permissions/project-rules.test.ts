// The rules of projects in a file of the user's.

import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

import { addProjectRule, readProjectRules, removeProjectRules, type KeptRule } from "./project-rules.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rules-"));
  file = join(folder, "data", "permission-rules.json");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const rule = (pattern: string, decision: KeptRule["decision"] = "allow"): KeptRule => ({
  decision,
  tool: "shell",
  pattern,
  session: "s",
  principal: "ada",
  at: 1,
});

test("X9: rules are kept by the real path of their project, and the newest decision counts", () => {
  const alias = join(folder, "alias");
  symlinkSync(folder, alias);
  addProjectRule(file, alias, rule("echo:*"));
  addProjectRule(file, folder, rule("echo:*"));
  addProjectRule(file, folder, rule("ls"));
  addProjectRule(file, folder, rule("ls", "deny"));
  expect(readProjectRules(file, folder)).toEqual([rule("echo:*"), rule("ls", "deny")]);
  expect(readProjectRules(file, join(folder, "other"))).toEqual([]);
  removeProjectRules(file, alias, new Set([0, 1]));
  expect(readProjectRules(file, folder)).toEqual([]);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ projects: {} });
});

test.each([
  ["it is not JSON, or has another form", "{"],
  ["it is not JSON, or has another form", "[]"],
  ["it is not JSON, or has another form", '{"projects":{"/a":[{"decision":"ask"}]}}'],
])("a damaged file is refused: %s", (why, text) => {
  addProjectRule(file, folder, rule("ls"));
  writeFileSync(file, text);
  expect(() => readProjectRules(file, folder)).toThrow(why);
  expect(() => addProjectRule(file, folder, rule("ls"))).toThrow(why);
  expect(readFileSync(file, "utf8")).toBe(text);
});

test("a file that others may write is refused", () => {
  addProjectRule(file, folder, rule("ls"));
  chmodSync(file, 0o666);
  expect(() => readProjectRules(file, folder)).toThrow("other users may write it");
  expect(existsSync(file)).toBe(true);
});
