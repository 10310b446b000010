// The subjects of a permission rule for a file: its path as it was given (`ruledPath`), and the place that it
// leads to (`followLinks`).

import { readlink } from "node:fs/promises";
import { isAbsolute, join, relative } from "node:path";

/** Rules name files of the folder by their path from it, and others by their whole path. Pure. */
export function ruledPath(path: string, folder: string): string {
  const inside = isAbsolute(path) ? relative(folder, path) : path;
  if (inside === "") return ".";
  return inside.startsWith("..") ? path : inside;
}

const LINKS_MAX = 40;

/**
 * The place of a file without symbolic links, in the form of `ruledPath`. Names that do not exist stay as
 * they are.
 *
 * Leaky: a link that is made after this look is not seen.
 *
 * @returns `null` for a path through too many links.
 */
export async function followLinks(path: string, folder: string): Promise<string | null> {
  const root = await realPlace(folder);
  const place = await realPlace(isAbsolute(path) ? path : `${folder}/${path}`);
  return root === null || place === null ? null : ruledPath(place, root);
}

/** No name is left out before its link is read: `link/..` is the folder above the link's target. */
async function realPlace(path: string): Promise<string | null> {
  const ahead = path.split("/");
  let names: string[] = [];
  let links = 0;
  for (let name = ahead.shift(); name !== undefined; name = ahead.shift()) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      names.pop();
      continue;
    }
    const target = await readlink(join("/", ...names, name)).catch(() => undefined);
    if (target === undefined) {
      names.push(name);
      continue;
    }
    links += 1;
    if (links > LINKS_MAX) return null;
    if (isAbsolute(target)) names = [];
    ahead.unshift(...target.split("/"));
  }
  return `/${names.join("/")}`;
}
