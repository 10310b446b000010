// `findNested`: what a sandbox of mounts keeps from a command below its folder. A folder below may be a
// project of its own, and may hold a database.
//
//   - `.git` and the places that give rights are read-only below any folder, and `.holdfast`, databases of
//     Holdfast and the user's data folder are hidden. The search leaves out `node_modules`, and ends after
//     `FOLDERS_MAX` folders.
//   - A mount guards what is there. `withoutNewPlaces` renames what a command has made, after the command, so
//     that no program reads it. leaky: what reads the place while the command runs.

import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  type Dirent,
} from "node:fs";
import { join, relative, sep } from "node:path";

import type { MaskedPlaces } from "./masked-places.ts";
import { PROTECTED_PLACES, placeIn } from "../../granting-places.ts";
import { OWN_FOLDER } from "../../workspace/contained-directory.ts";
import type { Execution } from "../../workspace/execute.ts";
import { hostEnvironment } from "../../workspace/host-environment.ts";

export interface NestedPlaces {
  /** Files and folders that are read-only. */
  readonly guarded: readonly string[];
  /** Folders that are empty inside. */
  readonly hiddenFolders: readonly string[];
  readonly hiddenFiles: readonly string[];
}

const FOLDERS_MAX = 50_000;
const PLACES = [...PROTECTED_PLACES, OWN_FOLDER];
/** Names that a place may end with, to look at few paths. */
const LAST_NAMES = new Set(PLACES.map((place) => place.toLowerCase().split("/").at(-1)));
const MADE = ".made-in-a-sandbox";

/** @param root without symbolic links. The places of the root itself are left out: `guardPlaces` has them. */
export function findNested(root: string): NestedPlaces {
  const { places, databases } = search(root);
  const below = places.filter((path) => !isOfRoot(root, path));
  const folders = below.filter(
    (path) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === false,
  );
  const data = dataFolder();
  return {
    guarded: folders.filter((path) => !isOwn(path)),
    hiddenFolders: [
      ...folders.filter(isOwn),
      ...(data.startsWith(`${root}${sep}`) && existsSync(data) ? [data] : []),
    ],
    hiddenFiles: databases,
  };
}

/** The error output of the command names each place that was renamed. */
export async function withoutNewPlaces(
  root: string,
  { absent }: Pick<MaskedPlaces, "absent">,
  run: () => Promise<Execution>,
): Promise<Execution> {
  const known = new Set(search(root).places.map(identityOf));
  const execution = await run();
  const made = search(root).places.filter((path) => !known.has(identityOf(path)));
  const lines = [
    ...made.map((path) => quarantine(root, path, "a command in a sandbox makes no place that gives rights")),
    ...absent
      .filter((path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined)
      .map((path) => quarantine(root, path, "a rule of the agent denies it")),
  ].map((line) => `holdfast: ${line}\n`);
  return lines.length === 0 ? execution : { ...execution, stderr: `${execution.stderr}${lines.join("")}` };
}

/** Renames a place. @returns a line about it. */
function quarantine(root: string, path: string, why: string): string {
  const shown = relative(root, path);
  try {
    const free = [MADE, ...Array.from({ length: 100 }, (_, n) => `${MADE}-${n}`)].find(
      (ending) => !existsSync(`${path}${ending}`),
    );
    renameSync(path, `${path}${free}`);
    return `${shown} was renamed to ${shown}${free}: ${why}`;
  } catch (error) {
    return `${shown} could not be renamed, and ${why}: ${(error as Error).message}`;
  }
}

function search(root: string): { readonly places: readonly string[]; readonly databases: readonly string[] } {
  const [places, databases]: [string[], string[]] = [[], []];
  const queue = [root];
  for (let count = 0; queue.length > 0 && count < FOLDERS_MAX; count++) {
    const folder = queue.pop() ?? root;
    const entries = entriesOf(folder);
    databases.push(...databasesIn(folder, entries));
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (isPlace(root, path)) places.push(path);
      else if (entry.isDirectory() && entry.name !== "node_modules") queue.push(path);
    }
  }
  return { places, databases };
}

function isPlace(root: string, path: string): boolean {
  const names = relative(root, path).split(sep);
  return LAST_NAMES.has(names.at(-1)?.toLowerCase()) && placeIn(names, PLACES) !== undefined;
}

/** Whether `guardPlaces` has mounted it: a place of the root, or the folder of one with `*`. */
function isOfRoot(root: string, path: string): boolean {
  const names = relative(root, path).toLowerCase().split(sep);
  return PLACES.some((place) => {
    const steps = place.toLowerCase().split("/");
    return steps.length === names.length && steps.every((step, at) => step === "*" || step === names[at]);
  });
}

function isOwn(path: string): boolean {
  return path.toLowerCase().endsWith(`${sep}${OWN_FOLDER}`);
}

function identityOf(path: string): string {
  const { dev, ino } = lstatSync(path);
  return `${dev}:${ino}`;
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // It is gone, or nobody may read it.
  }
}

/** Databases of Holdfast, with everything that lies beside them under their name. */
function databasesIn(folder: string, entries: readonly Dirent[]): readonly string[] {
  const names = entries.map(({ name }) => name);
  const bases = names.filter((name) => {
    const isLikely =
      /\.(db|sqlite3?)$/i.test(name) || names.includes(`${name}-lock`) || names.includes(`${name}-owner`);
    return isLikely && isDatabase(join(folder, name));
  });
  return bases.flatMap((base) =>
    entries
      .filter(
        ({ name }) =>
          name === base || /^-(wal|shm|lock|owner|socket|suspects)$/.test(name.slice(base.length)),
      )
      .filter((entry) => entry.name.startsWith(base) && !entry.isDirectory() && !entry.isSymbolicLink())
      .map(({ name }) => join(folder, name)),
  );
}

/** The number by which SQLite knows files of Holdfast: at byte 68 of the header. */
const APPLICATION = Buffer.from("Hold");
const HEADER_BYTES = 72;

function isDatabase(path: string): boolean {
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() !== true) return false;
  try {
    const file = openSync(path, "r");
    try {
      const header = Buffer.alloc(HEADER_BYTES);
      readSync(file, header, 0, HEADER_BYTES, 0);
      return header.subarray(68, 72).equals(APPLICATION);
    } finally {
      closeSync(file);
    }
  } catch {
    return false; // Nobody may read it, and no command can either.
  }
}

/** The data folder of this user, where secrets and trust are. */
function dataFolder(): string {
  const { HOME = "/", XDG_DATA_HOME = join(HOME, ".local/share") } = hostEnvironment;
  return join(XDG_DATA_HOME, "holdfast");
}
