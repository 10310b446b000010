// The recipes of CONTRIBUTING.md: each step names a file that is there, and the place in it. Lists that a new
// part must be in, and that no type or other test holds together, are compared here.

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { includedFacts } from "@holdfast/programs";
import { INCLUDED_NAMES, type IncludedName } from "@holdfast/programs/included-programs";
import { ownSandboxes } from "@holdfast/workspace";
import { describe, expect, test } from "vitest";
import { AGENT_PAGE, withAgentTable } from "./agent-table.ts";
import { NOT_TRIED, REAL_AGENTS, WITH_HELD_KEYS, WITH_RECORD } from "./agents/real-agents.ts";
import { ROOMS } from "./tidy/rooms.ts";

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
      files!.replace(/ -t NAME$/, "").split(" "),
    ),
  }));
}

/**
 * The steps whose file, or whose place in it, is not there. A file with NAME is new, so its folder counts. ROOM
 * stands for one of several folders, so the folder above counts.
 */
function brokenSteps({ steps, tests }: Recipe, readFile: Read): readonly string[] {
  const files = [...steps, ...tests.map((file) => ({ file, place: undefined }))];
  return files
    .filter(({ file, place }) => {
      const known = file.replace(/\/[^/]*(NAME|ROOM).*$/, "");
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
    const broken = brokenSteps(recipe, read);
    expect(
      broken,
      `CONTRIBUTING.md names what is not there, so mend the step or rename: ${broken.join(", ")}`,
    ).toEqual([]);
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

test("the recipe of a command names each room that a command may stand in", () => {
  const rooms = ROOMS["holdfast"]!.flatMap((layer) => Object.keys(layer)).flatMap((room) =>
    room.startsWith("commands/") ? [room.replace("commands/", "")] : [],
  );
  const [, names = ""] = /ROOM is (.+?), and/.exec(read(CONTRIBUTING)) ?? [];
  const named = [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  expect(named, "name them where CONTRIBUTING.md says what ROOM is").toEqual(rooms);
});

describe("a sandbox", () => {
  const GUIDE = "docs/sandboxes.md";
  const INTERNALS = "docs/internals/sandboxes.md";
  const sandboxes = ownSandboxes();
  const names = sandboxes.map(({ name }) => name);
  /** The sandboxes that canaries try. */
  const held = sandboxes.filter(({ capabilities }) => capabilities.files === "workspace");

  /** Each place of the documents that lacks a sandbox, with what to write there. */
  const undocumented = (
    all: readonly string[],
    tried: readonly string[],
    readFile: Read,
  ): readonly string[] => {
    const lines = (file: string): readonly string[] => readFile(file).split("\n");
    const has = (file: string, isPlace: (line: string) => boolean, name: string): boolean =>
      lines(file).some((line) => isPlace(line) && line.includes(`\`${name}\``));
    const isRow = (line: string): boolean => line.startsWith("| `");
    const lacking = (file: string, what: string, isPlace: (line: string) => boolean, of: readonly string[]) =>
      of.filter((name) => !has(file, isPlace, name)).map((name) => `${file}: add ${what} of \`${name}\``);
    return [
      ...lacking(GUIDE, "the row", isRow, all),
      ...lacking(GUIDE, 'the bullet below "The sandboxes"', (line) => line.startsWith("- **`"), all),
      ...lacking(GUIDE, "the column `| attempt |`", (line) => line.startsWith("| attempt |"), tried),
      ...lacking(INTERNALS, "the row", isRow, all),
    ];
  };
  const heldNames = held.map(({ name }) => name);

  test("each sandbox is in the tables and lists of the documents", () => {
    const missing = undocumented(names, heldNames, read);
    expect(
      missing,
      `write these, as CONTRIBUTING.md says in "Add a sandbox":\n${missing.join("\n")}`,
    ).toEqual([]);
  });

  test("a sandbox without its places is found", () => {
    expect(undocumented([...names, "jail"], [...heldNames, "jail"], read)).toEqual([
      `${GUIDE}: add the row of \`jail\``,
      `${GUIDE}: add the bullet below "The sandboxes" of \`jail\``,
      `${GUIDE}: add the column \`| attempt |\` of \`jail\``,
      `${INTERNALS}: add the row of \`jail\``,
    ]);
    const without = planted(GUIDE, (text) => text.replace("| `seatbelt` |", "| a sandbox |"));
    expect(undocumented(names, heldNames, without)).toEqual([`${GUIDE}: add the row of \`seatbelt\``]);
  });
});

describe("a coding agent", () => {
  const page = read(AGENT_PAGE);
  const untried = (
    names: readonly string[],
    reasons: Readonly<Record<string, string>> = NOT_TRIED,
  ): readonly string[] =>
    names.filter((name) => REAL_AGENTS.some((agent) => agent.name === name) === Object.hasOwn(reasons, name));
  /** The tables of the page whose rows are agents, by their first columns. */
  const agentTables = (text: string): readonly string[] =>
    [...text.matchAll(/^\| agent \|.*\n\|.*\n((?:\|.*\n)+)/gm)].map(([, rows]) =>
      rows!.replaceAll(/^\| ([^|]*).*/gm, "$1"),
    );
  /** The programs that a table of the page lacks. */
  const rowless = (names: readonly string[], text: string): readonly string[] =>
    agentTables(text).flatMap((column) => names.filter((name) => !column.includes(`\`${name}\``)));

  test("docs/external-agents.md has what the adapters say", () => {
    expect(withAgentTable(page), "run `npm run api-report`").toBe(page);
  });

  test("a row that is missing, and a cell that is not true any more, are found", () => {
    expect(withAgentTable(page, INCLUDED_NAMES.slice(1))).not.toBe(page);
    const stale = planted(AGENT_PAGE, (text) => text.replace("| `~/.gemini` |", "| `~/.bard` |"));
    expect(withAgentTable(stale(AGENT_PAGE))).toBe(page);
  });

  test("each included program is tried for real", () => {
    const where = "add them to REAL_AGENTS of scripts/agents/real-agents.ts, or to NOT_TRIED with a reason";
    expect(untried(INCLUDED_NAMES), where).toEqual([]);
    expect(untried(["codex", "new"])).toEqual(["new"]);
    expect(untried(["codex", "new"], { new: "it is on no registry", codex: "stale" })).toEqual(["codex"]);
  });

  test("each table of agents has a row of each included program", () => {
    expect(agentTables(page)).toHaveLength(3);
    expect(rowless(INCLUDED_NAMES, page), `add the rows in ${AGENT_PAGE}`).toEqual([]);
    expect(rowless([...INCLUDED_NAMES, "new"], page)).toEqual(["new", "new", "new"]);
  });

  test("keys that a gateway holds, and records of usage, are tried for real", () => {
    const tried: readonly IncludedName[] = WITH_HELD_KEYS;
    const held = tried.map((name) => includedFacts(name).programKeys);
    const real = INCLUDED_NAMES.filter((name) => !Object.hasOwn(NOT_TRIED, name));
    const keys = real.filter((name) => includedFacts(name).programKeys !== undefined);
    expect(
      keys.filter((name) => !held.includes(includedFacts(name).programKeys)),
      "add them to WITH_HELD_KEYS of scripts/agents/real-agents.ts, and to `real-keys.test.ts`",
    ).toEqual([]);
    expect(
      real.filter((name) => includedFacts(name).recordedCalls !== undefined),
      "add them to WITH_RECORD of scripts/agents/real-agents.ts, and to `budget-tree.ts`",
    ).toEqual(WITH_RECORD);
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
    const missing = lacking(read);
    expect(
      missing,
      `write each field there, as CONTRIBUTING.md says in "Add a stored field":\n${missing.join("\n")}`,
    ).toEqual([]);
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
