import { expect, test } from "vitest";

import { globMatcher, globProblem, pathFilter } from "./path-globs.ts";

test.each([
  ["*", "a", true],
  ["*", ".env", true],
  ["*", "a/b", false],
  ["a*", "a", true],
  ["*.ts", "x.ts", true],
  ["*.ts", "d/x.ts", false],
  ["**/*.ts", "x.ts", true],
  ["**/*.ts", "a/b/x.ts", true],
  ["**/.env", ".env", true],
  ["**/.env", "a/.env", true],
  ["**/.env", "a.env", false],
  ["infra/**", "infra", true],
  ["infra/**", "infra/a/b", true],
  ["infra/**", "infrab/a", false],
  ["infra/**/*", "infra/a", true],
  ["infra/**/*", "infra", false],
  ["a/**/b", "a/b", true],
  ["a/**/b", "a/x/y/b", true],
  ["a/**/b", "axb", false],
  ["**", "a/b", true],
  ["**/**", "a/b", true],
  ["a**b", "axb", true],
  ["a**b", "a/b", false],
  ["a?c", "abc", true],
  ["a?c", "a/c", false],
  ["[a-c]x", "bx", true],
  ["[!a-c]x", "bx", false],
  ["[^a-c]x", "dx", true],
  ["{a,b/{c,d}}.ts", "b/d.ts", true],
  ["{a,b}.ts", "c.ts", false],
  ["src/@types/*", "src/@types/x", true],
  ["app/(group)/*", "app/(group)/x", true],
  ["a\\*b", "a*b", true],
  ["a\\*b", "axb", false],
  ["*.é?", "x.éü", true],
] as const)("the glob %j and the path %j: %j (path-globs-2)", (glob, path, isMatch) => {
  expect(globProblem(glob)).toBeUndefined();
  expect(globMatcher(glob)(path)).toBe(isMatch);
});

test("stars of a text match slashes", () => {
  expect(globMatcher("a*c", true)("a/b/c")).toBe(true);
});

test.each([
  "[a",
  "[z-a]",
  "[[:alpha:]]",
  "{a",
  "{a}",
  "!a",
  "+(a)",
  "(a|b)",
  "a\\",
  "*".repeat(501),
  "{a,b}".repeat(8),
])("the glob %.20j has a problem, and as a filter it matches all (path-globs-2)", (glob) => {
  expect(globProblem(glob)).toBeDefined();
  expect(globMatcher(glob)("a")).toBe(false);
  expect(pathFilter([glob])("x")).toBe(true);
});

test.each(["*a", "**/a", "{*a,*b}*", "?*", "**a*/"])(
  "many of %j are compared with a long path in bounded steps (path-globs-1)",
  (part) => {
    // Each of these needs longer than the age of the universe where stars are tried one after the other.
    const isMatch = globMatcher(part.repeat(part.startsWith("{") ? 6 : 40));
    expect(isMatch(`${"a".repeat(2_000)}/${"ab".repeat(500)}c`)).toBe(false);
  },
);
