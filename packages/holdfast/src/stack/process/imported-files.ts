// `watchImports`: notes which files of the user the process has imported, so that a supervisor can watch
// them.

import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";

/** @returns a function that gives the absolute paths of the files imported since, without those of packages. */
export function watchImports(): () => readonly string[] {
  const files = new Set<string>();
  registerHooks({
    load(url, context, next) {
      if (url.startsWith("file:")) files.add(fileURLToPath(url));
      return next(url, context);
    },
  });
  return () => [...files].filter((file) => !file.includes("/node_modules/"));
}
