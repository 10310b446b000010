// `packageVersion`: the version of an installed package that Holdfast can do without, such as an exporter of
// traces.
//
// The manifests accept any version of such packages: npm would refuse a whole installation for one that is
// never used. The code that uses one refuses an old one by its version.

import { readFileSync } from "node:fs";
import { findPackageJSON } from "node:module";

/** @param from the `import.meta.url` of the module that uses the package. `undefined` when it cannot be read. */
export function packageVersion(name: string, from: string): string | undefined {
  try {
    const path = findPackageJSON(name, from);
    if (path === undefined) return undefined;
    const { version } = JSON.parse(readFileSync(path, "utf8")) as { readonly version?: unknown };
    return typeof version === "string" ? version : undefined;
  } catch {
    return undefined; // Its import says why.
  }
}

/**
 * Whether a version is below another one. A part that is no number counts as 0, and a version that is not
 * known is not old.
 */
export function isOlder(found: string | undefined, least: string): boolean {
  if (found === undefined) return false;
  const [ours, theirs] = [found, least].map((version) =>
    version.split(/[.-]/, 3).map((part) => Number(part) || 0),
  );
  for (const [i, part] of theirs!.entries()) {
    const own = ours![i] ?? 0;
    if (own !== part) return own < part;
  }
  return false;
}
