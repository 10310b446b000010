// The admin token of a coordinator: in a file that only the user who starts the coordinator may read, made at
// the first start.
//
//   - A user who can read the folder of a coordinator's data has access to all of it anyway. A missing file
//     is therefore made again, with another token, and the token before stays valid until it is revoked.
//   - The token is written to the file and nowhere else: exclusively to a new file, or over a file that held
//     a token before. Any other file at the path is refused. A token whose file cannot be written is revoked.

import { lstatSync } from "node:fs";
import { join } from "node:path";
import type { Coordinator } from "@holdfast/coordinator";
import { HoldfastError } from "@holdfast/core";
import { createPrivate, replacePrivate } from "@holdfast/system";
import { readBounded } from "./settings/config.ts";

const FILE = "admin-token";

export interface AdminToken {
  readonly path: string;
  readonly isNew: boolean;
}

/** @throws HoldfastError `config_invalid` or `storage_unavailable` when the file cannot be written. */
export async function keepAdminToken(
  coordinator: Pick<Coordinator, "createToken" | "isAdminToken" | "revokeToken">,
  folder: string,
): Promise<AdminToken> {
  const path = adminTokenFile(folder);
  const known = readToken(path);
  if (known !== undefined && (await coordinator.isAdminToken(known))) return { path, isNew: false };
  const write = isThere(path) ? replacePrivate : createPrivate;
  if (write === replacePrivate) refuseForeignFile(path, known);
  const text = await coordinator.createToken({ kind: "admin", name: "first" });
  try {
    write(path, `${text}\n`);
  } catch (cause) {
    await coordinator.revokeToken(text);
    if (HoldfastError.is(cause)) throw cause;
    throw new HoldfastError("storage_unavailable", `the admin's token cannot be written to ${path}`, {
      at: path,
      got: (cause as NodeJS.ErrnoException).code ?? "",
      cause,
    });
  }
  return { path, isNew: true };
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Only a file of ours that held such a token is replaced. */
function refuseForeignFile(path: string, content: string | undefined): void {
  const found = lstatSync(path);
  const isOurs = found.isFile() && found.nlink === 1 && found.uid === (process.getuid?.() ?? found.uid);
  if (isOurs && content?.startsWith("hf_") === true) return;
  throw new HoldfastError("config_invalid", `the path of the admin's token holds something else: ${path}`, {
    at: path,
    expected: "no file, or a token file that a coordinator wrote and only this user may read",
    fix: "move it away; the coordinator makes the file when it starts",
  });
}

export function adminTokenFile(folder: string): string {
  return join(folder, FILE);
}

/** The content of a token's file; nothing when there is no file. */
export function readToken(path: string): string | undefined {
  try {
    return readBounded(path).trim();
  } catch {
    return undefined;
  }
}
