// `armScan`: lets a `CanaryScan` see what the process of a test receives and removes, until it is disarmed.
//
//   canary-watch-1. A folder below the machine's folder for temporary files is searched before this process removes it. It may hold
//       databases, logs, audit rows, crash reports and core files.
//   canary-watch-2. Bytes that a socket or a pipe of this process receives are searched, also across their borders. They are the
//       answers and event streams of HTTP/1.1, and the outputs of child processes.
//
// Leaky: Node reads HTTP/2, and what an HTTP server receives, without this code. A folder that another process removes is not seen.

import fs, { lstatSync, realpathSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { relative } from "node:path";
import type { CanaryScan } from "./canary-scan.ts";

/** More than an encoded secret has. */
const BORDER_BYTES = 512;
/** The border of two chunks of an HTTP/1.1 answer, as it is on the socket. */
const CHUNK_BORDER = /\r\n[\da-f]{1,8}\r\n/gi;
const RECEIVED = "what a socket or a pipe received";
const ARMED = Symbol.for("holdfast.armed-scans");
const global = globalThis as { [ARMED]?: Set<CanaryScan> };

/** Answers the function that disarms it. */
export function armScan(scan: CanaryScan): () => void {
  const armed = (global[ARMED] ??= watched(new Set<CanaryScan>()));
  armed.add(scan);
  return () => void armed.delete(scan);
}

/** Changes functions of Node, once per process. */
function watched(armed: Set<CanaryScan>): Set<CanaryScan> {
  const { rmSync } = fs;
  const { rm } = fs.promises;
  fs.rmSync = (path, options) => {
    if (options?.recursive === true) searchRemoved(armed, String(path));
    rmSync(path, options);
  };
  fs.promises.rm = (path, options) => {
    if (options?.recursive === true) searchRemoved(armed, String(path));
    return rm(path, options);
  };
  syncBuiltinESMExports();
  const ends = new WeakMap<Socket, Buffer>();
  const receive = Socket.prototype.push;
  Socket.prototype.push = function (this: Socket, chunk: unknown, encoding) {
    if (armed.size > 0 && chunk instanceof Uint8Array) {
      const bytes = Buffer.concat([ends.get(this) ?? Buffer.alloc(0), chunk]);
      const unframed = bytes.toString("latin1").replaceAll(CHUNK_BORDER, "");
      for (const scan of armed) {
        scan.search(RECEIVED, bytes);
        if (unframed.length < bytes.length) scan.search(RECEIVED, unframed);
      }
      ends.set(this, bytes.subarray(-BORDER_BYTES));
    }
    return receive.call(this, chunk, encoding);
  };
  return armed;
}

/** canary-watch-1. A file that cannot be read is not searched, because a removal fails for its own reasons only. */
function searchRemoved(armed: ReadonlySet<CanaryScan>, path: string): void {
  try {
    const below = relative(realpathSync(tmpdir()), realpathSync(path));
    if (below === "" || below.startsWith("..") || !lstatSync(path).isDirectory()) return;
    for (const scan of armed) scan.searchFolder(path);
  } catch {
    // It is not there, or its content changes meanwhile.
  }
}
