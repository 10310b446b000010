import { readFileSync } from "node:fs";
import { ERROR_TABLE } from "@holdfast/core";
import { expect, test } from "vitest";
import { STOP_EXIT } from "../packages/holdfast/src/command.ts";
import { COMMAND_ERRORS } from "../packages/holdfast/src/command-error.ts";
import { EXIT_CODES } from "../packages/holdfast/src/help.ts";

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

test("docs/errors.md and the help list every exit code there is, with the same meaning", () => {
  const page = readFileSync(new URL("../docs/errors.md", import.meta.url), "utf8");
  const listed = [...page.matchAll(/^\| (\d+) \| (.+) \|$/gm)].map(([, code, means]) => [code, means]);
  expect(Object.fromEntries(listed as [string, string][])).toEqual(EXIT_CODES);
  const used = [...Object.values(ERROR_TABLE), ...Object.values(COMMAND_ERRORS), ...Object.values(STOP_EXIT)];
  expect(used.filter((code) => !Object.hasOwn(EXIT_CODES, code))).toEqual([]);
});
