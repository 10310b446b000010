// Directories and names below a root. No path leads out of the root, also not by "..", an absolute path, a
// symbolic link, or a directory that becomes one.
//
//   - A path is walked name by name. Every directory on the way is opened without following links. On Linux
//     it stays open while the walk is below it, and work in a directory goes through the open directory, not
//     through its path.
//   - A symbolic link is read and its target walked by the same rules. Links inside the root work, and links
//     out of it are refused. ".." steps back to the directory before and cannot step above the root.
//   - The last name is looked at for a link. Callers open it with O_NOFOLLOW, so that the kernel never
//     follows it.
//   contained-directory-4. No path goes through a folder `.holdfast`, or to a database in use, not even to
//       read it. Such a database has files with the endings `-owner` and `-lock` beside it. Opening and
//       closing a database that this process owns would drop the locks on it. Leaky: hard links.
//
// Node has no openat(2). On Linux `/proc/self/fd/<n>/<name>` replaces it: the kernel resolves it through the
// open directory, even if that directory has been moved. Elsewhere the path is used and checked again after
// each opening. Leaky there: another process can swap the directory between the last check and a rename. A
// process that swaps it twice around each of two checks is not seen.

import { constants } from "node:fs";
import { lstat, mkdir, open, readlink, realpath, stat, type FileHandle } from "node:fs/promises";
import { isAbsolute, join, sep } from "node:path";
import { HoldfastError } from "@holdfast/core";

import { GRANTING_PLACES, placeIn } from "../granting-places.ts";

/** A directory that stays the same one, however its path changes. */
export interface OpenDirectory {
  /** Prefix for the paths of what is in it. */
  readonly path: string;
  /** @throws the file system's ENOENT, ENOTDIR or ELOOP; a symbolic link is never followed. */
  openChild(name: string): Promise<OpenDirectory>;
  /**
   * After opening something in it: it is still the directory it was, and what was opened is in it.
   *
   * @throws HoldfastError `policy_denied`
   */
  verify(opened?: OpenedFile): Promise<void>;
  /** Make a rename in it durable. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

export interface OpenedFile {
  readonly name: string;
  readonly handle: FileHandle;
}

/** The place that a path names: a name in an open directory. `name` is `undefined` for the root itself. */
export interface Location {
  readonly directory: OpenDirectory;
  readonly name: string | undefined;
  /** Relative to the root, links resolved, `.` for the root. */
  readonly path: string;
  close(): Promise<void>;
}

export interface ContainedRoot {
  /** Without symbolic links. */
  readonly path: string;
  readonly open: () => Promise<OpenDirectory>;
  /** Other names of the root that absolute paths may begin with. */
  readonly aliases: readonly string[];
}

export interface LocateOptions {
  /** Make the directories on the way that are missing. */
  readonly createParents?: boolean;
  /** Places that may not be on the way (granting-places-3). */
  readonly protectedPlaces?: readonly string[];
}

/** Holdfast's folder in a project (contained-directory-4). */
export const OWN_FOLDER = ".holdfast";
/** Files that lie beside a database of Holdfast, in any folder. */
const BESIDE_DATABASE = /-(wal|shm|lock|owner|socket|suspects)$/;
const LINKS_MAX = 40;
const PATH_CHARS_MAX = 4_096;

/** @throws HoldfastError `file_not_found` when there is no such directory. */
export async function containedRoot(
  root: string,
  strategy?: "descriptors" | "paths",
): Promise<ContainedRoot> {
  if (root === "" || root.includes("\0")) throw refused(root, "a workspace needs the path of a directory");
  const path = await realpath(root).catch(() => undefined);
  if (path === undefined || !(await stat(path)).isDirectory()) {
    throw new HoldfastError("file_not_found", `the workspace ${root} is not a directory`, {
      expected: "the path of a directory that exists",
    });
  }
  const useDescriptors = strategy === undefined ? await hasDescriptorPaths() : strategy === "descriptors";
  return {
    path,
    aliases: isAbsolute(root) ? [root] : [],
    open: () => (useDescriptors ? DescriptorDirectory.open(path) : PathDirectory.open(path)),
  };
}

/**
 * Walk to what a path names, without looking at whether the last name exists.
 *
 * @param path relative to the root, or absolute and inside it.
 * @throws HoldfastError `policy_denied` for a path that leaves the root, `file_not_found` for a missing
 *   directory.
 */
export async function locate(
  root: ContainedRoot,
  path: string,
  options: LocateOptions = {},
): Promise<Location> {
  const walk = new Walk(root, path, options);
  try {
    await walk.start();
    return await walk.finish();
  } catch (error) {
    await walk.close();
    throw error;
  }
}

class Walk {
  readonly #root: ContainedRoot;
  readonly #asked: string;
  readonly #options: LocateOptions;
  /** From the root down to where we stand, with the names we came by. */
  readonly #stack: { readonly name: string; readonly directory: OpenDirectory }[] = [];
  #ahead: string[];
  #links = 0;

  constructor(root: ContainedRoot, path: string, options: LocateOptions) {
    this.#root = root;
    this.#asked = path;
    this.#options = options;
    this.#ahead = splitPath(root, path, path);
  }

  async start(): Promise<void> {
    this.#stack.push({ name: "", directory: await this.#root.open() });
  }

  async finish(): Promise<Location> {
    for (;;) {
      const name = this.#ahead.shift();
      if (name === undefined) return this.#at(undefined);
      if (name === "..") {
        if (this.#stack.length === 1) throw leavesRoot(this.#asked);
        await this.#stack.pop()?.directory.close();
        continue;
      }
      this.#checkProtected([...this.#names, name]);
      const isLast = this.#ahead.length === 0;
      const [target, isDatabase] = await Promise.all([
        this.#linkTarget(name),
        isLast ? this.#isDatabase(name) : false,
      ]);
      if (target !== undefined) {
        await this.#follow(target);
      } else if (isLast) {
        if (isDatabase) throw refused(this.#asked, OWN_FILES);
        return this.#at(name);
      } else {
        await this.#enter(name);
      }
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#stack.splice(0).map(({ directory }) => directory.close()));
  }

  get #here(): OpenDirectory {
    const top = this.#stack.at(-1);
    if (top === undefined) throw new Error("the walk has not started");
    return top.directory;
  }

  /** The path from the root to where the walk is. */
  get #names(): readonly string[] {
    return this.#stack.slice(1).map((step) => step.name);
  }

  #at(name: string | undefined): Location {
    const names = [...this.#names, ...(name === undefined ? [] : [name])];
    return {
      directory: this.#here,
      name,
      path: names.length === 0 ? "." : names.join("/"),
      close: () => this.close(),
    };
  }

  #checkProtected(names: readonly string[]): void {
    if (placeIn(names, [OWN_FOLDER]) !== undefined) throw refused(this.#asked, OWN_FILES);
    const hit = placeIn(names, this.#options.protectedPlaces ?? []);
    if (hit !== undefined) throw refused(this.#asked, protectedText(hit));
  }

  /**
   * contained-directory-4. A database need not lie in our folder; while somebody owns it, its lock and its
   *     owner's note lie beside it.
   */
  async #isDatabase(name: string): Promise<boolean> {
    const database = join(this.#here.path, name.replace(BESIDE_DATABASE, ""));
    for (const suffix of ["-owner", "-lock"]) {
      const isThere = await lstat(database + suffix).then(
        () => true,
        () => false,
      );
      if (!isThere) return false;
    }
    return true;
  }

  /** Below a directory that is not there is nothing but the names asked for: a path that is refused leaves none behind. */
  #checkAhead(missing: string): void {
    const names = [...this.#names, missing];
    for (const name of this.#ahead) {
      names.push(name);
      this.#checkProtected(names);
      if (name === "..") throw fileError(withCode(new Error(name), "ENOENT"), this.#asked);
      if (Buffer.byteLength(name) > NAME_BYTES_MAX) {
        throw fileError(withCode(new Error(name), "ENAMETOOLONG"), this.#asked);
      }
    }
  }

  /** Reading a link that is no link fails with EINVAL. Opening the name later reports a missing file. */
  async #linkTarget(name: string): Promise<string | undefined> {
    try {
      return await readlink(join(this.#here.path, name));
    } catch {
      return undefined;
    }
  }

  async #follow(target: string): Promise<void> {
    this.#links += 1;
    if (this.#links > LINKS_MAX) throw refused(this.#asked, "it goes through too many symbolic links");
    if (isAbsolute(target)) {
      await Promise.all(this.#stack.splice(1).map(({ directory }) => directory.close()));
    }
    this.#ahead = [...splitPath(this.#root, target, this.#asked), ...this.#ahead];
  }

  async #enter(name: string, isRetry = false): Promise<void> {
    try {
      this.#stack.push({ name, directory: await this.#here.openChild(name) });
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === "ENOENT" && this.#options.createParents === true && !isRetry) {
        this.#checkAhead(name);
        await mkdir(join(this.#here.path, name)).catch(ignoreExisting);
        return this.#enter(name, true);
      }
      // The name was no link a moment ago. A change in between is refused without a second look.
      if (code === "ELOOP") throw refused(this.#asked, `"${name}" became a symbolic link meanwhile`);
      throw fileError(error, this.#asked);
    }
  }
}

/** The limit of common file systems. */
const NAME_BYTES_MAX = 255;

/** Only Linux with /proc has descriptor paths. */
async function hasDescriptorPaths(): Promise<boolean> {
  if (process.platform !== "linux") return false;
  return stat("/proc/self/fd").then(
    () => true,
    () => false,
  );
}

const DIRECTORY_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

class DescriptorDirectory implements OpenDirectory {
  readonly path: string;
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
    this.path = `/proc/self/fd/${handle.fd}`;
  }

  static async open(path: string): Promise<DescriptorDirectory> {
    return new DescriptorDirectory(await open(path, DIRECTORY_FLAGS));
  }

  openChild(name: string): Promise<OpenDirectory> {
    return DescriptorDirectory.open(join(this.path, name));
  }

  async verify(): Promise<void> {
    // Nothing to check: the path goes through the open directory.
  }

  sync(): Promise<void> {
    return this.#handle.sync();
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

class PathDirectory implements OpenDirectory {
  readonly path: string;
  readonly #identity: string;

  private constructor(path: string, identity: string) {
    this.path = path;
    this.#identity = identity;
  }

  static async open(path: string): Promise<PathDirectory> {
    const directory = new PathDirectory(path, await PathDirectory.#identify(path));
    await directory.verify();
    return directory;
  }

  openChild(name: string): Promise<OpenDirectory> {
    return PathDirectory.open(join(this.path, name));
  }

  async verify(opened?: OpenedFile): Promise<void> {
    // Swapped while the file was opened, and back by now, it is the same one: so the file must be, too.
    const isHere =
      (await this.#isSame()) &&
      (opened === undefined || ((await this.#holds(opened)) && (await this.#isSame())));
    if (!isHere) throw refused(this.path, "a directory on the way was replaced meanwhile");
  }

  async #isSame(): Promise<boolean> {
    return (
      (await realpath(this.path).catch(() => "")) === this.path &&
      (await PathDirectory.#identify(this.path).catch(() => "")) === this.#identity
    );
  }

  async #holds({ name, handle }: OpenedFile): Promise<boolean> {
    const [here, opened] = await Promise.all([
      lstat(join(this.path, name)).catch(() => undefined),
      handle.stat(),
    ]);
    return here?.dev === opened.dev && here.ino === opened.ino;
  }

  async sync(): Promise<void> {
    const handle = await open(this.path, constants.O_RDONLY);
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }

  async close(): Promise<void> {
    // Holds nothing.
  }

  static async #identify(path: string): Promise<string> {
    const found = await lstat(path, { bigint: true });
    if (found.isSymbolicLink()) throw withCode(new Error(`${path} is a symbolic link`), "ELOOP");
    if (!found.isDirectory()) throw withCode(new Error(`${path} is not a directory`), "ENOTDIR");
    return `${found.dev}:${found.ino}`;
  }
}

function splitPath(root: ContainedRoot, path: string, asked: string): string[] {
  if (path === "") throw refused(asked, "the path is empty");
  if (path.includes("\0")) throw refused(asked.replaceAll("\0", "\\0"), "it contains a NUL character");
  if (path.length > PATH_CHARS_MAX)
    throw refused(`${asked.slice(0, 80)}…`, `it is longer than ${PATH_CHARS_MAX} characters`);
  const inside = isAbsolute(path) ? relativeToRoot(root, path) : path;
  if (inside === undefined) throw leavesRoot(asked);
  return inside.split(sep).filter((name) => name !== "" && name !== ".");
}

/** Only the beginning is compared; whether the rest stays inside is decided by walking it. */
function relativeToRoot(root: ContainedRoot, path: string): string | undefined {
  const known = [root.path, ...root.aliases].find(
    (name) => path === name || path.startsWith(name.endsWith(sep) ? name : name + sep),
  );
  return known === undefined ? undefined : path.slice(known.length);
}

function protectedText(place: string): string {
  return GRANTING_PLACES.includes(place)
    ? `file tools do not write ${place}, because files there give agents rights`
    : `file tools do not write into ${place}`;
}

const OWN_FILES = "it leads to the files Holdfast keeps its sessions in";

function leavesRoot(path: string): HoldfastError {
  return refused(path, "it leads out of the workspace");
}

function refused(path: string, why: string): HoldfastError {
  return new HoldfastError("policy_denied", `the path "${path}" is refused: ${why}`, {
    expected: "a path inside the workspace, relative to its root, for example src/index.ts",
  });
}

/** An error of the file system in our words, without the descriptor paths it was reached by. */
export function fileError(error: unknown, path: string): unknown {
  if (HoldfastError.is(error)) return error;
  const code = (error as NodeJS.ErrnoException).code;
  switch (code) {
    case "ENOENT":
      return new HoldfastError("file_not_found", `there is no file or directory "${path}"`, {
        fix: "list the directory to see what is there",
      });
    case "ENOTDIR":
      return new HoldfastError(
        "file_not_found",
        `there is no "${path}": a part of it is a file, not a directory`,
      );
    case "EISDIR":
      return new HoldfastError("invalid_input", `"${path}" is a directory, not a file`);
    case "ELOOP":
      return refused(path, "it became a symbolic link meanwhile");
    case "ENAMETOOLONG":
      return refused(`${path.slice(0, 80)}…`, "a name in it is too long");
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return new HoldfastError("policy_denied", `"${path}" may not be accessed (${code})`, {
        fix: "check the permissions of the file, or use another one",
      });
    case "ENOSPC":
    case "EDQUOT":
      return new HoldfastError("storage_full", `there is no space left to write "${path}"`);
    default:
      return error;
  }
}

function ignoreExisting(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
}

function withCode(error: Error, code: string): Error {
  return Object.assign(error, { code });
}
