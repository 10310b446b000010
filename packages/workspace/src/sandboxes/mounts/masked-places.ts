// `findMasked`: what a sandbox of mounts does with a mask of paths, before each command.
//
//   - A file or folder that is kept from reading is hidden where it is there. A file that comes later is
//     hidden before the next command.
//   - No mount keeps one name from a folder, so the folder before the first sign of globs is read-only as a
//     whole. For `infra/**` it is `infra`, and for `**/*.lock` it is the root. A path without such signs is
//     read-only itself.
//   - A path that is not there cannot be mounted. A command may make it, and it is renamed after the command
//     (`nested-places.ts`).
//   - A link leads a mount to its target. The target is hidden or read-only if it lies in the root, and the
//     folder of the link is read-only.
//   - A command is refused where there are too many folders or places to look at.

import { existsSync, lstatSync, readdirSync, realpathSync, type Dirent } from "node:fs";
import { dirname, join, relative, sep } from "node:path";

import { OWN_FOLDER } from "../../workspace/contained-directory.ts";
import { GLOB_SIGNS } from "../../workspace/paths/path-globs.ts";
import { insideOf, maskFilter, type PathMask } from "../../workspace/paths/path-mask.ts";

export interface MaskedPlaces {
  readonly hiddenFolders: readonly string[];
  readonly hiddenFiles: readonly string[];
  /** Files and folders, outer ones first. */
  readonly readOnly: readonly string[];
  readonly absent: readonly string[];
}

export const NO_MASK: MaskedPlaces = { hiddenFolders: [], hiddenFiles: [], readOnly: [], absent: [] };

const FOLDERS_MAX = 50_000;
/** The arguments of a program have a limit. */
const PLACES_MAX = 2_000;

/** @param root without symbolic links. @returns the reason for which no command may run. */
export function findMasked(root: string, mask: PathMask | undefined): MaskedPlaces | string {
  if (mask === undefined) return NO_MASK;
  const hidden = hiddenIn(root, mask);
  if (typeof hidden === "string") return hidden;
  const found = [...insideOf(mask.unwritable).map((glob) => writtenPlace(root, glob)), ...hidden.links];
  const readOnly = found.flatMap((place) => place.readOnly);
  return {
    hiddenFolders: hidden.folders,
    hiddenFiles: hidden.files,
    readOnly: [...new Set(readOnly)].toSorted((a, b) => a.length - b.length),
    absent: found.flatMap((place) => place.absent),
  };
}

interface Hidden {
  readonly folders: readonly string[];
  readonly files: readonly string[];
  readonly links: readonly Written[];
}

function hiddenIn(root: string, mask: PathMask): Hidden | string {
  const [folders, files, links]: [Set<string>, Set<string>, Written[]] = [new Set(), new Set(), []];
  if (mask.unreadable.length === 0) return { folders: [], files: [], links };
  const { isUnreadable } = maskFilter(mask);
  const hide = (path: string): void => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found !== undefined) (found.isDirectory() ? folders : files).add(path);
  };
  const queue = [root];
  for (let count = 0; queue.length > 0; count++) {
    if (count > FOLDERS_MAX) return tooMany(`${FOLDERS_MAX} folders`);
    const folder = queue.pop() ?? root;
    for (const entry of entriesOf(folder)) {
      const path = join(folder, entry.name);
      if (path === join(root, OWN_FOLDER)) continue; // It is hidden anyway.
      if (!isUnreadable(relative(root, path).split(sep).join("/"))) {
        if (entry.isDirectory()) queue.push(path);
      } else if (entry.isSymbolicLink()) {
        // A link leads a mount to its target, so the folder of the link is read-only.
        links.push({ readOnly: [dirname(path)], absent: [] });
        const target = targetIn(root, path);
        if (target !== undefined) hide(target);
      } else hide(path);
    }
  }
  return folders.size + files.size > PLACES_MAX
    ? tooMany(`${PLACES_MAX} files that a rule denies`)
    : { folders: [...folders], files: [...files], links };
}

function tooMany(what: string): string {
  return `the folder has more than ${what}, so the files that rules of the agent deny cannot be hidden; begin in a folder below, or write rules for fewer files`;
}

interface Written {
  readonly readOnly: readonly string[];
  readonly absent: readonly string[];
}

function writtenPlace(root: string, glob: string): Written {
  const steps = glob.split("/");
  const signs = steps.findIndex((step) => GLOB_SIGNS.test(step));
  const path = join(root, ...(signs < 0 ? steps : steps.slice(0, signs)));
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return { readOnly: [], absent: [path] };
  const real = realpathSync.native(path);
  if (real === path) return { readOnly: [path], absent: [] };
  const target = targetIn(root, path);
  return { readOnly: [dirname(path), ...(target === undefined ? [] : [target])], absent: [] };
}

/** The place that a link leads to, if it lies in the root. */
function targetIn(root: string, path: string): string | undefined {
  if (!existsSync(path)) return undefined;
  const real = realpathSync(path);
  return real === root || real.startsWith(root + sep) ? real : undefined;
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // It is gone, or nobody may read it.
  }
}
