// The table of the included programs agrees with their adapters, and costs nothing to load.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { knownAgent } from "./external.ts";
import { INCLUDED_NAMES, permissionModesOf } from "./included-programs.ts";

test.each(INCLUDED_NAMES)("the included program %s has an adapter of its name", (name) =>
  expect(knownAgent(name, { folder: "/", environment: {} })?.name).toBe(name),
);

test("a program that is not included has no adapter, and the mode of every program", () => {
  for (const name of ["clod", "toString"]) {
    expect(knownAgent(name, { folder: "/", environment: {} })).toBeUndefined();
    expect(permissionModesOf(name)).toEqual(["default"]);
  }
});

// The command reads the names at every start.
test("the module of the table imports no other module", () => {
  const source = readFileSync(new URL("./included-programs.ts", import.meta.url), "utf8");
  expect(source).not.toMatch(/\bimport\b.*["(]/);
});
