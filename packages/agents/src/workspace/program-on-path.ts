// `programOnPath` finds a program on a PATH, without running it.

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

/** @returns its absolute path. */
export function programOnPath(name: string, path: string): string | undefined {
  for (const folder of path.split(delimiter)) {
    if (!isAbsolute(folder)) continue; // A relative entry would run what the project contains.
    const file = join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile()) return file;
    } catch {
      // It is not there.
    }
  }
  return undefined;
}
