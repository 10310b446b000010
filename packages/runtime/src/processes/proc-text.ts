// `procText`: a file of /proc as text.
//
// A look at all processes of a machine reads hundreds of these files, and one read gives the whole of almost each. `readFile` would
// make five calls on other threads for each file, which takes six times the processor time.

import { closeSync, openSync, readFileSync, readSync } from "node:fs";

const BUFFER = Buffer.allocUnsafe(64 * 1024);

/** Empty for a process that has ended or belongs to another user. */
export function procText(path: string): string {
  try {
    const file = openSync(path, "r");
    try {
      const bytes = readSync(file, BUFFER);
      return bytes < BUFFER.length ? BUFFER.toString("latin1", 0, bytes) : readFileSync(path, "latin1");
    } finally {
      closeSync(file);
    }
  } catch {
    return "";
  }
}
