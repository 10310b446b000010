// `FolderMirror`: the differences between a folder of this machine and its copy in a remote sandbox.
//
//   - The folder of this machine is the truth before a command. After it, the files that the command changed
//     or removed are changed here.
//   - Links, and what `STAYING` names, stay on their side. Empty folders are no part of the copy.
//   - A sandbox may be hostile: its files are written as file tools write, so that no path and no link leads
//     out of the folder. A changed file that gives rights stays in the sandbox.

import type { Stats } from "node:fs";
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { LimitError, MIB } from "@holdfast/core";

import { GRANTING_PLACES } from "../../granting-places.ts";
import { containedRoot } from "../../workspace/contained-directory.ts";
import { isTemporaryName, removeContained, writeContained } from "../../workspace/contained-files.ts";
import { STAYING, type JobResult } from "./remote-job.ts";
import type { TarFile } from "./tar.ts";

/** A larger folder is not copied. */
const MIRROR_LIMITS = { files: 20_000, bytes: 200 * MIB } as const;

export interface FolderChanges {
  readonly changed: readonly TarFile[];
  readonly removed: readonly string[];
}

export class FolderMirror {
  readonly #root: string;
  readonly #fileBytes: number;
  /** The files that the sandbox has, each with the marks of the file here when it was copied. */
  #copied = new Map<string, string>();

  constructor(root: string, fileBytes: number) {
    this.#root = root;
    this.#fileBytes = fileBytes;
  }

  /** The sandbox has nothing, or nobody knows what it has. */
  forget(): void {
    this.#copied.clear();
  }

  /** The changes that the sandbox does not have yet. @throws LimitError for a folder that is too large. */
  async changes(): Promise<FolderChanges> {
    const present = new Map<string, Stats>();
    await this.#scan("", present);
    const changed: TarFile[] = [];
    let total = 0;
    for (const [path, stats] of present) {
      if (this.#copied.get(path) === marksOf(stats)) continue;
      total += stats.size;
      if (total > MIRROR_LIMITS.bytes)
        throw new LimitError(
          "bytes",
          `the folder has more than ${MIRROR_LIMITS.bytes} bytes for the sandbox`,
          {
            at: path,
            fix: "use a smaller folder, or a sandbox on this machine",
          },
        );
      changed.push({ path, bytes: await readFile(join(this.#root, path)), mode: stats.mode & 0o777 });
    }
    const removed = [...this.#copied.keys()].filter((path) => !present.has(path));
    this.#copied = new Map([...present].map(([path, stats]) => [path, marksOf(stats)]));
    return { changed, removed };
  }

  /** Takes over the changes of a command. @returns the paths that were not taken, with the reasons. */
  async take({ changed, names }: Pick<JobResult, "changed" | "names">): Promise<readonly string[]> {
    const root = await containedRoot(this.#root);
    const refused: string[] = [];
    const options = { protectedPlaces: [...STAYING, ...GRANTING_PLACES] };
    const attempt = async (path: string, work: () => Promise<unknown>): Promise<void> => {
      try {
        await work();
      } catch (error) {
        refused.push(`${path}: ${(error as Error).message}`);
      }
    };
    for (const { path, bytes, mode } of changed)
      await attempt(path, async () => {
        await writeContained(root, path, bytes, { ...options, bytesMax: this.#fileBytes, mode });
        this.#copied.set(path, marksOf(await lstat(join(this.#root, path))));
      });
    for (const path of [...this.#copied.keys()].filter((known) => !names.has(known)))
      await attempt(path, async () => {
        await removeContained(root, path, options);
        this.#copied.delete(path);
      });
    return refused;
  }

  async #scan(folder: string, found: Map<string, Stats>): Promise<void> {
    for (const entry of await readdir(join(this.#root, folder), { withFileTypes: true })) {
      if (STAYING.includes(entry.name) || isTemporaryName(entry.name)) continue;
      const path = `${folder}${entry.name}`;
      if (entry.isDirectory()) await this.#scan(`${path}/`, found);
      else if (entry.isFile()) found.set(path, await lstat(join(this.#root, path)));
      if (found.size > MIRROR_LIMITS.files)
        throw new LimitError(
          "files",
          `the folder has more than ${MIRROR_LIMITS.files} files for the sandbox`,
          {
            fix: "use a smaller folder, or a sandbox on this machine",
          },
        );
    }
  }
}

function marksOf({ size, mtimeMs, ctimeMs, mode, ino }: Stats): string {
  return [size, mtimeMs, ctimeMs, mode & 0o777, ino].join(" ");
}
