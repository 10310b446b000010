// `guardPlaces`: makes sure that `.git`, `.holdfast` and the places that give rights are places that a mount
// can guard, before each command.
//
//   - A place that is not there cannot be guarded, and a command could make it. It becomes an empty folder,
//     which git ignores.
//   - A mount follows a link, on this machine and in the sandbox. A command is refused where one of the
//     places is a link, or where the folder itself has become one. It is also refused where the file `.git`
//     leads back into the folder.
//   - A folder above a place is mounted over itself. A command could otherwise move that folder away and make
//     another one.
//   - A file that is not there, such as `.mcp.json`, gets no guard, because an empty one would be read by
//     other programs. A file that a command makes is renamed after it (`nested-places.ts`).

import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  type BigIntStats,
} from "node:fs";
import { dirname, join, resolve, sep } from "node:path";

import { GRANTING_FILES, GRANTING_FOLDERS } from "../granting-places.ts";
import { OWN_FOLDER } from "./contained-directory.ts";
import type { Execution, Launch } from "./execute.ts";

export interface GuardedPlaces {
  readonly git: string;
  readonly own: string;
  /** The other places that a command may read and not change. */
  readonly granting: readonly string[];
  readonly above: readonly string[];
  /** Differs when another `.git` or `.holdfast` has taken the place. */
  readonly identity: string;
}

/**
 * @param guards whether also the places that give rights are guarded.
 * @returns the reason for which no command may run in the folder.
 */
export function guardPlaces(root: string, guards = { granting: true }): GuardedPlaces | string {
  const [git, own] = [join(root, ".git"), join(root, OWN_FOLDER)];
  try {
    if (realpathSync(root) !== root) return `${root} has become a link; expected the folder that was opened`;
    const granting = guards.granting ? grantingIn(root) : [];
    const above = [...new Set(granting.flatMap((path) => foldersAbove(path, root)))];
    const found: BigIntStats[] = [];
    for (const place of [git, own, ...above, ...granting]) {
      const facts = factsOf(place);
      if (facts.isSymbolicLink())
        return place === git
          ? `${place} is a link, which a sandbox cannot guard; put a folder in its place, or the file "gitdir: FOLDER" for a repository elsewhere`
          : `${place} is a link, which a sandbox cannot guard; put the file or folder itself in its place`;
      found.push(facts);
    }
    if (found[0]?.isFile() === true && leadsInto(git, root))
      return `the file ${git} leads into the folder itself, where a command could change the repository; move the repository out of the folder`;
    return {
      git,
      own,
      granting,
      above,
      identity: found.map((facts) => `${facts?.ino}:${facts?.birthtimeNs}`).join(" "),
    };
  } catch (error) {
    return `a place of ${root} cannot be guarded: ${(error as Error).message}`;
  }
}

/** The end of a command that was not started. */
export function refusedExecution({ command }: Launch, message: string): Execution {
  return {
    command,
    end: { type: "spawn_error", code: "EACCES", message },
    stdout: "",
    stderr: "",
    isCut: false,
    durationMs: 0,
    isTreeGone: true,
  };
}

/** The places that give rights: folders whether they are there or not, and files that are there. */
function grantingIn(root: string): readonly string[] {
  const files = GRANTING_FILES.flatMap((path) => {
    const [outer = "", star, file = ""] = path.split("/");
    if (star === undefined) return existsSync(join(root, path)) ? [join(root, path)] : [];
    // A file may come beside the one that is there, so the folder of both is guarded.
    return foldersIn(join(root, outer)).filter((folder) => existsSync(join(folder, file)));
  });
  return [...GRANTING_FOLDERS.map((folder) => join(root, folder)), ...new Set(files)];
}

function foldersIn(folder: string): readonly string[] {
  if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  return readdirSync(folder).map((name) => join(folder, name));
}

/** The folders between the root and a path, the outermost first. */
function foldersAbove(path: string, root: string): readonly string[] {
  const folder = dirname(path);
  return folder === root ? [] : [...foldersAbove(folder, root), folder];
}

function factsOf(path: string): BigIntStats {
  const found = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (found !== undefined) return found;
  mkdirSync(path);
  return lstatSync(path, { bigint: true });
}

function leadsInto(file: string, root: string): boolean {
  const named = /^gitdir: (.+)/.exec(readFileSync(file, "utf8"))?.[1];
  if (named === undefined) return false;
  const target = resolve(root, named);
  const real = existsSync(target) ? realpathSync(target) : target;
  return [target, real].some((path) => path === root || path.startsWith(root + sep));
}
