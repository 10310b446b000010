// The file system that commands of a virtual sandbox see (`guardedFiles`): a folder without Holdfast's own
// files.
//
//   - Only the methods that are named here can be called. A method that a later version of the library adds
//     is refused until its paths are checked.
//   - Holdfast's folder, and a database that a process owns, are not there. No `.git` and no place that gives
//     rights can be changed.
//   - Work on a whole tree is refused when the tree holds such a name. The library does not ask again for
//     each file of a tree. The same holds for what a mask keeps from a command.
//   - No file grows over the limit.

import { posix } from "node:path";
import type { IFileSystem } from "just-bash";

import { placeIn, PROTECTED_PLACES } from "../granting-places.ts";
import { OWN_FOLDER } from "../workspace/contained-directory.ts";
import { maskFilter, type MaskFilter, type PathMask } from "../workspace/paths/path-mask.ts";

/** Methods by what they do to their paths. The number says how many of the first arguments are paths. */
const METHODS: Readonly<
  Record<string, { readonly paths: number; readonly use: "read" | "change" | "tree" }>
> = {
  readFile: { paths: 1, use: "read" },
  readFileBytes: { paths: 1, use: "read" },
  readFileBuffer: { paths: 1, use: "read" },
  exists: { paths: 1, use: "read" },
  stat: { paths: 1, use: "read" },
  lstat: { paths: 1, use: "read" },
  readlink: { paths: 1, use: "read" },
  realpath: { paths: 1, use: "read" },
  readdir: { paths: 1, use: "read" },
  readdirWithFileTypes: { paths: 1, use: "read" },
  writeFile: { paths: 1, use: "change" },
  appendFile: { paths: 1, use: "change" },
  mkdir: { paths: 1, use: "change" },
  chmod: { paths: 1, use: "change" },
  utimes: { paths: 1, use: "change" },
  link: { paths: 2, use: "change" },
  symlink: { paths: 2, use: "change" },
  rm: { paths: 1, use: "tree" },
  cp: { paths: 2, use: "tree" },
  mv: { paths: 2, use: "tree" },
};
/** Methods that look at no file. */
const PURE = ["resolvePath"];
/** Folders of a tree that are looked at before work on the whole of it. */
const FOLDERS_MAX = 20_000;

/** @param files paths begin at its root. */
export function guardedFiles(files: IFileSystem, fileBytesMax: number, mask?: PathMask): IFileSystem {
  const guard = new Guard(files, fileBytesMax, maskFilter(mask ?? { unreadable: [], unwritable: [] }));
  return new Proxy(files, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function" || typeof name !== "string") return undefined;
      if (PURE.includes(name)) return method.bind(target) as unknown;
      if (name === "getAllPaths") return () => target.getAllPaths().filter((path) => !guard.isHidden(path));
      const rule = METHODS[name];
      // A method of a later version is refused until its paths are checked.
      if (rule === undefined) return undefined;
      return async (...args: readonly unknown[]) => {
        await guard.check(name, rule, args);
        const result: unknown = await method.apply(target, args);
        return name.startsWith("readdir")
          ? guard.withoutHidden(String(args[0]), result as readonly Entry[])
          : result;
      };
    },
  });
}

type Entry = string | { readonly name: string };

class Guard {
  readonly #files: IFileSystem;
  readonly #fileBytesMax: number;
  readonly #mask: MaskFilter;

  constructor(files: IFileSystem, fileBytesMax: number, mask: MaskFilter) {
    this.#files = files;
    this.#fileBytesMax = fileBytesMax;
    this.#mask = mask;
  }

  async check(
    name: string,
    { paths, use }: (typeof METHODS)[string],
    args: readonly unknown[],
  ): Promise<void> {
    for (const path of args.slice(0, paths)) {
      if (typeof path !== "string") throw refused(name, String(path));
      if (name === "symlink" && path === args[0]) continue; // A text, which is resolved when it is followed.
      await this.#checkPath(name, path, use !== "read");
      if (use === "tree") await this.#checkTree(name, path, args.slice(0, paths));
    }
    if (name === "writeFile" || name === "appendFile") await this.#checkSize(name, args);
  }

  withoutHidden(folder: string, entries: readonly Entry[]): readonly Entry[] {
    const nameOf = (entry: Entry): string => (typeof entry === "string" ? entry : entry.name);
    return entries.filter((entry) => !this.isHidden(`${folder}/${nameOf(entry)}`));
  }

  /** Whether a path is not there for a command. */
  isHidden(path: string): boolean {
    return path.split("/").some(isOwnFolder) || this.#mask.isUnreadable(fromRoot(path));
  }

  async #checkPath(name: string, path: string, isChange: boolean): Promise<void> {
    const names = path.split("/");
    if (this.isHidden(path))
      throw isChange && !names.some(isOwnFolder) ? refused(name, path) : missing(name, path);
    const isKept = placeIn(names, PROTECTED_PLACES) !== undefined || this.#mask.isUnwritable(fromRoot(path));
    if (isChange && isKept) throw refused(name, path);
    const database = path.replace(/-(wal|shm|lock|owner|socket|suspects)$/, "");
    const beside = await Promise.all(
      [`${database}-owner`, `${database}-lock`].map((at) => this.#isThere(at)),
    );
    if (beside.every(Boolean)) throw missing(name, path);
  }

  async #checkTree(name: string, path: string, ends: readonly unknown[]): Promise<void> {
    const ahead = [path];
    const isGuarded = (at: string): boolean => {
      // A copied or moved tree has no such place at either of its ends.
      const paths = ends.map((end) => `${String(end)}${at.slice(path.length)}`);
      return paths.some(
        (one) =>
          placeIn(one.split("/"), [OWN_FOLDER, ...PROTECTED_PLACES]) !== undefined ||
          this.#mask.isUnwritable(fromRoot(one)),
      );
    };
    for (let folders = 0; ahead.length > 0; folders++) {
      const folder = ahead.pop() ?? "";
      if (folders > FOLDERS_MAX) throw refused(name, path);
      const entries = (await this.#files.readdirWithFileTypes?.(folder).catch(() => [])) ?? [];
      for (const entry of entries) {
        const at = `${folder}/${entry.name}`;
        if (isGuarded(at)) throw refused(name, at);
        if (entry.isDirectory) ahead.push(at);
      }
    }
  }

  async #checkSize(name: string, [path, content]: readonly unknown[]): Promise<void> {
    const added =
      typeof content === "string" ? Buffer.byteLength(content) : (content as Uint8Array).byteLength;
    const before =
      name === "appendFile" ? await this.#files.stat(String(path)).catch(() => undefined) : undefined;
    if (added + (before?.size ?? 0) > this.#fileBytesMax) {
      throw new Error(
        `EFBIG: file too large (at most ${this.#fileBytesMax} bytes), ${name} '${String(path)}'`,
      );
    }
  }

  #isThere(path: string): Promise<boolean> {
    return this.#files.exists(path).catch(() => false);
  }
}

function isOwnFolder(name: string): boolean {
  return name.toLowerCase() === OWN_FOLDER;
}

/** The path from the root, as patterns of rules see it. */
function fromRoot(path: string): string {
  return posix.normalize(`/${path}`).slice(1);
}

function missing(name: string, path: string): Error {
  return new Error(`ENOENT: no such file or directory, ${name} '${path}'`);
}

function refused(name: string, path: string): Error {
  return new Error(`EACCES: permission denied, ${name} '${path}'`);
}
