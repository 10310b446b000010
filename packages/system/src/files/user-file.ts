// `readUserFile`: a small JSON file of the user's data folder that decides about trust or permissions.
//
// A file that other users may write, or that has another version or form, is refused and never guessed at.

import { readFileSync, statSync } from "node:fs";
import { HoldfastError } from "@holdfast/core";
import { requireFileVersion } from "./file-version.ts";
import { isWritableByOthers } from "./private-file.ts";

export interface UserFile<T> {
  /** "trusted folders": completes "the file of …". */
  readonly what: string;
  /** The form of the file, for an error. */
  readonly expected: string;
  readonly fix: string;
  /** Throws for another form. */
  readonly schema: { readonly parse: (value: unknown) => T };
}

/** @returns nothing when there is no file. @throws HoldfastError `config_invalid`, `version_unsupported` */
export function readUserFile<T>(path: string, { what, expected, fix, schema }: UserFile<T>): T | undefined {
  const damaged = (why: string): HoldfastError =>
    new HoldfastError("config_invalid", `the file of ${what} cannot be used: ${why}`, {
      at: path,
      expected: `${expected}, written by this user only`,
      fix,
    });
  let text: string;
  try {
    if (isWritableByOthers(statSync(path))) throw damaged("other users may write it");
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw HoldfastError.is(error) ? error : damaged(`it cannot be read: ${message}`);
  }
  try {
    const value: unknown = JSON.parse(text);
    requireFileVersion(value, what, path);
    return schema.parse(value);
  } catch (error) {
    if (HoldfastError.is(error)) throw error;
    throw damaged("it is not JSON, or has another form");
  }
}
