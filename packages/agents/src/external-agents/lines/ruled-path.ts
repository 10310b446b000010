// The subject of a permission rule for a file (`ruledPath`). Pure.

import { isAbsolute, relative } from "node:path";

/** Rules name files of the folder by their path from it, and others by their whole path. */
export function ruledPath(path: string, folder: string): string {
  const inside = isAbsolute(path) ? relative(folder, path) : path;
  return inside === "" || inside.startsWith("..") ? path : inside;
}
