// `mountsOf`: the mounts over the folder of a sandbox, in the order in which they can be made.
//
//   - An outer mount comes before those below it, which it would cover otherwise. For one path the strictest
//     counts.
//   - Nothing is mounted below a hidden folder. A place below a read-only folder is read-only as well.
//   - Every folder above a place is mounted over itself, so that no command can move it away with the place
//     in it.

import { dirname, sep } from "node:path";

import type { GuardedPlaces } from "../../workspace/guarded-places.ts";
import type { MaskedPlaces } from "./masked-places.ts";
import type { NestedPlaces } from "./nested-places.ts";

/** From the strictest on. */
const KINDS = ["hidden folder", "hidden file", "read-only", "writable"] as const;

export interface Mount {
  readonly path: string;
  readonly kind: (typeof KINDS)[number];
}

/** @param root without symbolic links; it is a mount only where it is read-only. */
export function mountsOf(
  root: string,
  { git, own, granting, above }: GuardedPlaces,
  nested: NestedPlaces,
  masked: MaskedPlaces,
): readonly Mount[] {
  const kinds = new Map<string, Mount["kind"]>();
  const add = (kind: Mount["kind"], paths: readonly string[]): void => {
    for (const path of paths) {
      const known = kinds.get(path);
      if (known === undefined || KINDS.indexOf(kind) < KINDS.indexOf(known)) kinds.set(path, kind);
    }
  };
  add("hidden folder", [own, ...nested.hiddenFolders, ...masked.hiddenFolders]);
  add("hidden file", [...nested.hiddenFiles, ...masked.hiddenFiles]);
  add("read-only", [git, ...granting, ...nested.guarded, ...masked.readOnly]);
  const ofMask = [masked.hiddenFolders, masked.hiddenFiles, masked.readOnly].flat();
  add("writable", [...above, ...ofMask.flatMap((path) => foldersAbove(path, root))]);
  const isBelow = (path: string, kind: Mount["kind"]): boolean =>
    [root, ...foldersAbove(path, root)].some((folder) => folder !== path && kinds.get(folder) === kind);
  return [...kinds]
    .filter(([path]) => !isBelow(path, "hidden folder"))
    .map(([path, kind]): Mount => {
      const isKept = kind === "writable" && isBelow(path, "read-only");
      return { path, kind: isKept ? "read-only" : kind };
    })
    .toSorted((a, b) => a.path.length - b.path.length);
}

function foldersAbove(path: string, root: string): readonly string[] {
  const folder = dirname(path);
  return folder === root || !folder.startsWith(root + sep) ? [] : [...foldersAbove(folder, root), folder];
}
