// `requireOutside`: where the files of an allowed executor may lie. A name in the policy would be worth
// little if an agent could write the program that has this name.
//
//   - The program of an executor and each file among its arguments lie outside of the folders in which
//     sessions work. Each link on the way to them does as well. The rule holds when the policy has names.
//   - The check comes before each start. Nothing that can be written in those folders changes what is started
//     after the check: the program is started by its absolute path.
//   - Programs that the executor starts by their names are not found in those folders.
//
// Leaky: a program may read other files of those folders while it runs. An agent that writes outside of the
// folder of its session is not noticed either.

import { existsSync, readlinkSync, statSync } from "node:fs";
import { delimiter, isAbsolute, parse, resolve, sep } from "node:path";

import { denied, isWithin, realPath } from "./runner-policy.ts";

/** The program and arguments of an executor. */
type Command = readonly [string, ...string[]];

/** As Linux allows in one path. A path with more links cannot be opened. */
const LINKS_MAX = 40;

/**
 * Checks the files of an executor.
 *
 * @param folders absolute paths; arguments are relative to the last one.
 * @param path the `PATH`, by which a program without a slash is found.
 * @returns the command with the absolute path of its program.
 * @throws HoldfastError `policy_denied`.
 */
export function requireOutside(
  name: string,
  [program, ...args]: Command,
  folders: readonly string[],
  path: string,
): Command {
  const cwd = folders.at(-1)!;
  // Not `resolve`: the system does not leave out a link before "..".
  const from = (file: string): string => (isAbsolute(file) ? file : `${cwd}${sep}${file}`);
  const found = program.includes("/") ? from(program) : findOnPath(program, pathOutside(path, folders));
  const files = args.filter((arg) => isAbsolute(arg) || existsSync(from(arg))).map(from);
  for (const file of [found, ...files]) {
    const inside = folders.find((folder) => isAbsolute(file) && isReachedIn(file, folder));
    if (inside === undefined) continue;
    throw denied(
      `the policy allows the executor ${name} only from outside of the folders in which sessions work`,
      {
        got: file,
        expected: `a file that is not in ${inside}, such as one in executors/${name} beside the policy`,
      },
    );
  }
  return [found, ...args];
}

/** The `PATH` without the folders in which sessions work. */
export function pathOutside(path: string, folders: readonly string[]): string {
  return path
    .split(delimiter)
    .filter((place) => isAbsolute(place) && !folders.some((folder) => isReachedIn(place, folder)))
    .join(delimiter);
}

/** The program itself where it is not found: starting it fails then. */
function findOnPath(program: string, path: string): string {
  const candidates = path.split(delimiter).map((folder) => resolve(folder, program));
  return candidates.find((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true) ?? program;
}

/** Whether an absolute path, or a link on the way to it, lies in the folder. */
export function isReachedIn(path: string, folder: string): boolean {
  const real = realPath(folder) ?? folder;
  return placesOf(path).some((place) => isWithin(place, real));
}

/** The place of each part of an absolute path, and of each part of the links in it. */
function placesOf(path: string): readonly string[] {
  const places: string[] = [];
  let at = parse(path).root;
  const parts = path.slice(at.length).split(sep);
  for (let links = 0; parts.length > 0 && links < LINKS_MAX;) {
    const next = resolve(at, parts.shift()!);
    const target = linkAt(next);
    places.push(next);
    if (target === undefined) {
      at = next;
      continue;
    }
    links++;
    if (isAbsolute(target)) at = parse(target).root;
    // mutant: executor-link-unfollowed
    parts.unshift(...target.split(sep).filter((part) => part !== ""));
  }
  return places;
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined; // It is no link, or nothing is there.
  }
}
