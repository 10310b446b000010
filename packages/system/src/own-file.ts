// `ownFile`: a file of ours that is found by its address, as the scripts of threads are.

import { existsSync } from "node:fs";
import { UsageError } from "@holdfast/core";

/**
 * The address of a module that stands beside the code that needs it. A bundle has the code and not the file.
 * Bundlers must not take the address for that of an asset, whose own imports they would not follow.
 *
 * @param needs names what needs the file, for the error.
 * @param name the module, such as `./task-worker`.
 * @param from the `import.meta.url` of the code; `undefined` in a bundle of CommonJS.
 * @throws UsageError where there is no such file.
 */
export function ownFile(needs: string, name: string, from: string | undefined): URL {
  const url = from === undefined ? undefined : new URL(`${name}.${from.endsWith(".ts") ? "ts" : "js"}`, from);
  if (url !== undefined && existsSync(url)) return url;
  throw new UsageError(`${needs} cannot work in this bundle: a file of Holdfast is not beside it`, {
    ...(url === undefined ? {} : { got: url.pathname }),
    expected: "Holdfast as it is installed, below node_modules",
    fix: "leave `holdfast` out of the bundle, as an external package: docs/frameworks.md says how",
  });
}
