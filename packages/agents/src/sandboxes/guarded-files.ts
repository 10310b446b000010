// The file system that commands of a virtual sandbox see (`guardedFiles`): a folder without Holdfast's own files.
//
//   guarded-files-1. Only the methods that are named here can be called. A method that a later version of the library
//       adds is refused until its paths are checked.
//   guarded-files-2. Holdfast's folder, and a database that a process owns, are not there. No `.git` and no place that gives rights can be changed.
//   guarded-files-3. Work on a whole tree is refused when the tree holds such a name. The library does not ask again for
//       each file of a tree.
//   guarded-files-4. No file grows over the limit.

import type { IFileSystem } from "just-bash";

import { placeIn, PROTECTED_PLACES } from "../agent-files/trust/granting-places.ts";
import { OWN_FOLDER } from "../workspace/contained-directory.ts";

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
export function guardedFiles(files: IFileSystem, fileBytesMax: number): IFileSystem {
  const guard = new Guard(files, fileBytesMax);
  return new Proxy(files, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function" || typeof name !== "string") return undefined;
      if (PURE.includes(name)) return method.bind(target) as unknown;
      if (name === "getAllPaths")
        return () => target.getAllPaths().filter((path) => !path.split("/").some(isHidden));
      const rule = METHODS[name];
      if (rule === undefined) return undefined; // guarded-files-1.
      return async (...args: readonly unknown[]) => {
        await guard.check(name, rule, args);
        const result: unknown = await method.apply(target, args);
        return name.startsWith("readdir") ? guard.withoutHidden(result as readonly Entry[]) : result;
      };
    },
  });
}

type Entry = string | { readonly name: string };

class Guard {
  readonly #files: IFileSystem;
  readonly #fileBytesMax: number;

  constructor(files: IFileSystem, fileBytesMax: number) {
    this.#files = files;
    this.#fileBytesMax = fileBytesMax;
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

  withoutHidden(entries: readonly Entry[]): readonly Entry[] {
    return entries.filter((entry) => !isHidden(typeof entry === "string" ? entry : entry.name));
  }

  /** guarded-files-2. */
  async #checkPath(name: string, path: string, isChange: boolean): Promise<void> {
    const names = path.split("/");
    if (names.some(isHidden)) throw missing(name, path);
    if (isChange && placeIn(names, PROTECTED_PLACES) !== undefined) throw refused(name, path);
    const database = path.replace(/-(wal|shm|lock|owner|socket|suspects)$/, "");
    const beside = await Promise.all(
      [`${database}-owner`, `${database}-lock`].map((at) => this.#isThere(at)),
    );
    if (beside.every(Boolean)) throw missing(name, path);
  }

  /** guarded-files-3. */
  async #checkTree(name: string, path: string, ends: readonly unknown[]): Promise<void> {
    const ahead = [path];
    const isGuarded = (at: string): boolean => {
      // A copied or moved tree has no such place at either of its ends.
      const paths = ends.map((end) => `${String(end)}${at.slice(path.length)}`);
      return paths.some((one) => placeIn(one.split("/"), [OWN_FOLDER, ...PROTECTED_PLACES]) !== undefined);
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

  /** guarded-files-4. */
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

function isHidden(name: string): boolean {
  return name.toLowerCase() === OWN_FOLDER;
}

function missing(name: string, path: string): Error {
  return new Error(`ENOENT: no such file or directory, ${name} '${path}'`);
}

function refused(name: string, path: string): Error {
  return new Error(`EACCES: permission denied, ${name} '${path}'`);
}
