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
  ["^[a-z]+(-[a-z]{2})*$", false],
  ["(GET|POST)+", false],
  ["\\(a+\\)+", false],
  ["[(a+)]+", false],
  ["(a+)?b{2}", false],
  ["(a+){3}", false],
])("the pattern %s may never end: %s", (pattern, isEndless) => {
  const problem = checkJsonSchema({ properties: { x: { type: "string", pattern } } });
  if (isEndless) expect(problem).toContain(`${JSON.stringify(pattern)} may never end`);
  else expect(problem).toBeUndefined();
});
