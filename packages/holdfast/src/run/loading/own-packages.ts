// `resolveOurselves`: a file that lies in no project with Holdfast installed still finds `holdfast`, which is
// this installation.
//
//   own-packages-1. A process has one such hook. Each further one would double the searches for a package
//       that is not there.

import { realpathSync } from "node:fs";
import { createRequire, registerHooks } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

const require = createRequire(import.meta.url);
let resolvesOurselves = false;

/** own-packages-1. */
export function resolveOurselves(): void {
  if (resolvesOurselves) return;
  resolvesOurselves = true;
  let isSearching = false;
  registerHooks({
    resolve(specifier, context, next) {
      if (!/^(holdfast|@holdfast\/[\w-]+)(\/|$)/.test(specifier)) return next(specifier, context);
      try {
        return unlinked(next(specifier, context));
      } catch (error) {
        if (isSearching) throw error; // `require.resolve` asks this hook as well.
        isSearching = true;
        try {
          // A `require` is resolved from the module that calls it, whatever the parent that a hook gives.
          const url = pathToFileURL(require.resolve(specifier)).href;
          return unlinked({ url, shortCircuit: true });
        } catch (thrown) {
          // Its text and its stack name this source, and the import is in the file of the user.
          const missing = thrown as Error;
          missing.message = missing.message.replace(/ imported from .+$/, "");
          throw Object.assign(missing, { stack: String(missing) });
        } finally {
          isSearching = false;
        }
      }
    },
  });
}

/**
 * In a checkout our packages are links, and Node 22 now and then tells a hook the link's path: types are not
 * stripped below node_modules.
 */
function unlinked<T extends { readonly url: string }>(resolved: T): T {
  if (!resolved.url.startsWith("file:")) return resolved;
  return { ...resolved, url: pathToFileURL(realpathSync(fileURLToPath(resolved.url))).href };
}
