// openSocket: connects to a socket by its path.

import { connect, type Socket } from "node:net";
import { UnavailableError } from "@holdfast/core";
import { errno } from "./paths.ts";

/**
 * Connect to the process that listens there; `undefined` when none does. The other side needs only to be
 * alive.
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

/**
 * Nobody listens: there is no socket, or it is being replaced, or its owner has died, at the latest while it
 * accepted the connection.
 */
const NOBODY: ReadonlySet<string> = new Set(["ENOENT", "ECONNREFUSED", "ECONNRESET", "ENOTSOCK", "ENOTDIR"]);
