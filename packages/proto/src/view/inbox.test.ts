import { expect, test } from "vitest";
import { repeatsAction } from "./inbox.ts";

test("an item repeats its action when its text is the prompt of a permission, also where that is cut", () => {
  const long = "x".repeat(300);
  expect(repeatsAction({ what: "Allow shell: ls -l?", tool: "shell", action: "ls -l" })).toBe(true);
  expect(repeatsAction({ what: `Allow shell: ${long.slice(7)}?`, tool: "shell", action: long })).toBe(false);
  expect(
    repeatsAction({ what: `Allow ${`shell: ${long}`.slice(0, 200)}?`, tool: "shell", action: long }),
  ).toBe(true);
  expect(repeatsAction({ what: "Allow shell: ls?", tool: "shell", action: "rm -rf x" })).toBe(false);
  expect(repeatsAction({ what: "Which branch?" })).toBe(false);
});
