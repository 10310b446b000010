// `readFolderContent`: the files of the folder of a skill or a script, and the hash that names this content.
//
//   - The hash covers the path, the bytes and the executable bit of every file that is not left out
//     (`LEFT_OUT`), and nothing else. It is the version.
//   - A folder with a link or a file that is no regular file is refused. A name that another operating system
//     does not allow is refused, too, and so are two paths that differ only in case.
//   - Number, size and depth of the files are limited.

import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, type Dirent } from "node:fs";
import { join } from "node:path";
import { contentText, isPortableName, MIB } from "@holdfast/core";
import { FileProblem } from "../format/front-matter.ts";

export interface ContentFile {
  /** From the folder, with `/`. */
  readonly path: string;
  readonly bytes: Buffer;
  readonly isExecutable: boolean;
}

export interface FolderContent {
  /** SHA-256 in hexadecimal. */
  readonly hash: string;
  /** In the order of their paths. */
  readonly files: readonly ContentFile[];
}

export const CONTENT_LIMITS = {
  files: 1_000,
  fileBytes: 5 * MIB,
  bytes: 20 * MIB,
  depth: 16,
} as const;

/** Folders and files that tools leave behind. They are no part of a content. */
const LEFT_OUT: ReadonlySet<string> = new Set([".git", ".DS_Store", "node_modules", "__pycache__"]);

/**
 * @param refusesHardLinks a file with another name elsewhere is refused: it may be a secret, and can change
 *   through that name. @throws FileProblem
 */
export function readFolderContent(folder: string, { refusesHardLinks = false } = {}): FolderContent {
  const files = filesBelow(folder, "", 1, { files: 0, bytes: 0, refusesHardLinks }).toSorted((a, b) =>
    a.path < b.path ? -1 : 1,
  );
  refuseCollisions(files);
  return { hash: hashOf(files), files };
}

function hashOf(files: readonly ContentFile[]): string {
  const hashed = files.map(({ path, bytes, isExecutable }) => ({
    path,
    sha256: createHash("sha256").update(bytes).digest("hex"),
    isExecutable,
  }));
  return createHash("sha256").update(contentText(hashed)).digest("hex");
}

/** @param total counted over the whole folder. */
function filesBelow(
  folder: string,
  above: string,
  depth: number,
  total: { files: number; bytes: number; readonly refusesHardLinks: boolean },
): readonly ContentFile[] {
  if (depth > CONTENT_LIMITS.depth)
    throw tooMuch(`${above} is more than ${CONTENT_LIMITS.depth} folders deep`);
  return entriesOf(folder).flatMap((entry) => {
    const path = `${above}${entry.name}`;
    refuseName(entry.name, path);
    if (entry.isDirectory()) return filesBelow(join(folder, entry.name), `${path}/`, depth + 1, total);
    if (entry.isSymbolicLink())
      throw new FileProblem(`${path} is a link`, "put the file itself into the folder");
    if (!entry.isFile()) throw new FileProblem(`${path} is no file`, "remove it from the folder");
    const file = readContentFile(join(folder, entry.name), path, total.refusesHardLinks);
    total.files++;
    total.bytes += file.bytes.length;
    if (total.files > CONTENT_LIMITS.files) throw tooMuch(`it has more than ${CONTENT_LIMITS.files} files`);
    if (total.bytes > CONTENT_LIMITS.bytes)
      throw tooMuch(`its files have more than ${CONTENT_LIMITS.bytes} bytes`);
    return [file];
  });
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).filter(({ name }) => !LEFT_OUT.has(name));
  } catch (error) {
    throw unreadable(error);
  }
}

function readContentFile(at: string, path: string, refusesHardLinks: boolean): ContentFile {
  let file: number;
  try {
    // A link or a pipe that took the place of the file is not opened, or does not block.
    file = openSync(at, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    throw unreadable(error);
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new FileProblem(`${path} is no file`, "remove it from the folder");
    if (refusesHardLinks && stats.nlink > 1)
      throw new FileProblem(
        `${path} is a hard link: the same file has another name elsewhere`,
        `put a copy in its place (\`cp ${path} copy && mv copy ${path}\` in the folder)`,
      );
    if (stats.size > CONTENT_LIMITS.fileBytes)
      throw tooMuch(
        `${path} has ${stats.size} bytes, and ${CONTENT_LIMITS.fileBytes} is the limit of a file`,
      );
    return { path, bytes: readFileSync(file), isExecutable: (stats.mode & 0o100) !== 0 };
  } finally {
    closeSync(file);
  }
}

function refuseName(name: string, path: string): void {
  if (isPortableName(name)) return;
  throw new FileProblem(
    `${JSON.stringify(path)} is a name that not every system can write`,
    "give the file another name",
  );
}

function refuseCollisions(files: readonly ContentFile[]): void {
  const seen = new Map<string, string>();
  for (const { path } of files) {
    const key = path.normalize("NFC").toLowerCase();
    const other = seen.get(key);
    if (other !== undefined)
      throw new FileProblem(`${other} and ${path} are one file on other systems`, "rename one of them");
    seen.set(key, path);
  }
}

function tooMuch(message: string): FileProblem {
  return new FileProblem(message, "move what is large out of the folder");
}

function unreadable(error: unknown): FileProblem {
  return new FileProblem(`it cannot be read: ${(error as Error).message}`, "check its permissions");
}

interface ChangedFile {
  readonly path: string;
  readonly change: "new" | "changed" | "gone";
}

/** The files in which two contents of a skill or a script differ. */
export function compareContents(before: FolderContent, after: FolderContent): readonly ChangedFile[] {
  const old = new Map(before.files.map((file) => [file.path, file]));
  const changed = after.files.flatMap((file): ChangedFile[] => {
    const known = old.get(file.path);
    old.delete(file.path);
    if (known === undefined) return [{ path: file.path, change: "new" }];
    return isSame(known, file) ? [] : [{ path: file.path, change: "changed" }];
  });
  return [...changed, ...[...old.keys()].map((path) => ({ path, change: "gone" as const }))];
}

function isSame(one: ContentFile, other: ContentFile): boolean {
  return one.isExecutable === other.isExecutable && one.bytes.equals(other.bytes);
}
