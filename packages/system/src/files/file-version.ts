// `requireFileVersion`: the version of a JSON file of ours, before anything else in it is looked at.

import { HoldfastError } from "@holdfast/core";

/** The version of the JSON files that this program reads and writes. */
const FILE_VERSION = 1;

/**
 * A file without a number as its version is of version 1.
 *
 * @param value the content of the file.
 * @param what "trusted folders": completes "the file of …".
 * @throws HoldfastError `version_unsupported`
 */
export function requireFileVersion(value: unknown, what: string, at: string): void {
  const { version } = (value ?? {}) as { readonly version?: unknown };
  if (typeof version !== "number" || version === FILE_VERSION) return;
  throw new HoldfastError("version_unsupported", `the file of ${what} has version ${version}`, {
    at,
    got: `version ${version}`,
    expected: `version ${FILE_VERSION}`,
    fix: "use the Holdfast that wrote it, or move the file away; it was left as it is",
  });
}
