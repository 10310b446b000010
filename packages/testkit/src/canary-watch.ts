// `armScan`: lets a `CanaryScan` see what the process of a test receives and removes, until it is disarmed.
//
//   canary-watch-1. A folder below the machine's folder for temporary files is searched before this process
//       removes it. It may hold databases, logs, audit rows, crash reports and core files.
//   - Everything that `canary-received.ts` sees is searched.
//
// Leaky: a folder that another process removes is not seen.

import fs, { lstatSync, realpathSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { relative } from "node:path";
import { watchReceived } from "./canary-received.ts";
import type { CanaryScan } from "./canary-scan.ts";

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
  watchReceived(armed);
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
