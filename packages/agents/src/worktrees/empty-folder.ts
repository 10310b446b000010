// `openEmptyFolder`: the folder of a session that begins with no file. Nothing removes it but a person.

import { createHash } from "node:crypto";
import { join } from "node:path";
import { makePrivateFolder } from "@holdfast/runtime/internal";

import { namesOf } from "./worktree-record.ts";

/** @param folder the folder of all empty folders of this user. @param project the folder that the session was started in. */
export function emptyFolderOf(folder: string, project: string, session: string): string {
  const key = createHash("sha256").update(project).digest("hex").slice(0, 12);
  return namesOf(join(folder, key), session).path;
}

/** Makes the folder, or finds it with the files of the session. */
export function openEmptyFolder(folder: string, project: string, session: string): string {
  const path = emptyFolderOf(folder, project, session);
  makePrivateFolder(path);
  return path;
}
