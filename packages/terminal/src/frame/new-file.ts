// Files that appear whole or not at all, and reading them back.

import { randomBytes } from "node:crypto";
import { link, open, rm, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { HoldfastError, NotFoundError, UsageError } from "@holdfast/core";
import { checkFile } from "./given-file.ts";

/**
 * Write a file for this user only. It has its name once it is whole and on disk; one of that name is never
 * replaced.
 *
 * @throws UsageError when there is one, HoldfastError when it cannot be written.
 */
export async function writeNewFile(path: string, lines: AsyncIterable<string>): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString("hex")}.part`;
  try {
    const file = await open(draft, "wx", 0o600);
    try {
      await file.writeFile(lines); // To the last byte: one write may take a part, and say nothing.
      await file.sync();
    } finally {
      await file.close();
    }
    await link(draft, path); // Unlike a rename it refuses to replace anything.
    await syncFolder(dirname(path));
  } catch (error) {
    throw HoldfastError.is(error) ? error : unwritable(path, error as NodeJS.ErrnoException);
  } finally {
    await rm(draft, { force: true });
  }
}

/** @throws NotFoundError when it is no file that can be read. */
export async function openFile(path: string): Promise<AsyncIterable<Uint8Array>> {
  let file: FileHandle | undefined;
  try {
    checkFile(path);
    file = await open(path, "r");
    return file.createReadStream();
  } catch (error) {
    await file?.close();
    const { code, message } = error as NodeJS.ErrnoException;
    const what = code === "ENOENT" ? "there is no such file" : `the file cannot be read: ${message}`;
    throw new NotFoundError("file_not_found", what, {
      at: path,
      fix: "check the path; it is taken from the current folder",
    });
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** The error of the file system for a new file. */
export function unwritable(path: string, { code, message }: NodeJS.ErrnoException): HoldfastError {
  if (code === "EEXIST")
    return new UsageError("there is a file of that name already", {
      at: path,
      fix: "name another with -o, or remove it",
    });
  const kind = code === "ENOSPC" || code === "EDQUOT" ? "storage_full" : "storage_readonly";
  return new HoldfastError(kind, `the file cannot be written: ${message}`, {
    at: path,
    fix: "name a file in a folder that is there and can be written to, with -o",
  });
}
