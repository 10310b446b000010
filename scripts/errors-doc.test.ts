import { readFileSync } from "node:fs";
import { ERROR_TABLE } from "@holdfast/core";
import { expect, test } from "vitest";
import { STOP_EXIT } from "../packages/terminal/src/frame/command.ts";
import { COMMAND_ERRORS } from "../packages/terminal/src/frame/command-error.ts";
import { EXIT_CODES } from "../packages/terminal/src/frame/help.ts";

const CORE_EXITS = Object.fromEntries(Object.entries(ERROR_TABLE).map(([code, { exit }]) => [code, exit]));

test("docs/errors.md lists every error code with its exit code, and no others", () => {
  const page = readFileSync(new URL("../docs/errors.md", import.meta.url), "utf8");
  const listed = [...page.matchAll(/^\| `(\w+)` \| (\d+) \|/gm)].map(([, code, exit]) => [
    code,
    Number(exit),
  ]);
  expect(new Map(listed as [string, number][])).toEqual(
    new Map(Object.entries({ ...CORE_EXITS, ...COMMAND_ERRORS })),
  );
});

test("docs/errors.md lists the status of every error code that the API answers with", () => {
  const page = readFileSync(new URL("../docs/errors.md", import.meta.url), "utf8");
  const listed = [...page.matchAll(/^\| (\d{3}) \| (`\w+`) \| (.+) \|$/gm)].map(([, http, rpc, codes]) => [
    `${http} ${rpc}`,
    codes,
  ]);
  const expected: Record<string, string> = {};
  for (const [code, { http, rpc }] of Object.entries(ERROR_TABLE)) {
    if (rpc === "unknown") continue;
    const key = `${http} \`${rpc}\``;
    expected[key] = [...(expected[key]?.split(", ") ?? []), `\`${code}\``].join(", ");
  }
  expect(Object.fromEntries(listed as [string, string][])).toEqual(expected);
});

test("docs/errors.md and the help list every exit code there is, with the same meaning", () => {
  const page = readFileSync(new URL("../docs/errors.md", import.meta.url), "utf8");
  const listed = [...page.matchAll(/^\| (\d+) \| ([^|]+) \|$/gm)].map(([, code, means]) => [code, means]);
  expect(Object.fromEntries(listed as [string, string][])).toEqual(EXIT_CODES);
  const used = [...Object.values(CORE_EXITS), ...Object.values(COMMAND_ERRORS), ...Object.values(STOP_EXIT)];
  expect(used.filter((code) => !Object.hasOwn(EXIT_CODES, code))).toEqual([]);
});
