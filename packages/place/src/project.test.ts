import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { trustContent } from "@holdfast/agents";
import { processIdentity } from "@holdfast/system/processes";
import { parseArguments } from "@holdfast/terminal/frame/arguments";
import { withReaderOf } from "./find-session.ts";
import { findDatabase, findProject, makeProjectFolder } from "./project.ts";

describe("the project", () => {
  let root: string;
  beforeEach(() => void (root = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-project-")))));
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const make = (path: string) => mkdirSync(join(root, path), { recursive: true });
  const find = (cwd: string, words: string[] = [], env: Record<string, string> = {}) =>
    findDatabase(parseArguments(words, { name: "list", options: {} }), { cwd: join(root, cwd), env });
  const makeRepository = (folder: string) => {
    mkdirSync(join(root, folder, ".git"), { recursive: true });
    writeFileSync(join(root, folder, ".git/HEAD"), "ref: refs/heads/main\n");
  };
  const configureUser = (folder: string, text: string) => {
    make(`${folder}/holdfast`);
    writeFileSync(join(root, folder, "holdfast/config.json"), text);
  };
  const configure = (text: string) => {
    make(".holdfast");
    writeFileSync(join(root, ".holdfast/config.json"), text);
  };
  const trust = () =>
    trustContent(
      join(root, "home/.local/share/holdfast/trusted-folders.json"),
      root,
      ".holdfast/config.json",
    );

  test("a session that is not found while the local stack starts or stops may be one of the stack", async () => {
    const env = { HOME: join(root, "home"), XDG_DATA_HOME: join(root, "data") };
    make("data/holdfast/local");
    const supervisor = processIdentity(process.pid)!;
    for (const [status, said] of [
      ["starting", "the local stack is starting: run the same command again"],
      ["stopping", "the local stack is stopping"],
    ] as const) {
      const state = { version: 1, status, supervisor, url: "http://127.0.0.1:1" };
      writeFileSync(join(root, "data/holdfast/local/stack.json"), JSON.stringify(state));
      const database = find("", [], env);
      expect(database).toMatchObject({ awayStack: status, origin: "default" });
      const lost = await withReaderOf(database, "ses", async () => {}).catch((error: unknown) => error);
      expect(lost).toMatchObject({ code: "session_not_found", fix: expect.stringContaining(said) });
    }
  });

  test.each([
    ["was never trusted", false, '{ "db": "data/x.db" }'],
    ["has changed since", true, '{ "db": "data/x.db", "mode": "cloud" }'],
  ])(
    "a setting of a project whose configuration %s is refused, and options count",
    (_when, wasTrusted, text) => {
      const home = { HOME: join(root, "home") };
      configureUser("home/.config", '{ "db": "data/u.db" }');
      if (wasTrusted) {
        configure('{ "db": "data/x.db" }');
        trust();
      }
      configure(text);
      expect(() => find("", [], home)).toThrow(
        expect.objectContaining({
          code: "policy_denied",
          at: `${join(root, ".holdfast/config.json")}#/db`,
          fix: expect.stringContaining("holdfast agents trust"),
        }),
      );
      expect(find("", ["--db", "f.db"], home)).toMatchObject({ origin: "flag" });
      trust();
      expect(find("", [], home)).toMatchObject({ path: join(root, "data/x.db") });
    },
  );

  test("the project is the nearest folder upward with .holdfast, before the root of a git repository", () => {
    make(".holdfast");
    makeRepository("repo");
    make("repo/a/b");
    expect(findProject({ cwd: join(root, "repo/a/b"), env: {} })).toBe(root);
  });

  test("the project is the root of the git repository, or else this folder", () => {
    makeRepository("repo");
    make("repo/a/b");
    make("plain/c");
    expect(findProject({ cwd: join(root, "repo/a/b"), env: {} })).toBe(join(root, "repo"));
    expect(findProject({ cwd: join(root, "plain/c"), env: {} })).toBe(join(root, "plain/c"));
  });

  test("an empty .git, as a sandbox leaves it, is no repository", () => {
    make(".git");
    make("repo");
    expect(findProject({ cwd: join(root, "repo"), env: {} })).toBe(join(root, "repo"));
  });

  test("the home folder with .holdfast is the project only outside of a git repository", () => {
    mkdirSync(join(root, "home/.holdfast"), { recursive: true });
    makeRepository("home/repo");
    mkdirSync(join(root, "home/plain"));
    const env = { HOME: join(root, "home") };
    expect(findProject({ cwd: join(root, "home/repo"), env })).toBe(join(root, "home/repo"));
    expect(findProject({ cwd: join(root, "home/plain"), env })).toBe(join(root, "home"));
    mkdirSync(join(root, "home/repo/.holdfast"));
    expect(findProject({ cwd: join(root, "home/repo"), env })).toBe(join(root, "home/repo"));
  });

  test("a worktree's .git is a file, and its root is a root as well", () => {
    make("tree/a");
    writeFileSync(join(root, "tree/.git"), "gitdir: elsewhere\n");
    expect(findProject({ cwd: join(root, "tree/a"), env: {} })).toBe(join(root, "tree"));
  });

  test("a setting comes from the flag, the environment, the project's file, the user's file or the default, in this order", () => {
    make("a");
    const home = { HOME: join(root, "home") };
    expect(find("a", [], home)).toMatchObject({
      path: join(root, "a/.holdfast/holdfast.db"),
      origin: "default",
    });
    configureUser("home/.config", '{ "db": "data/u.db" }');
    expect(find("a", [], home)).toMatchObject({
      path: join(root, "a/data/u.db"),
      origin: "user_file",
      from: join(root, "home/.config/holdfast/config.json"),
    });
    configure('{ "db": "data/x.db" }');
    trust();
    expect(find("a", [], home)).toMatchObject({
      path: join(root, "data/x.db"),
      origin: "project_file",
      from: join(root, ".holdfast/config.json"),
    });
    const env = { ...home, HOLDFAST_DB: "e.db" };
    expect(find("a", [], env)).toMatchObject({
      path: join(root, "a/e.db"),
      origin: "environment",
      from: "HOLDFAST_DB",
    });
    expect(find("a", [], { ...env, HOLDFAST_DB: "" })).toMatchObject({ origin: "project_file" });
    expect(find("a", ["--db", "f.db"], env)).toMatchObject({
      path: join(root, "a/f.db"),
      origin: "flag",
      from: "--db",
    });
  });

  test("the user's file is where XDG says, if that is an absolute path, and else below the home", () => {
    configureUser("xdg", '{ "db": "/x.db" }');
    configureUser("home/.config", '{ "db": "/h.db" }');
    const env = { HOME: join(root, "home"), XDG_CONFIG_HOME: join(root, "xdg") };
    expect(find("", [], env).path).toBe("/x.db");
    expect(find("", [], { ...env, XDG_CONFIG_HOME: "xdg" }).path).toBe("/h.db");
    expect(find("", [], { ...env, XDG_CONFIG_HOME: "" }).path).toBe("/h.db");
    expect(find("", [], {}).origin).toBe("default");
  });

  test("the user's file sets what the project's file leaves open", () => {
    configure("{}");
    configureUser("xdg", '{ "db": "u.db" }');
    expect(find("", [], { XDG_CONFIG_HOME: join(root, "xdg") }).path).toBe(join(root, "u.db"));
  });

  test.each([
    ["{", "is not JSON: the text ends too early, at line 1, column 2", ""],
    ['{\n  "db": hunter2\n}', "is not JSON: unexpected character at line 2, column 9", ""],
    ['{ "db": "x",\r\n}', 'is not JSON: unexpected "}" at line 2, column 1', ""],
    ["[]", "is not a JSON object", ""],
    ['{"dbb": "x"}', 'no "dbb"; did you mean db?', "#/dbb"],
    ['{"a/b~c": "x"}', 'no "a/b~c"', "#/a~1b~0c"],
    ['{"db": 7}', '"db" is not a text', "#/db"],
    ['{"db": ""}', '"db" is not a text', "#/db"],
    ['{"$schema": null}', '"$schema" is not a text', "#/$schema"],
  ])("a configuration that says %s is refused, with the file and the pointer", (text, message, pointer) => {
    const refused = (at: string) =>
      expect.objectContaining({
        code: "config_invalid",
        message: expect.stringContaining(message),
        at: `${join(root, at)}${pointer}`,
      });
    configureUser("xdg", text);
    expect(() => find("", [], { XDG_CONFIG_HOME: join(root, "xdg") })).toThrow(
      refused("xdg/holdfast/config.json"),
    );
    configure(text);
    expect(() => find("")).toThrow(refused(".holdfast/config.json"));
  });

  test("its folder is made for its user only, and git takes nothing from it", () => {
    execFileSync("git", ["init", "-q"], { cwd: root });
    makeProjectFolder(find(""));
    writeFileSync(join(root, ".holdfast/holdfast.db"), "");
    expect(execFileSync("git", ["status", "--porcelain"], { cwd: root, encoding: "utf8" })).toBe("");
    expect(statSync(join(root, ".holdfast")).mode & 0o777).toBe(0o700);
    expect(statSync(join(root, ".holdfast/.gitignore")).isFile()).toBe(true);
  });

  test("a folder that exists gets a .gitignore for git to take the project's own files alone, and one that exists stays", () => {
    const added = () =>
      execFileSync("git", ["add", "-A", "-n"], { cwd: root, encoding: "utf8" }).match(/(?<=').+(?=')/g);
    execFileSync("git", ["init", "-q"], { cwd: root });
    const shown = ["agents/a.md", "scripts/s/s.sh", "skills/k/SKILL.md", "profiles/p.yaml", "config.json"];
    const hidden = ["holdfast.db", "holdfast.db-wal", "holdfast.db-socket", "coordinator-suspects"];
    for (const path of [...shown, ...hidden]) {
      make(dirname(`.holdfast/${path}`));
      writeFileSync(join(root, ".holdfast", path), "");
    }
    makeProjectFolder(find("", ["--db", ".holdfast/own.db"]));
    expect(added()?.toSorted()).toEqual(shown.map((path) => `.holdfast/${path}`).toSorted());
    writeFileSync(join(root, ".holdfast/.gitignore"), "*\n");
    makeProjectFolder(find(""));
    expect(added()).toBeNull();
  });

  test("a database that was named elsewhere makes no folder here", () => {
    makeProjectFolder(find("", ["--db", "x.db"]));
    expect(statSync(join(root, ".holdfast"), { throwIfNoEntry: false })).toBeUndefined();
  });
});
