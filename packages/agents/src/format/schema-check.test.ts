// Patterns of schemas on which matching could take years, and such as only look like them.

import { expect, test } from "vitest";
import { checkJsonSchema } from "./schema-check.ts";

test.each([
  ["(a+)+$", true],
  ["((a+))+$", true],
  ["^(a*b?)*$", true],
  ["(?:a{2,})+", true],
  ["(x(y|z)+)*", true],
  ["(a|a)*$", true],
  ["(a|ab)+", true],
  ["(|a)*", true],
  ["^([ab]|a)*c$", true],
  ["(\\w|\\d)*$", true],
  ["(a?b|b)*", true],
  ["((?:x)b|xb)*", true],
  ["^(a*){25}b$", true],
  ["^[a-z]+(-[a-z]{2})*$", false],
  ["(GET|POST)+", false],
  ["(?:[a-z]|[0-9])+", false],
  ["\\(a+\\)+", false],
  ["[(a+)]+", false],
  ["(a+)?b{2}", false],
  ["(a+){3}", false],
])("the pattern %s may never end: %s", (pattern, isEndless) => {
  const problem = checkJsonSchema({ properties: { x: { type: "string", pattern } } });
  if (isEndless) expect(problem).toContain(`${JSON.stringify(pattern)} may never end`);
  else expect(problem).toBeUndefined();
});

test.each([
  ["a schema that leads back to itself", { $ref: "#" }],
  [
    "two parts that lead to each other",
    { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" },
  ],
  [
    "ten thousand schemas in each other",
    JSON.parse(`${'{"not":'.repeat(10_000)}{}${"}".repeat(10_000)}`) as object,
  ],
])("%s is refused", (_, schema) => {
  expect(checkJsonSchema({ ...schema })).toMatch(/nested too deep, or leads back to itself/);
});

test("a schema of a tree, which leads back to itself by a step into the value, is used", () => {
  expect(
    checkJsonSchema({ type: "object", properties: { children: { type: "array", items: { $ref: "#" } } } }),
  ).toBeUndefined();
});
