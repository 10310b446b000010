// A rule that finds nothing proves nothing. Each one is shown a violation it must find, and its neighbour
// that is right.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { lowered, moved } from "./tidy/baseline.ts";
import { classOf, functionOf, type Files, type Planted } from "./tidy/testing/planted.ts";
import { inDocuments } from "./tidy/testing/planted-documents.ts";
import { inImports } from "./tidy/testing/planted-imports.ts";
import { inSources } from "./tidy/testing/planted-sources.ts";
import { inWords } from "./tidy/testing/planted-words.ts";
import { undescribed, withRoomTables } from "./tidy/room-tables.ts";
import { overBudget } from "./tidy/sizes.ts";
import { readTree } from "./tidy/tree.ts";
import { listOffences, RULES, tidy, writeBaselines } from "./tidy.ts";

const planted: readonly Planted[] = [...inImports, ...inSources, ...inWords, ...inDocuments];

describe("tidy finds", () => {
  test.each(planted)("$rule: $promise", ({ rule, wrong, at, commits, right }) => {
    const found = check(plant(wrong, commits?.wrong)).filter((violation) => violation.rule === rule);
    expect(found.map(({ file }) => file.replace(/^commit .*/, "commit"))).toContain(
      at ?? Object.keys(wrong)[0],
    );
    if (right !== undefined)
      expect(check(plant(right, commits?.right)).filter((violation) => violation.rule === rule)).toEqual([]);
  });

  test("every rule has a planted violation", () => {
    expect(new Set(planted.map(({ rule }) => rule))).toEqual(new Set(Object.keys(RULES)));
  });

  test("nothing in a tree where almost everything is missing", () => {
    expect(check(plant({ "README.md": "# Holdfast\n" }))).toEqual([]);
  });
});

const LONG = "packages/core/src/long.ts";

describe("an allowed size", () => {
  const tree = readTree(
    plant({
      "a.ts": "\n".repeat(500),
      "b.ts": classOf(20, (index) => `f${index} = 1;`),
      [LONG]: functionOf(100),
    }),
  );
  const sizes = (lines: number, fields: number, ofFunction: number) =>
    overBudget(
      tree,
      { "a.ts": { lines, why: "one idea" } },
      { [`${LONG}: a`]: { lines: ofFunction, why: "one idea" } },
      { "b.ts: A": { fields, why: "one idea" } },
    );

  test("a source, a function and a class of the listed size are right", () => {
    expect(sizes(500, 20, 100)).toEqual([]);
  });

  test("a source, a function and a class that grew are found", () => {
    expect(sizes(499, 19, 99).map(({ file }) => file)).toEqual(["a.ts", "b.ts", LONG]);
  });

  test("a number that allows much more than there is must be lowered", () => {
    expect(sizes(550, 30, 110).map(({ what }) => what)).toEqual([
      "500 lines: lower its number in LONG_FILES",
      "A: 20 fields: lower its number in LARGE_CLASSES",
      "a: 100 lines: lower its number in LONG_FUNCTIONS",
    ]);
  });

  test("an entry that is not needed must be removed", () => {
    const small = readTree(plant({ "a.ts": "", [LONG]: functionOf(80) }));
    const entry = { lines: 500, why: "one idea" };
    const found = overBudget(small, { "a.ts": entry }, { [`${LONG}: a`]: entry, [`${LONG}: b`]: entry }, {});
    expect(found.map(({ what }) => what)).toEqual([
      "0 lines are within the budget: remove its number from LONG_FILES",
      "a: 80 lines are within the budget: remove its number from LONG_FUNCTIONS",
      `${LONG}: b is not there: remove its number`,
    ]);
  });
});

describe("the tables of rooms", () => {
  const rooms = { core: [{ a: "things", "b.ts": " " }, { "a/c": "" }] };

  test("a room without a description is found", () => {
    expect(undescribed(rooms)).toEqual(["packages/core/src/b.ts", "packages/core/src/a/c"]);
  });

  test("a second writing changes nothing, and keeps the text around the tables", () => {
    const old = `before\n${withRoomTables("")}after\n`;
    const written = withRoomTables(old, rooms);
    expect(written).toMatch(/^before\n<!-- .*\| `a` \| things \|\n.*<!-- .* -->\nafter\n$/s);
    expect(withRoomTables(written, rooms)).toBe(written);
    expect(withRoomTables(old.replace(/<!-- The end.*\n/, ""))).toMatch(/after\n$/);
  });
});

describe("a falling baseline", () => {
  const files = {
    "docs/a.md": "What is first.",
    "docs/b.md": "What is first. What is second.",
    "scripts/tidy/plain-words-baseline.json": '{ "docs/a.md": 2, "docs/b.md": 1, "docs/gone.md": 1 }',
  };

  test("a number that is too high is a violation", () => {
    expect(
      check(plant(files))
        .filter(({ what }) => what.includes("--lower"))
        .map(({ file }) => file),
    ).toEqual(["docs/a.md", "docs/gone.md"]);
  });

  test("lowering it raises no number and adds no file", () => {
    const root = plant({ ...files, "docs/new.md": "What is first." });
    writeBaselines(root, lowered);
    expect(baselineOf(root)).toEqual({ "docs/a.md": 1, "docs/b.md": 1 });
  });

  test("offences that moved to another file of their package are allowed there", () => {
    const root = plant({ ...files, "docs/new.md": "What is first." });
    writeBaselines(root, moved);
    expect(baselineOf(root)).toEqual({ "docs/a.md": 1, "docs/b.md": 2, "docs/new.md": 1 });
  });

  test("a move raises no package above its sum", () => {
    const root = plant({
      ...files,
      "docs/new.md": "What is first. What is second.",
      "README.md": "What is new.",
    });
    writeBaselines(root, moved);
    expect(baselineOf(root)).toEqual({ "docs/a.md": 1, "docs/b.md": 1 });
  });

  test("the offences of a folder are listed with their lines", () => {
    const root = plant({ "docs/a.md": "Right.\n\nWhat is wrong.", "more/docs/a.md": "What is elsewhere." });
    expect(listOffences(root, "plain-words", ["docs/"])).toEqual([
      { file: "docs/a.md", line: 3, reason: 'begins with a bare "What"', text: "What is wrong." },
    ]);
  });
});

const roots: string[] = [];
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});

function baselineOf(root: string): unknown {
  return JSON.parse(readFileSync(join(root, "scripts/tidy/plain-words-baseline.json"), "utf8"));
}

function check(root: string) {
  return tidy(readTree(root));
}

function plant(files: Files, subject?: string): string {
  const root = mkdtempSync(join(tmpdir(), "tidy-"));
  roots.push(root);
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  if (subject !== undefined) {
    const git = (...args: string[]) => execFileSync("git", args, { cwd: root });
    git("init", "--quiet");
    const author = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
    git(...author, "commit", "--quiet", "--allow-empty", "--message", subject);
  }
  return root;
}
