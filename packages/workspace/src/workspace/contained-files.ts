// Reading, writing and listing files below a contained root.
//
//   - A file is replaced in one step: it is written beside its target, synced and renamed over it, and the
//     directory is synced. A reader sees the old content or the new content, also after a crash.
//   - Only regular files are read and written. A pipe or a device would block or have effects of its own.
//   - Leftovers of a crash carry TEMPORARY_PREFIX. Listings, searches and commits leave them out, and the
//     next attempt removes them.

import { randomBytes } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { lstat, open, readdir, rename, rmdir, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { HoldfastError, LimitError } from "@holdfast/core";

import {
  fileError,
  locate,
  type ContainedRoot,
  type Location,
  type OpenDirectory,
} from "./contained-directory.ts";

/** How temporary files begin: `.holdfast-<target>-<random>.tmp`. */
export const TEMPORARY_PREFIX = ".holdfast-";
const TEMPORARY_SUFFIX = ".tmp";

/** A file that was read, or the part of it that was asked for. */
export interface FileContent {
  /** Relative to the root, links resolved. */
  readonly path: string;
  readonly bytes: Buffer;
  /** Permission bits. */
  readonly mode: number;
  /** It holds NUL bytes or is not UTF-8; `text` is empty then. */
  readonly isBinary: boolean;
  readonly text: string;
}

/** A file that was written. */
export interface WrittenFile {
  readonly path: string;
  readonly bytes: number;
  readonly isNew: boolean;
}

/** A file, a folder or a link in a list. */
export interface ListedEntry {
  readonly path: string;
  readonly type: "file" | "directory" | "link" | "other";
}

/** The files of a folder, as far as the limit of a list allows. */
export interface FileListing {
  /** Relative to the root, sorted. */
  readonly files: readonly string[];
  /** There are more than the limit `entries`. */
  readonly isCut: boolean;
}

/** @throws HoldfastError when there is no such file, it is too large, or it is not a regular file. */
export async function readContained(
  root: ContainedRoot,
  path: string,
  bytesMax: number,
): Promise<FileContent> {
  const location = await locate(root, path);
  let handle: FileHandle | undefined;
  try {
    if (location.name === undefined) throw isDirectory(path);
    // O_NONBLOCK: opening a pipe without a writer would otherwise never return.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    handle = await open(join(location.directory.path, location.name), flags);
    await location.directory.verify({ name: location.name, handle });
    const found = await handle.stat();
    checkRegular(found, path);
    if (found.size > bytesMax) throw tooLarge(path, found.size, bytesMax);
    const bytes = await readUpTo(handle, found.size, bytesMax, path);
    return { path: location.path, bytes, mode: found.mode & 0o777, ...decodeText(bytes) };
  } catch (error) {
    throw fileError(error, path);
  } finally {
    await Promise.all([handle?.close(), location.close()]);
  }
}

/**
 * Write a whole file, making the directories on the way.
 *
 * @param options.removeLeftovers an earlier attempt may have died while writing this file.
 */
export async function writeContained(
  root: ContainedRoot,
  path: string,
  content: string | Uint8Array,
  options: {
    readonly bytesMax: number;
    readonly protectedPlaces: readonly string[];
    readonly removeLeftovers?: boolean;
    readonly mode?: number | undefined;
  },
): Promise<WrittenFile> {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  if (bytes.byteLength > options.bytesMax) throw tooLarge(path, bytes.byteLength, options.bytesMax);

  const location = await locate(root, path, {
    createParents: true,
    protectedPlaces: options.protectedPlaces,
  });
  try {
    if (location.name === undefined) throw isDirectory(path);
    const target = join(location.directory.path, location.name);
    const before = await lstat(target).catch(ignoreMissing);
    if (before !== undefined) checkRegular(before, path);
    if (options.removeLeftovers === true) await removeLeftovers(location, location.name);
    const mode = options.mode ?? (before === undefined ? 0o644 : before.mode & 0o777);
    await replaceFile(location, location.name, bytes, mode);
    return { path: location.path, bytes: bytes.byteLength, isNew: before === undefined };
  } catch (error) {
    throw fileError(error, path);
  } finally {
    await location.close();
  }
}

/** Removes a file, if it is there. */
export async function removeContained(
  root: ContainedRoot,
  path: string,
  options: { readonly protectedPlaces: readonly string[] },
): Promise<void> {
  const location = await locate(root, path, options);
  try {
    if (location.name === undefined) throw isDirectory(path);
    const target = join(location.directory.path, location.name);
    const found = await lstat(target).catch(ignoreMissing);
    if (found === undefined) return;
    checkRegular(found, path);
    await location.directory.verify();
    await unlink(target);
    await location.directory.sync();
  } catch (error) {
    throw fileError(error, path);
  } finally {
    await location.close();
  }
}

/** The decision about a file or folder: `keep` looks into a folder, and `leave` does not. */
export type Fate = "keep" | "leave" | "remove";

/**
 * Removes what a directory should not hold, also whole directories, and everything that is no regular file.
 *
 * @param fateOf is called with paths from the directory.
 */
export async function removeOthers(
  root: ContainedRoot,
  path: string,
  fateOf: (path: string, isFolder: boolean) => Fate,
  options: { readonly protectedPlaces: readonly string[] },
): Promise<void> {
  let location: Location | undefined;
  try {
    location = await locate(root, path, options);
    const directory =
      location.name === undefined ? location.directory : await location.directory.openChild(location.name);
    try {
      await removeFrom(directory, "", fateOf);
    } finally {
      if (directory !== location.directory) await directory.close();
    }
  } catch (error) {
    const known = fileError(error, path);
    if (!HoldfastError.is(known) || known.code !== "file_not_found") throw known;
  } finally {
    await location?.close();
  }
}

async function removeFrom(
  directory: OpenDirectory,
  below: string,
  fateOf: (path: string, isFolder: boolean) => Fate,
): Promise<void> {
  const entries = await readdir(directory.path, { withFileTypes: true });
  await directory.verify();
  for (const entry of entries) {
    const at = `${below}${entry.name}`;
    const isFolder = entry.isDirectory();
    // Another process may be writing the file of this name.
    if (entry.isFile() && isTemporaryName(entry.name)) continue;
    const fate = isFolder || entry.isFile() ? fateOf(at, isFolder) : "remove";
    if (fate === "leave" || (fate === "keep" && !isFolder)) continue;
    if (!isFolder) {
      await directory.verify();
      await unlink(join(directory.path, entry.name)).catch(ignoreMissing);
      continue;
    }
    const child = await directory.openChild(entry.name);
    try {
      await removeFrom(child, `${at}/`, fate === "keep" ? fateOf : () => "remove");
    } finally {
      await child.close();
    }
    if (fate === "remove") await rmdir(join(directory.path, entry.name));
  }
}

/** One directory, sorted by name. @param path `.` for the root. */
export async function listContained(root: ContainedRoot, path: string): Promise<readonly ListedEntry[]> {
  const location = await locate(root, path);
  try {
    const directory =
      location.name === undefined ? location.directory : await location.directory.openChild(location.name);
    try {
      const found = await readdir(directory.path, { withFileTypes: true });
      await directory.verify();
      const below = location.path === "." ? "" : `${location.path}/`;
      return found
        .filter((entry) => !isTemporaryName(entry.name))
        .toSorted((a, b) => (a.name < b.name ? -1 : 1))
        .map((entry) => ({
          path: `${below}${entry.name}`,
          type: entry.isDirectory()
            ? "directory"
            : entry.isFile()
              ? "file"
              : entry.isSymbolicLink()
                ? "link"
                : "other",
        }));
    } finally {
      if (directory !== location.directory) await directory.close();
    }
  } catch (error) {
    throw fileError(error, path);
  } finally {
    await location.close();
  }
}

/** The path of a directory, links resolved. @throws HoldfastError when it is not one. */
export async function resolveDirectory(root: ContainedRoot, path: string): Promise<string> {
  const location = await locate(root, path);
  try {
    if (location.name !== undefined) {
      const directory = await location.directory.openChild(location.name);
      await directory.close();
    }
    return join(root.path, location.path);
  } catch (error) {
    throw fileError(error, path);
  } finally {
    await location.close();
  }
}

export function isTemporaryName(name: string): boolean {
  return name.startsWith(TEMPORARY_PREFIX) && name.endsWith(TEMPORARY_SUFFIX);
}

async function replaceFile(location: Location, name: string, bytes: Uint8Array, mode: number): Promise<void> {
  const { directory } = location;
  const temporary = join(directory.path, temporaryName(name));
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const handle = await open(temporary, flags, 0o600);
  try {
    try {
      await directory.verify();
      await handle.writeFile(bytes);
      await handle.chmod(mode);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await directory.verify();
    await rename(temporary, join(directory.path, name));
  } catch (error) {
    await unlink(temporary).catch(() => {});
    throw error;
  }
  await directory.sync();
}

function temporaryName(target: string): string {
  return `${leftoverPrefix(target)}${randomBytes(6).toString("hex")}${TEMPORARY_SUFFIX}`;
}

/** Names may be as long as the file system allows, so only a part of the target's name goes into its temporary file. */
function leftoverPrefix(target: string): string {
  return `${TEMPORARY_PREFIX}${target.slice(0, 40)}-`;
}

async function removeLeftovers(location: Location, target: string): Promise<void> {
  const names = await readdir(location.directory.path);
  const left = names.filter((name) => name.startsWith(leftoverPrefix(target)) && isTemporaryName(name));
  await Promise.all(left.map((name) => unlink(join(location.directory.path, name)).catch(ignoreMissing)));
}

const READ_BYTES_MIN = 1_024;
const READ_BYTES_MAX = 1_024 * 1_024;

/**
 * A file that grows while it is read is cut off at the limit.
 *
 * @param size the size that the file system names: 0 for some files that have content all the same.
 */
async function readUpTo(handle: FileHandle, size: number, bytesMax: number, path: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for (;;) {
    const wanted = Math.min(READ_BYTES_MAX, Math.max(READ_BYTES_MIN, size - length + 1));
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(wanted), 0, wanted, null);
    length += bytesRead;
    if (length > bytesMax) throw tooLarge(path, length, bytesMax);
    chunks.push(buffer.subarray(0, bytesRead));
    if (bytesRead === 0 || (length === size && bytesRead < wanted)) return Buffer.concat(chunks);
  }
}

const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Text is what is valid UTF-8 without NUL: only that can be edited and written back unchanged. */
function decodeText(bytes: Uint8Array): { readonly isBinary: boolean; readonly text: string } {
  if (bytes.includes(0)) return { isBinary: true, text: "" };
  try {
    return { isBinary: false, text: STRICT_UTF8.decode(bytes) };
  } catch {
    return { isBinary: true, text: "" };
  }
}

function checkRegular(found: Stats, path: string): void {
  if (found.isFile()) return;
  if (found.isDirectory()) throw isDirectory(path);
  throw new HoldfastError("invalid_input", `"${path}" is not a regular file`);
}

function isDirectory(path: string): HoldfastError {
  return new HoldfastError("invalid_input", `"${path}" is a directory, not a file`);
}

function tooLarge(path: string, bytes: number, bytesMax: number): LimitError {
  return new LimitError(
    "fileBytes",
    `"${path}" has ${bytes} bytes, and files are handled up to ${bytesMax}`,
    {
      fix: "use a shell command that reads or changes a part of it",
    },
  );
}

function ignoreMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  return undefined;
}
