// `ContentStore`: contents of skills or scripts by their hash, in the user's data folder. A session reads the
// content of its start there.
//
//   - A content is written beside its place and renamed, so that it is there as a whole or not at all.
//   - A content is hashed again when it is read. A damaged content is removed, and counts as missing.

import { randomBytes } from "node:crypto";
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makePrivateFolder } from "@holdfast/system";

import { FileProblem } from "../format/front-matter.ts";
import { readFolderContent, type FolderContent } from "./folder-content.ts";

export class ContentStore {
  readonly #folder: string;

  /** @param folder need not exist. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Keeps a content. A content that is there is not written again. */
  keep(content: FolderContent): void {
    const place = this.folderOf(content.hash);
    if (existsSync(place)) return;
    // Renamed at the end, so that the content is there as a whole or not at all.
    const beside = join(this.#folder, `.new-${randomBytes(8).toString("hex")}`);
    try {
      for (const { path, bytes, isExecutable } of content.files) {
        const at = join(beside, path);
        makePrivateFolder(dirname(at));
        writeFileSync(at, bytes, { flag: "wx", mode: isExecutable ? 0o755 : 0o644 });
      }
      renameSync(beside, place);
    } catch (error) {
      rmSync(beside, { recursive: true, force: true });
      // Another process has kept the same content in between.
      if (!existsSync(place)) throw error;
    }
  }

  read(hash: string): FolderContent | undefined {
    const place = this.folderOf(hash);
    if (!existsSync(place)) return undefined;
    try {
      const content = readFolderContent(place);
      if (content.hash === hash) return content;
    } catch (error) {
      if (!(error instanceof FileProblem)) throw error;
    }
    rmSync(place, { recursive: true, force: true }); // A damaged content counts as missing.
    return undefined;
  }

  /** The folder with the files of a content, whether or not it is there. */
  folderOf(hash: string): string {
    if (!/^[0-9a-f]{64}$/.test(hash)) throw new Error(`${hash} is no hash of a content`);
    return join(this.#folder, hash);
  }
}
