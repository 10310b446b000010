// `readKeyFile`: the text of a key in a private file.
//
//   - A key file does not lie in the folder of what it opens: a copy of that folder would open itself.

import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { isWritableByOthers } from "./private-file.ts";

const KEY_BYTES_MAX = 64 * 1024;
const KEY_CHARS = 32;

/** The advice for a key file that cannot be used. */
export const KEY_FILE_FIX = "make one in another folder: (umask 077; openssl rand -hex 32 > FILE)";

/**
 * @param opens the path of the file that the key opens, which need not exist; `undefined` for none.
 * @param what names the folder of that file in errors.
 * @throws Error with the reason.
 */
export function readKeyFile(path: string, opens: string | undefined, what: string): string {
  const stats = statSync(path);
  if (!stats.isFile() || stats.size > KEY_BYTES_MAX) throw new Error("it is no small file");
  if ((stats.mode & 0o077) !== 0 || isWritableByOthers(stats))
    throw new Error("other users may read or write it; run chmod 600 on it");
  if (opens !== undefined && isSameFolder(path, opens)) throw new Error(`it lies in the folder of ${what}`);
  const key = readFileSync(path, "utf8").trim();
  if (key.length < KEY_CHARS) throw new Error(`it has fewer than ${KEY_CHARS} characters`);
  return key;
}

function isSameFolder(key: string, opened: string): boolean {
  const folder = (path: string): string => {
    try {
      return realpathSync(dirname(path));
    } catch {
      return dirname(path); // It is made with the first content.
    }
  };
  return folder(realpathSync(key)) === folder(opened);
}
