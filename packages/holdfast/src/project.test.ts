import { mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseArguments } from "./arguments.ts";
import { COMMON_OPTIONS } from "./command.ts";
import { findDatabase, findProject, makeProjectFolder } from "./project.ts";

describe("the project", () => {
  let root: string;
  beforeEach(() => void (root = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-project-")))));
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const make = (path: string) => mkdirSync(join(root, path), { recursive: true });
  const find = (cwd: string, words: string[] = [], env: Record<string, string> = {}) =>
    findDatabase(parseArguments(words, COMMON_OPTIONS, ""), { cwd: join(root, cwd), env });
  const configure = (text: string) => {
    make(".holdfast");
    writeFileSync(join(root, ".holdfast/config.json"), text);
  };

  test("is the nearest folder upward with .holdfast, before the root of a git repository", () => {
    make(".holdfast");
    make("repo/.git");
    make("repo/a/b");
    expect(findProject(join(root, "repo/a/b"))).toBe(root);
  });

  test("is the root of the git repository, or else this folder", () => {
    make("repo/.git");
    make("repo/a/b");
    make("plain/c");
    expect(findProject(join(root, "repo/a/b"))).toBe(join(root, "repo"));
    expect(findProject(join(root, "plain/c"))).toBe(join(root, "plain/c"));
  });

  test("a worktree's .git is a file, and its root is a root as well", () => {
    make("tree/a");
    writeFileSync(join(root, "tree/.git"), "gitdir: elsewhere\n");
    expect(findProject(join(root, "tree/a"))).toBe(join(root, "tree"));
  });

  test("flag before environment before file before default", () => {
    make("a");
    expect(find("a")).toMatchObject({ path: join(root, "a/.holdfast/holdfast.db"), origin: "default" });
    configure('{ "db": "data/x.db" }');
    expect(find("a")).toMatchObject({ path: join(root, "data/x.db"), origin: "file" });
    const env = { HOLDFAST_DB: "e.db" };
    expect(find("a", [], env)).toMatchObject({ path: join(root, "a/e.db"), origin: "environment" });
    expect(find("a", [], { HOLDFAST_DB: "" })).toMatchObject({ origin: "file" });
    expect(find("a", ["--db", "f.db"], env)).toMatchObject({ path: join(root, "a/f.db"), origin: "flag" });
  });

  test.each([
    ["{", "is not JSON"],
    ["[]", "is not a JSON object"],
    ['{"dbb": "x"}', 'no "dbb"; did you mean db?'],
    ['{"db": 7}', '"db" is not a path'],
    ['{"db": ""}', '"db" is not a path'],
  ])("a configuration that says %s is refused", (text, message) => {
    configure(text);
    expect(() => find("")).toThrow(message);
  });

  test("its folder is made for its user only, and git takes nothing from it", () => {
    makeProjectFolder(find(""));
    expect(statSync(join(root, ".holdfast")).mode & 0o777).toBe(0o700);
    expect(statSync(join(root, ".holdfast/.gitignore")).isFile()).toBe(true);
  });

  test("a database that was named elsewhere makes no folder here", () => {
    makeProjectFolder(find("", ["--db", "x.db"]));
    expect(statSync(join(root, ".holdfast"), { throwIfNoEntry: false })).toBeUndefined();
  });
});
