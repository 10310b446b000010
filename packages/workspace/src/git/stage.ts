// `stageChanges`: stages changed and new files for a commit.
//
// A git repository inside of the folder is left out, and no program of its configuration runs. `git add`
// would ask that repository for its status (git-options-3).

import { HoldfastError } from "@holdfast/core";

import { OWN_FILES } from "./git.ts";

export interface StageAnswer {
  readonly stdout: string;
  readonly isCut: boolean;
}

/**
 * @param run calls git in the folder. @param isWanted chooses among the files that git does not know yet.
 * @returns the repositories that are left out.
 */
export async function stageChanges(
  run: (args: readonly string[], input?: string) => Promise<StageAnswer>,
  isWanted: (path: string) => boolean = () => true,
): Promise<readonly string[]> {
  const list = async (selection: readonly string[]): Promise<readonly string[]> => {
    const { stdout, isCut } = await run(["ls-files", ...selection, "-z", "--", ".", ...OWN_FILES]);
    if (isCut)
      throw new HoldfastError("limit_exceeded", "too many files have changed for one commit", {
        expected: "fewer changed files, without the products of a build",
        fix: "name files that need no commit in .gitignore",
      });
    return stdout.split("\0").filter((path) => path !== "");
  };
  const update = async (how: readonly string[], paths: readonly string[]): Promise<void> => {
    const input = paths.map((path) => `${path}\0`).join("");
    if (paths.length > 0) await run(["update-index", ...how, "-z", "--stdin"], input);
  };
  const others = await list(["--others", "--exclude-standard"]);
  // First: a link in the place of a folder takes the files of that folder out of the index.
  const files = others.filter((path) => !isRepository(path) && isWanted(path));
  await update(["--add", "--replace"], files);
  const tagged = await list(["-t", "--deleted", "--modified"]);
  const gone = new Set(tagged.filter((line) => line.startsWith(GONE)).map(pathOf));
  // Git refuses to look at a file behind a link, also when it is only to be forgotten.
  await update(["--force-remove"], [...gone]);
  const changed = tagged.map(pathOf).filter((path) => !gone.has(path));
  await update(["--add", "--remove", "--replace"], [...new Set(changed)]);
  return others.filter(isRepository);
}

/** The mark of a file that is gone in `git ls-files -t`, which writes each path behind a mark and a space. */
const GONE = "R ";

function pathOf(line: string): string {
  return line.slice(GONE.length);
}

/** Whether a name in git's list of unknown files is that of a repository inside. Git lists no other folder. */
export function isRepository(path: string): boolean {
  return path.endsWith("/");
}
