// Why a server of ours cannot listen, in the same words for every server.

import { HoldfastError } from "./errors.ts";

const WHY: Readonly<Record<string, string>> = {
  EADDRINUSE: "another process listens there",
  EACCES: "this user may not use the port",
  EADDRNOTAVAIL: "this machine has no such address",
  ENOTFOUND: "no machine has that name",
};

/** @param option the flag that names another port. */
export function cannotListen(
  what: string,
  { host, port, option }: { readonly host: string; readonly port: number; readonly option: string },
  cause: Error & { readonly code?: string },
): HoldfastError {
  const { code = "", message } = cause;
  return new HoldfastError(
    "cannot_listen",
    `${what} cannot listen on port ${port}: ${WHY[code] ?? message}`,
    {
      at: `${host}:${port}`,
      got: code === "" ? message : code,
      expected: "a free port of an address of this machine",
      fix: `end the process that listens there, or choose another port with ${option} (0 takes any that is free)`,
      cause,
    },
  );
}
