// `trackedFiles`: the files of the repository, without those that it ignores.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

export function trackedFiles(root: string): readonly string[] {
  const args = ["ls-files", "--cached", "--others", "--exclude-standard"];
  const { stdout, status, error } = spawnSync("git", args, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw error ?? new Error(`git ls-files ended with ${status}`);
  return stdout
    .split("\n")
    .filter((path) => path !== "" && existsSync(join(root, path)))
    .toSorted();
}
