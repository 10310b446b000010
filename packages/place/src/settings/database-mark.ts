// `markOf`: the mark that this user gives to a database in a project, made by a key of the user's data
// folder.

import { createHmac, randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createPrivate, makePrivateFolder } from "@holdfast/system";

/** The text for the id of a database; `undefined` where the data folder can hold no key. */
export type Mark = (id: string) => string | undefined;

export function markOf(dataFolder: string): Mark {
  return (id) => {
    const key = keyIn(dataFolder);
    return key === undefined ? undefined : createHmac("sha256", key).update(id).digest("hex");
  };
}

function keyIn(folder: string): Buffer | undefined {
  const path = join(folder, "database-key");
  try {
    if (!existsSync(path)) {
      makePrivateFolder(folder);
      createPrivate(path, randomBytes(32).toString("hex"));
    }
  } catch {
    // Another process has just made it, or nothing can be written here.
  }
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}
