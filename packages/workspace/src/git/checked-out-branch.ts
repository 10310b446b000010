// `checkedOutBranch`: the branch of a folder, read from git's own file. A process of git takes a tenth of a
// second.
//
// The format is that of gitrepository-layout(5): `.git` is a folder, or a file that names one, and `HEAD` in
// it names the branch.

import { open, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

const FILE_BYTES = 4_096;
const NAME_CHARS = 250;

/** @returns `null` outside of a repository, and where no branch is checked out. */
export async function checkedOutBranch(folder: string): Promise<string | null> {
  for (let at = resolve(folder); ; at = dirname(at)) {
    const gitFolder = await gitFolderOf(join(at, ".git"));
    const head = gitFolder === undefined ? undefined : await readSmallFile(join(gitFolder, "HEAD"));
    if (head !== undefined) return branchOf(head); // An empty folder `.git` is no repository for git.
    if (at === dirname(at)) return null;
  }
}

async function gitFolderOf(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() === true) return path;
  const text = found === undefined ? undefined : await readSmallFile(path);
  const named = /^gitdir: (.+)/.exec(text ?? "")?.[1];
  return named === undefined ? undefined : resolve(dirname(path), named);
}

/** A table of references keeps the branch elsewhere and has a name that is no branch here. */
function branchOf(head: string): string | null {
  const name = /^ref: refs\/heads\/([^\p{Cc}\s]+)/u.exec(head)?.[1];
  return name === undefined || name === ".invalid" || name.length > NAME_CHARS ? null : name;
}

/** A repository may come from anybody: a pipe or a large file in the place of one of these files is not read. */
async function readSmallFile(path: string): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() !== true) return undefined;
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(FILE_BYTES), 0, FILE_BYTES, 0);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}
