// holdName and holdFile: a name that marks a database as owned while its owner lives, and that nobody can
// delete.
//
// The lock, the socket and the note beside a database are files, so removing all of them hides the owner. On
// Linux there are also names without a file. This one is made of the folder's identity and the file's name in
// it, so every path to the database leads to it. Other systems have the lock and the socket only.

import { hash } from "node:crypto";
import { statSync } from "node:fs";
import { createServer } from "node:net";
import { basename, dirname } from "node:path";
import { errno } from "./paths.ts";

/**
 * How to release the name of a path; `undefined` when another process, or another part of this one, holds
 * it.
 */
export function holdName(file: string): Promise<(() => void) | undefined> {
  return hold(() => nameOf(file));
}

/** The same for the file itself, whichever of its hard links leads to it. */
export function holdFile(file: string): Promise<(() => void) | undefined> {
  return hold(() => {
    const { dev, ino } = statSync(file, { bigint: true });
    return `\0holdfast-file-${dev}-${ino}`;
  });
}

function hold(name: () => string): Promise<(() => void) | undefined> {
  if (process.platform !== "linux") return Promise.resolve(() => {});
  const server = createServer((socket) => socket.destroy()).unref();
  return new Promise((resolve) => {
    server.once("error", (error) => {
      // No such names here, as in some containers: then there is what other systems have.
      resolve(errno(error) === "EADDRINUSE" ? undefined : () => {});
    });
    // Exclusive: the processes of a cluster would share it otherwise.
    server.listen({ path: name(), exclusive: true }, () => resolve(() => void server.close()));
  });
}

function nameOf(file: string): string {
  const { dev, ino } = statSync(dirname(file), { bigint: true });
  return `\0holdfast-${dev}-${ino}-${hash("sha256", basename(file), "hex").slice(0, 16)}`;
}
