// `findSubmodules`: the submodules of a commit whose repositories are there, from the objects of git alone.
//
//   - The repository of a submodule is the one that git keeps in the user's `.git/modules`. Only names and
//     paths of `.gitmodules` count: no address, and no command. Nothing is fetched, and nothing of a
//     submodule's checkout is read.
//   - A submodule that the user's checkout has and a worktree cannot have is refused, before anything is
//     made. A submodule that the user has never initialised is an empty folder, as in the user's checkout.

import { existsSync, lstatSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { HoldfastError } from "@holdfast/core";

import type { SubmoduleRecord } from "../worktree-record.ts";
import { gitIn, type GitSettings } from "../worktree-git.ts";

/** The mode of a submodule in a tree. */
export const GITLINK = "160000";
const NO_PARTS: readonly string[] = ["", ".", ".."];

interface Above {
  /** The shared git directory that has the commit. */
  readonly store: string;
  /** The user's checkout of the outermost repository. */
  readonly project: string;
  /** The path of this repository in it, with a slash at the end, or empty. */
  readonly prefix: string;
}

/** @returns each submodule before those inside of it. @throws HoldfastError `invalid_input`. */
export async function findSubmodules(
  above: Above,
  commit: string,
  settings: GitSettings,
): Promise<readonly SubmoduleRecord[]> {
  const { store, project, prefix } = above;
  const run = (args: readonly string[], codes: readonly number[] = [0]) =>
    gitIn(store, args, inStore(store, settings), { codes });
  const modules = `${commit}:.gitmodules`;
  if ((await run(["cat-file", "-e", modules], [0, 1, 128])).exitCode !== 0) return [];
  const names = namesByPath((await run(["config", "--blob", modules, "--list", "-z"])).stdout);
  const listed = (await run(["ls-tree", "-r", "-z", "--full-tree", commit])).stdout.split("\0");
  const found: SubmoduleRecord[] = [];
  for (const line of listed.filter((entry) => entry.startsWith(GITLINK))) {
    const [head = "", path = ""] = line.split("\t");
    const [, , base = ""] = head.split(" ");
    const name = names.get(path);
    const own = { path: `${prefix}${path}`, store: join(store, "modules", name ?? ""), base };
    if (name === undefined) continue; // Git itself knows no submodule of this path.
    if (!isStore(own.store, name)) {
      if (existsSync(join(project, own.path, ".git"))) throw elsewhere(project, own);
      continue;
    }
    const there = await gitIn(
      own.store,
      ["cat-file", "-e", `${base}^{commit}`],
      inStore(own.store, settings),
      {
        codes: [0, 1, 128],
      },
    );
    if (there.exitCode !== 0) throw behind(project, own);
    found.push(own);
    const inner = { store: own.store, project, prefix: `${own.path}/` };
    found.push(...(await findSubmodules(inner, base, settings)));
  }
  return found;
}

/** Git in a repository without a checkout of its own, which is named because git takes none that it finds. */
export function inStore(store: string, settings: GitSettings): GitSettings {
  return { ...settings, gitFolders: { ...settings.gitFolders, [store]: store } };
}

function namesByPath(listed: string): ReadonlyMap<string, string> {
  return new Map(
    listed.split("\0").flatMap((setting) => {
      const [, name, path] = /^submodule\.(.+)\.path\n(.*)$/s.exec(setting) ?? [];
      return name === undefined || path === undefined ? [] : [[path, name] as const];
    }),
  );
}

/** A name comes with the project, and may not lead out of the folder of all stores. */
function isStore(path: string, name: string): boolean {
  if (name.split(/[/\\]/).some((part) => NO_PARTS.includes(part))) return false;
  const isThere = ["HEAD", "objects", "refs"].every((part) => existsSync(join(path, part)));
  return isThere && lstatSync(path).isDirectory() && realpathSync(path) === path;
}

function elsewhere(project: string, { path, store }: SubmoduleRecord): HoldfastError {
  return new HoldfastError(
    "invalid_input",
    `the repository of the submodule ${path} is not where worktrees can share it`,
    {
      at: join(project, path),
      expected: `its repository at ${store}`,
      fix: `run \`git submodule absorbgitdirs\` in the main working tree; in another one, initialise the submodule there first: \`git submodule update --init --recursive\``,
    },
  );
}

function behind(project: string, { path, base }: SubmoduleRecord): HoldfastError {
  return new HoldfastError(
    "invalid_input",
    `the submodule ${path} does not have the commit that ${project} records`,
    {
      at: join(project, path),
      expected: `the commit ${base}`,
      fix: `run \`git submodule update --init --recursive\` in ${project}`,
    },
  );
}
