// The table of the included programs agrees with their adapters and with the manual, and costs nothing to
// load.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { knownAgent } from "./external.ts";
import { hasOwnAdapter, INCLUDED_NAMES, permissionModesOf } from "./included-programs.ts";

const manual = readFileSync(new URL("../../../docs/external-agents.md", import.meta.url), "utf8");

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

test("the manual lists the included programs, and those with an adapter of their own", () => {
  const [others] = /`holdfast run codex "…"`, .*? runs these programs/.exec(manual) ?? [""];
  const listed = ["claude-code", "codex", ...namesIn(others)];
  expect(listed.toSorted()).toEqual(INCLUDED_NAMES.toSorted());
  const [own] = /[^.]*have adapters of their own/.exec(manual) ?? [""];
  expect(namesIn(own).toSorted()).toEqual(INCLUDED_NAMES.filter(hasOwnAdapter).toSorted());
});

test("the manual names the permission modes of each program of its table", () => {
  const [table = ""] = /^\| \| `claude-code` .*?\n\n/ms.exec(manual) ?? [];
  const cellsOf = (row: string | undefined) => row?.split("|").slice(2, -1) ?? [];
  const rows = table.split("\n");
  const modes = cellsOf(rows.find((row) => row.startsWith("| `permissionMode` ")));
  expect(modes).toHaveLength(5);
  for (const [at, [name = ""]] of cellsOf(rows[0]).map(namesIn).entries()) {
    const all = permissionModesOf(name);
    expect(modes[at]).toContain(
      all.length === 3 ? "three modes" : all.map((mode) => `\`${mode}\``).join(", "),
    );
  }
});

/** The names in code quotes. */
function namesIn(text: string): readonly string[] {
  return [...text.matchAll(/`([\w-]+)`/g)].map(([, name]) => name!);
}
