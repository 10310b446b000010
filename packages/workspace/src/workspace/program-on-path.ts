// `programOnPath` finds a program on a PATH, and `executableAt` at a path, without running it.

import { accessSync, constants, existsSync, realpathSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join, sep } from "node:path";

/** @returns its absolute path. */
export function programOnPath(name: string, path: string): string | undefined {
  return path
    .split(delimiter)
    .filter((folder) => isAbsolute(folder)) // A relative entry would run what the project contains.
    .map((folder) => executableAt(join(folder, name)))
    .find((file) => file !== undefined);
}

/**
 * The entries of a PATH that lie outside of a folder. `npm` and `npx` put `node_modules/.bin` of a project
 * first, where an agent can put a program with any name.
 */
export function pathOutside(path: string, folder: string): string {
  return path
    .split(delimiter)
    .filter((entry) => {
      const real = existsSync(entry) ? realpathSync(entry) : entry;
      return isAbsolute(entry) && real !== folder && !real.startsWith(folder + sep);
    })
    .join(delimiter);
}

/** @returns the path, if a program is there. */
export function executableAt(path: string): string | undefined {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile() ? path : undefined;
  } catch {
    return undefined; // It is not there.
  }
}
