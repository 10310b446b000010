import { expect, test } from "vitest";
import { globsInFolder } from "./layered-glob.ts";

test.each([
  ["/p/web/inner/**", ["inner/**"]],
  ["/p/*/inner", ["inner"]],
  ["/p/**/inner", ["**/inner", "inner"]],
  ["/p/{web,api}/inner/*.pem", ["inner/*.pem"]],
  ["/p/{a/b,web/inner}/x", ["**/x", "x"]],
  ["/p/**", ["*"]],
  ["/p/web", ["*"]],
  ["/p", ["*"]],
  ["/p/api/**", ["/p/api/**"]],
  ["/p/we", ["/p/we"]],
])("the pattern %s counts in a folder as %j", (rooted, globs) => {
  expect(globsInFolder(rooted, "/p/web")).toEqual(globs);
});

// A step for each way to divide the stars would be 2^200 steps: such a test does not end.
test("a pattern of many stars is read once for each folder", () => {
  const folder = `/${"a/".repeat(200)}b`;
  expect(globsInFolder(`/${"**/a/".repeat(200)}c`, folder).length).toBeLessThan(500);
});
