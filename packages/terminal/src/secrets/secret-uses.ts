// `noteUses`, `lastUses`: when a process of this user last took each stored secret. Names and times, never a
// value.
//
//   - The times are a help for people. A file that cannot be read or written stops nothing: its uses are
//     unknown then.
//   - A use is the start of a process that takes the value. When two processes start at once, the use by one
//     may be missing.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isSecretName, replacePrivate } from "@holdfast/system";
import type { Io } from "../frame/command.ts";
import { dataFolder } from "@holdfast/system";

const NAMES_MAX = 1_000;

/** Epoch milliseconds of the last use of each name. */
export function lastUses(io: Io): ReadonlyMap<string, number> {
  try {
    const found = JSON.parse(readFileSync(pathOf(io), "utf8")) as unknown;
    if (typeof found !== "object" || found === null) return new Map();
    return new Map(
      Object.entries(found).filter(
        (entry): entry is [string, number] => isSecretName(entry[0]) && Number.isSafeInteger(entry[1]),
      ),
    );
  } catch {
    return new Map(); // The times are a help for people, and their loss stops nothing.
  }
}

export function noteUses(names: readonly string[], now: number, io: Io): void {
  if (names.length === 0) return;
  const uses = new Map(lastUses(io));
  for (const name of names) uses.set(name, now);
  const newest = [...uses].toSorted(([, a], [, b]) => b - a).slice(0, NAMES_MAX);
  try {
    replacePrivate(pathOf(io), `${JSON.stringify(Object.fromEntries(newest))}\n`);
  } catch {
    // The times are a help for people, and their loss stops nothing.
  }
}

function pathOf(io: Io): string {
  return join(dataFolder(io), "secret-uses.json");
}
