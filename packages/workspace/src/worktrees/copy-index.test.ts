// copy-index-1, over a real repository in which a file has the time and the size that the index has of it.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

import { copyIndex } from "./copy-index.ts";

test("a second change in one tick of the clock is seen by a copy of the index", () => {
  const folder = mkdtempSync(join(tmpdir(), "copy-index-"));
  const [file, index] = [join(folder, "a"), join(folder, ".git/index")];
  const git = (args: readonly string[], env: Readonly<Record<string, string>> = {}): string =>
    execFileSync("git", ["-c", "core.trustctime=false", ...args], {
      cwd: folder,
      encoding: "utf8",
      env: { PATH: process.env["PATH"], HOME: folder, ...env },
    });
  /** Writes in the same tick as the last time. */
  const write = (content: string): void => {
    writeFileSync(file, content);
    utimesSync(file, 1_000_000_000, 1_000_000_000);
  };
  const changesBy = (copy: (from: string, to: string) => void): string => {
    copy(index, join(folder, "copy"));
    return git(["diff-files", "--name-only"], { GIT_INDEX_FILE: join(folder, "copy") });
  };
  try {
    git(["init", "--quiet"]);
    write("one");
    git(["add", "a"]);
    utimesSync(index, 1_000_000_000, 1_000_000_000);
    write("two");
    expect(changesBy(copyIndex)).toBe("a\n");
    expect(changesBy(copyFileSync)).toBe(""); // The danger is real: git sees nothing in a newer copy.
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
