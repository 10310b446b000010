import { readFileSync } from "node:fs";
import { ERROR_TABLE } from "@holdfast/core";
import { expect, test } from "vitest";
import { COMMAND_ERRORS } from "../packages/holdfast/src/command-error.ts";

test("docs/errors.md lists every error code with its exit code, and no others", () => {
  const page = readFileSync(new URL("../docs/errors.md", import.meta.url), "utf8");
  const listed = [...page.matchAll(/^\| `(\w+)` \| (\d+) \|/gm)].map(([, code, exit]) => [
    code,
    Number(exit),
  ]);
  expect(new Map(listed as [string, number][])).toEqual(
    new Map(Object.entries({ ...ERROR_TABLE, ...COMMAND_ERRORS })),
  );
});
