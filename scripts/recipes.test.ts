// The recipes of CONTRIBUTING.md: each step names a file that is there, and the place in it. Lists that a new
// part must be in, and that no type or other test holds together, are compared here.

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { knownAgent } from "@holdfast/programs";
import { INCLUDED_NAMES } from "@holdfast/programs/included-programs";
import { ownSandboxes } from "@holdfast/workspace";
import { describe, expect, test } from "vitest";

type Read = (file: string) => string;

const root = fileURLToPath(new URL("..", import.meta.url));
const read: Read = (file) => readFileSync(root + file, "utf8");
/** The files of this checkout, one of them with another text. */
const planted = (file: string, change: (text: string) => string): Read => {
  const changed = change(read(file));
  expect(changed).not.toBe(read(file));
  return (other) => (other === file ? changed : read(other));
};

const CONTRIBUTING = "CONTRIBUTING.md";
const recipes = recipesIn(read(CONTRIBUTING));

interface Recipe {
  readonly title: string;
  readonly steps: readonly { readonly file: string; readonly place: string | undefined }[];
  /** The test files of its commands. */
  readonly tests: readonly string[];
}

function recipesIn(text: string): readonly Recipe[] {
  const [, chapter = ""] = text.split("\n## Recipes\n");
  const [, ...parts] = (chapter.split("\n## ")[0] ?? "").split("\n### ");
  return parts.map((part) => ({
    title: part.split("\n")[0]!,
    steps: [...part.matchAll(/^\d+\. `([^`]+)`(?: at `([^`]+)`)?: /gm)].map(([, file, place]) => ({
      file: file!,
      place,
    })),
    tests: [...part.matchAll(/^(?:HOLDFAST_CAMPAIGN=1 )?npm test -- (.+)$/gm)].flatMap(([, files]) =>
      files!.split(" "),
    ),
  }));
}

/** The steps whose file, or whose place in it, is not there. A file with NAME is new, so its folder counts. */
function brokenSteps({ steps, tests }: Recipe, readFile: Read): readonly string[] {
  const files = [...steps, ...tests.map((file) => ({ file, place: undefined }))];
  return files
    .filter(({ file, place }) => {
      const known = file.includes("NAME") ? file.replace(/\/[^/]*NAME.*$/, "") : file;
      return !existsSync(root + known) || (place !== undefined && !readFile(file).includes(place));
    })
    .map(({ file, place }) => (place === undefined ? file : `${file} at ${place}`));
}

describe("the recipes", () => {
  test("there are five, each with numbered steps and a command that proves them", () => {
    expect(recipes.map(({ title }) => title)).toEqual([
      "Add a sandbox",
      "Add a coding agent",
      "Add a command",
      "Add a REST route",
      "Add a stored field",
    ]);
    const numbered = [
      ...read(CONTRIBUTING)
        .split("\n## Recipes\n")[1]!
        .split("\n## ")[0]!
        .matchAll(/^\d+\. /gm),
    ];
    expect(recipes.flatMap(({ steps }) => steps)).toHaveLength(numbered.length);
    for (const { tests } of recipes) expect(tests).not.toEqual([]);
  });

  test.each(recipes)("$title: each file is there, and has the place that its step names", (recipe) => {
    expect(brokenSteps(recipe, read)).toEqual([]);
  });

  test("a file that is gone and a place that was renamed are found", () => {
    const [sandbox, , command] = recipes as [Recipe, Recipe, Recipe];
    const renamed = planted("packages/holdfast/src/commands/index.ts", (text) =>
      text.replaceAll("GROUPS", "PARTS"),
    );
    expect(brokenSteps(command, renamed)).toEqual(["packages/holdfast/src/commands/index.ts at GROUPS"]);
    const gone = {
      ...sandbox,
      steps: [{ file: "packages/cages/src/NAME/NAME-sandbox.ts", place: undefined }],
    };
    expect(brokenSteps(gone, read)).toEqual(["packages/cages/src/NAME/NAME-sandbox.ts"]);
  });
});

describe("a sandbox", () => {
  const names = ownSandboxes().map(({ name }) => name);
  const undocumented = (sandboxes: readonly string[], readFile: Read): readonly string[] => {
    const rows = readFile("docs/sandboxes.md").split("\n");
    return sandboxes.filter(
      (name) => !rows.some((row) => row.startsWith("| `") && row.split("|")[1]!.includes(`\`${name}\``)),
    );
  };

  test("each sandbox has a row in docs/sandboxes.md", () => expect(undocumented(names, read)).toEqual([]));

  const MASKS = "packages/workspace/src/sandboxes/path-mask.test.ts";
  const unproved = (sandboxes: readonly string[]): readonly string[] =>
    sandboxes.filter((name) => !read(MASKS).includes(`"${name}"`));

  test("each sandbox that masks paths has a test of its masks", () => {
    const masking = ownSandboxes().filter(({ masksPaths }) => masksPaths === true);
    expect(unproved(masking.map(({ name }) => name))).toEqual([]);
    expect(unproved(["docker", "jail"])).toEqual(["jail"]);
  });

  test("a sandbox without a row is found", () => {
    expect(undocumented([...names, "jail"], read)).toEqual(["jail"]);
    const without = planted("docs/sandboxes.md", (text) => text.replace("| `seatbelt` |", "| a sandbox |"));
    expect(undocumented(names, without)).toEqual(["seatbelt"]);
  });
});

describe("a coding agent", () => {
  const undocumented = (names: readonly string[], readFile: Read): readonly string[] => {
    const rows = readFile("docs/external-agents.md")
      .split("| agent | folders of its own")[1]!
      .split("\n\n")[0]!;
    return names.filter((name) => !rows.includes(`\`${name}\``));
  };

  test("each included program has an adapter and a row in docs/external-agents.md", () => {
    for (const name of INCLUDED_NAMES) expect(knownAgent(name, { folder: root })?.name).toBe(name);
    expect(undocumented(INCLUDED_NAMES, read)).toEqual([]);
  });

  test("a program without a row is found", () => {
    expect(undocumented([...INCLUDED_NAMES, "new"], read)).toEqual(["new"]);
  });
});

describe("a stored field", () => {
  const SESSION = "packages/core/src/session/session.ts";
  const CHANGES = "packages/core/src/session/changes.ts";
  const WIRE = "packages/core/src/ports/storage-wire-check.ts";
  const SQLITE = "packages/storage/src/sqlite/tables/rows.ts";
  const POSTGRES = "packages/storage/src/postgres/tables/rows.ts";
  /** SQLite keeps accounts in a table of their own. */
  const APART = new Set(["account"]);

  /** Each field of a row or a patch with the source that lacks it. */
  const lacking = (readFile: Read): readonly string[] => {
    const part = (file: string, start: string, end: string): string =>
      readFile(file).split(`\n${start}\n`)[1]!.split(`\n${end}`)[0]!;
    const fieldsOf = (file: string, type: string): readonly string[] =>
      [...part(file, `export interface ${type} {`, "}").matchAll(/^  readonly (\w+)\??:/gm)].map(
        ([, name]) => name!,
      );
    const checked = (constant: string, field: string): boolean =>
      new RegExp(`^  ${field}:`, "m").test(part(WIRE, `const ${constant} = hasShape({`, "});"));
    const row = fieldsOf(SESSION, "Session");
    const patch = fieldsOf(CHANGES, "SessionPatch");
    const named = (file: string, field: string): boolean => new RegExp(`\\b${field}\\b`).test(readFile(file));
    return [
      ...row.filter((field) => !checked("isSession", field)).map((field) => `${WIRE}: ${field}`),
      ...patch.filter((field) => !checked("isPatch", field)).map((field) => `${WIRE}: ${field} of a patch`),
      ...row
        .filter((field) => !APART.has(field) && !named(SQLITE, field))
        .map((field) => `${SQLITE}: ${field}`),
      ...row
        .filter((field) => !named(POSTGRES, `session\\.${field}`))
        .map((field) => `${POSTGRES}: ${field}`),
    ];
  };

  test("each field of a row is checked on its way, and is in the rows of SQLite and PostgreSQL", () => {
    expect(lacking(read)).toEqual([]);
  });

  test("a field of the type alone is found in each place that lacks it", () => {
    const row = planted(SESSION, (text) =>
      text.replace("  readonly updatedAt", "  readonly note?: string;\n$&"),
    );
    expect(lacking(row)).toEqual([`${WIRE}: note`, `${SQLITE}: note`, `${POSTGRES}: note`]);
    const start = "export interface SessionPatch {";
    const patch = planted(CHANGES, (text) => text.replace(start, `${start}\n  readonly note?: string;`));
    expect(lacking(patch)).toEqual([`${WIRE}: note of a patch`]);
  });
});
