// Connecting to a socket by its path.

import { connect, type Socket } from "node:net";
import { UnavailableError } from "@holdfast/core";
import { errno } from "./paths.ts";

/**
 * Connect to whoever listens there; `undefined` when nobody does. Needs nothing of the other side but that it lives.
 *
 * @throws UnavailableError when the path cannot be used.
 */
export function openSocket(path: string): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.removeAllListeners("error");
      resolve(socket);
    });
    socket.once("error", (error) => {
      const code = errno(error) ?? "";
      if (NOBODY.has(code)) resolve(undefined);
      else
        reject(
          new UnavailableError(
            "storage_unavailable",
            `the owner's socket cannot be used: ${path} (${code})`,
            { at: path, cause: error },
          ),
        );
    });
  });
}

/** Nobody there; a socket left by an owner that died, or that died before it took us; or one that is just being replaced. */
const NOBODY: ReadonlySet<string> = new Set(["ENOENT", "ECONNREFUSED", "ECONNRESET", "ENOTSOCK", "ENOTDIR"]);
