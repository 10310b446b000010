// `readInstructions`: the text of the `AGENTS.md` files that hold for a folder. `findNestedInstructions`:
// those below it.
//
//   - The files from the root down to the folder hold, and a nearer file goes before one that is further
//     away. It stands last in the text, and the furthest files are left out first when the text would be too
//     long.
//   - A file outside the root is not read, also not through a link.
//   - The search below a folder is bounded, and follows no link.

import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { realPath, requireInside } from "../places/agent-places.ts";
import { FileProblem, readText } from "../format/front-matter.ts";

export interface Instructions {
  /** Empty when there is no file. */
  readonly text: string;
  /** The files of the text, the nearest last. */
  readonly files: readonly string[];
  /** The files that were left out, each with the reason. */
  readonly leftOut: readonly { readonly path: string; readonly reason: string }[];
}

export const INSTRUCTIONS_FILE = "AGENTS.md";
const UNTRUSTED = "you have not trusted this project: read the file, and then run `holdfast agents trust`";
/** The longest text in UTF-16 code units. */
const INSTRUCTIONS_CHARS_MAX = 64 * 1024;
/** The most folders that are looked into below a folder, the deepest of them, and the most files that are named. */
const NESTED_MAX = { folders: 2_000, depth: 6, files: 50 } as const;
/** Folders of other people's code. */
const SKIPPED_FOLDERS: ReadonlySet<string> = new Set(["node_modules", "vendor", "target", "dist", "build"]);

/**
 * The instructions for work in a folder.
 *
 * @param folder the folder, such as a workspace.
 * @param root the uppermost folder that is looked into, by default the root of the git repository of the
 *   folder, or the folder itself.
 * @param isTrusted whether the user has trusted the folder of a file.
 */
export function readInstructions(
  folder: string,
  root: string = rootOf(folder),
  isTrusted: (path: string) => boolean = () => true,
): Instructions {
  const leftOut: { path: string; reason: string }[] = [];
  const parts: { path: string; text: string }[] = [];
  let chars = 0;
  for (const path of candidates(resolve(folder), resolve(root))) {
    try {
      requireInside(path, realPath(root));
      const text = readText(path).trim();
      if (text === "") continue;
      if (!isTrusted(path)) throw new FileProblem(UNTRUSTED, "");
      const part = `Instructions of ${relative(root, path)}:\n\n${text}`;
      if (chars + part.length > INSTRUCTIONS_CHARS_MAX)
        throw new FileProblem(`the text would be longer than ${INSTRUCTIONS_CHARS_MAX} characters`, "");
      chars += part.length;
      parts.unshift({ path, text: part });
    } catch (error) {
      if (!(error instanceof FileProblem)) throw error;
      leftOut.push({ path, reason: error.message });
    }
  }
  return { text: parts.map(({ text }) => text).join("\n\n"), files: parts.map(({ path }) => path), leftOut };
}

/** The files that there are, the nearest first. */
function candidates(folder: string, root: string): readonly string[] {
  const folders: string[] = [];
  for (let at = folder; ; at = dirname(at)) {
    folders.push(at);
    if (at === root || at === dirname(at)) break;
  }
  return folders.map((at) => join(at, INSTRUCTIONS_FILE)).filter((path) => existsSync(path));
}

/** The paths of the files in folders below this one, from it. The nearest come first. */
export function findNestedInstructions(folder: string): readonly string[] {
  const found: string[] = [];
  let ahead: readonly string[] = foldersIn(folder);
  let looked = 0;
  for (let depth = 1; depth <= NESTED_MAX.depth && ahead.length > 0; depth++) {
    const here = ahead.slice(0, NESTED_MAX.folders - looked);
    looked += here.length;
    for (const at of here) {
      const path = join(at, INSTRUCTIONS_FILE);
      if (existsSync(path)) found.push(relative(folder, path));
      if (found.length === NESTED_MAX.files) return found;
    }
    ahead = here.flatMap(foldersIn);
  }
  return found;
}

function foldersIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter(
        (entry) => entry.isDirectory() && !entry.name.startsWith(".") && !SKIPPED_FOLDERS.has(entry.name),
      )
      .map(({ name }) => join(folder, name))
      .toSorted();
  } catch {
    return [];
  }
}

/** A sandbox leaves an empty folder in this place, which git ignores, too. */
function isRepository(git: string): boolean {
  const found = statSync(git, { throwIfNoEntry: false });
  return found !== undefined && (found.isFile() || existsSync(join(git, "HEAD")));
}

function rootOf(folder: string): string {
  const start = resolve(folder);
  for (let at = start; ; at = dirname(at)) {
    if (isRepository(join(at, ".git"))) return at;
    if (at === dirname(at)) return start;
  }
}
