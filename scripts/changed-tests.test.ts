import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ofCampaign } from "@holdfast/testkit/campaign";
import { changedFiles, choose } from "./changed-tests.ts";
import { readTree } from "./tidy/tree.ts";

const FILES: Readonly<Record<string, string>> = {
  "packages/core/package.json": '{"name":"@a/core","exports":{".":"./src/index.ts"}}',
  "packages/core/src/index.ts":
    'export { one } from "./one.ts";\nexport { two as second } from "./two.ts";\n',
  "packages/core/src/one.ts": "export const one = 1;\n",
  "packages/core/src/two.ts": "export const two = 2;\n",
  "packages/core/src/one.test.ts": 'import { one } from "./one.ts";\none;\n',
  "packages/app/package.json": '{"name":"@a/app"}',
  "packages/app/src/run.ts": 'import { second } from "@a/core";\nexport const run = second;\n',
  "packages/app/src/run.test.ts": 'import { run } from "./run.ts";\nrun;\n',
  "packages/app/src/whole.test.ts": 'await import("@a/core");\n',
  "packages/app/src/program.test.ts": 'start(new URL("./run.ts", import.meta.url));\n',
};

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-changed-"));
  for (const [file, text] of Object.entries(FILES)) write(file, text);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(file: string, text: string): void {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  writeFileSync(join(root, file), text);
}

/** The names of the tests that are chosen for a change, and of those left out. */
function chosen(changed: readonly string[], lastMs: Readonly<Record<string, number>> = {}) {
  const nameOf = (file: string): string => /([^/]+)\.test\.ts$/.exec(file)![1]!;
  const choice = choose(readTree(root), changed, (file) => lastMs[nameOf(file)]);
  return { chosen: choice.chosen.map(nameOf), leftOut: choice.leftOut.map(nameOf) };
}

describe("the tests of a change", () => {
  test("the tests that reach it are chosen, also in other packages", ofCampaign, () => {
    expect(chosen(["packages/core/src/two.ts"]).chosen).toEqual(["program", "run", "whole"]);
    expect(chosen(["packages/app/src/run.ts"]).chosen).toEqual(["program", "run"]);
  });

  test("a test that takes other values from the same package is not chosen", () => {
    expect(chosen(["packages/core/src/one.ts"]).chosen).toEqual(["one", "whole"]);
  });

  test("a changed list of exports chooses all tests that import through it", () => {
    expect(chosen(["packages/core/src/index.ts"]).chosen.toSorted()).toEqual(["program", "run", "whole"]);
  });

  test("a test that takes longer than the time that is left is left out, unless it is itself changed", () => {
    const slow = { one: 100_000, run: 40_000, whole: 40_000, program: 1_000 };
    expect(chosen(["packages/core/src/two.ts"], slow)).toEqual({
      chosen: ["program", "run"],
      leftOut: ["whole"],
    });
    expect(chosen(["packages/core/src/one.test.ts"], slow).chosen).toEqual(["one"]);
  });

  test("times that differ little choose the same tests, the first by name", () => {
    const choices = [
      { run: 31_000, whole: 34_000, program: 30_000 },
      { run: 34_000, whole: 31_000, program: 33_000 },
    ].map((times) => chosen(["packages/core/src/two.ts"], times));
    expect(choices).toEqual(
      Array.from({ length: 2 }, () => ({ chosen: ["program"], leftOut: ["run", "whole"] })),
    );
  });

  test("the tests beside a source that reach it come first, and are chosen whatever they take", () => {
    const slow = { one: 100_000, whole: 1_000 };
    expect(chosen(["packages/core/src/one.ts"], slow)).toEqual({ chosen: ["one"], leftOut: ["whole"] });
  });

  test("a source that nothing loads yet chooses the tests of the nearest folder above", () => {
    write("packages/core/src/deep/new/new.ts", "export const fresh = 1;\n");
    expect(chosen(["packages/core/src/deep/new/new.ts"]).chosen).toEqual(["one"]);
  });

  test("a time that is not known is estimated from the tests of a file and of the suites that it plays", () => {
    write("packages/core/src/testing/suite.ts", 'test("a", () => {});\n'.repeat(200));
    write(
      "packages/app/src/program.test.ts",
      `import "./run.ts";\nimport "../../core/src/testing/suite.ts";\n`,
    );
    expect(chosen(["packages/core/src/two.ts"])).toEqual({ chosen: ["run", "whole"], leftOut: ["program"] });
    const suite = 'test("a", ofCampaign, () => {});\n'.repeat(200);
    write("packages/core/src/testing/suite.ts", suite);
    expect(chosen(["packages/core/src/two.ts"]).leftOut).toEqual([]);
  });

  test("a file whose tests are all of campaigns is chosen only where these are played", () => {
    write(
      "packages/core/src/one.test.ts",
      'import { one } from "./one.ts";\ntest("a", ofCampaign, () => one);\n',
    );
    const one = ["packages/core/src/one.ts"];
    expect(choose(readTree(root), one, () => 1).chosen).toEqual(["packages/app/src/whole.test.ts"]);
    expect(choose(readTree(root), one, () => 1, true).chosen[0]).toBe("packages/core/src/one.test.ts");
  });

  test("a file that no source imports chooses no test", () => {
    expect(chosen(["README.md"])).toEqual({ chosen: [], leftOut: [] });
  });
});

test(
  "a change is what differs from the merge base with main, and on main from the commit before",
  ofCampaign,
  () => {
    const git = (...args: string[]): void => {
      const settings = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
      expect(spawnSync("git", [...settings, ...args], { cwd: root, encoding: "utf8" })).toMatchObject({
        status: 0,
      });
    };
    const commit = (file: string): void => {
      write(file, file);
      git("add", "-A");
      git("commit", "-qm", file);
    };
    git("init", "-q");
    commit("a.ts");
    commit("b.ts");
    write("open.ts", "");
    expect(changedFiles(root).files).toEqual(["b.ts", "open.ts"]);
    git("checkout", "-qb", "work");
    expect(changedFiles(root).files).toEqual(["open.ts"]);
    commit("c.ts");
    git("checkout", "-q", "main");
    commit("d.ts");
    git("checkout", "-q", "work");
    expect(changedFiles(root).files).toEqual(["c.ts", "open.ts"]);
  },
);
