// `guardPlaces`: makes sure that `.git` and `.holdfast` of a folder are places that a mount can guard, before each command.
//
//   guarded-places-1. A place that is not there cannot be guarded, and a command could make it. It becomes an empty folder, which git ignores.
//   guarded-places-2. A mount follows a link, on this machine and in the sandbox. A command is refused where one of the places is a link, or where
//       the folder itself has become one. It is also refused where the file `.git` leads back into the folder.

import { existsSync, lstatSync, mkdirSync, readFileSync, realpathSync, type BigIntStats } from "node:fs";
import { join, resolve, sep } from "node:path";

import { OWN_FOLDER } from "./contained-directory.ts";
import type { Execution, Launch } from "./execute.ts";

export interface GuardedPlaces {
  readonly git: string;
  readonly own: string;
  /** Differs when another `.git` or `.holdfast` has taken the place. */
  readonly identity: string;
}

/** @returns the reason for which no command may run in the folder (guarded-places-2). */
export function guardPlaces(root: string): GuardedPlaces | string {
  const [git, own] = [join(root, ".git"), join(root, OWN_FOLDER)];
  try {
    if (realpathSync(root) !== root) return `${root} has become a link; expected the folder that was opened`;
    const found = [factsOf(git), factsOf(own)];
    for (const [at, place] of [git, own].entries())
      if (found[at]?.isSymbolicLink() === true)
        return `${place} is a link, which a sandbox cannot guard; put a folder in its place, or the file "gitdir: FOLDER" for a repository elsewhere`;
    if (found[0]?.isFile() === true && leadsInto(git, root))
      return `the file ${git} leads into the folder itself, where a command could change the repository; move the repository out of the folder`;
    return { git, own, identity: found.map((facts) => `${facts?.ino}:${facts?.birthtimeNs}`).join(" ") };
  } catch (error) {
    return `${git} cannot be guarded: ${(error as Error).message}`;
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

/** guarded-places-1. */
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
