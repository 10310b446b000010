// `programOnPath` finds a program on a PATH, and `executableAt` at a path, without running it.

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

/** @returns its absolute path. */
export function programOnPath(name: string, path: string): string | undefined {
  return path
    .split(delimiter)
    .filter((folder) => isAbsolute(folder)) // A relative entry would run what the project contains.
    .map((folder) => executableAt(join(folder, name)))
    .find((file) => file !== undefined);
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
