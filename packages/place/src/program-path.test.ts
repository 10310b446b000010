import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { withoutProject } from "./program-path.ts";

let root: string;
beforeEach(() => void (root = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-path-")))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const make = (path: string): string => {
  mkdirSync(join(root, path), { recursive: true });
  return join(root, path);
};
const kept = (cwd: string, ...entries: string[]) =>
  withoutProject(entries.join(":"), { cwd, env: { HOME: join(root, "home") } }).split(":");

test("no entry of the PATH lies in a project, whatever path leads there", () => {
  const clone = make("home/clone");
  make("home/clone/.git");
  writeFileSync(join(clone, ".git/HEAD"), "ref: refs/heads/main\n");
  const sub = make("home/clone/a/b");
  const bin = make("home/clone/node_modules/.bin");
  symlinkSync(make("home/clone/tools"), join(root, "link"));
  const own = make("home/.local/bin");
  expect(kept(sub, bin, join(clone, "not-there"), join(root, "link"), "bin", ".", own, "/usr/bin")).toEqual([
    own,
    "/usr/bin",
  ]);
});

test("packages of a folder without a repository give no program, and a home folder keeps its own", () => {
  const unpacked = make("home/unpacked/sub");
  const bin = make("home/unpacked/node_modules/.bin");
  const own = make("home/.local/bin");
  make("home/.holdfast");
  expect(kept(unpacked, bin, own)).toEqual([own]);
  expect(kept(join(root, "home"), own)).toEqual([own]);
});
