// The token of whoever starts a coordinator: in a file of theirs alone, made at the first start.
//
//   K1. Who can read the folder of a coordinator's data has all of it anyway; so a file that is not there is made again, with another
//       token, and the one before stays until it is revoked.
//   K2. The token is written to the file and nowhere else.

import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Coordinator } from "@holdfast/coordinator";
import { HoldfastError } from "@holdfast/core";
import { readBounded } from "./config.ts";

const FILE = "admin-token";

export interface AdminToken {
  readonly path: string;
  readonly isNew: boolean;
}

/** @throws HoldfastError `storage_unavailable` when the file cannot be written. */
export async function keepAdminToken(coordinator: Coordinator, folder: string): Promise<AdminToken> {
  const path = adminTokenFile(folder);
  const known = readToken(path);
  if (known !== undefined && (await coordinator.isAdminToken(known))) return { path, isNew: false };
  const text = await coordinator.createToken({ kind: "admin", name: "first" });
  try {
    writeFileSync(path, `${text}\n`, { mode: 0o600 });
    chmodSync(path, 0o600); // One that was there keeps its mode.
  } catch (cause) {
    throw new HoldfastError("storage_unavailable", `the admin's token cannot be written to ${path}`, {
      at: path,
      got: (cause as NodeJS.ErrnoException).code ?? "",
      cause,
    });
  }
  return { path, isNew: true };
}

export function adminTokenFile(folder: string): string {
  return join(folder, FILE);
}

/** What a file of a token says; nothing when it is not there. */
export function readToken(path: string): string | undefined {
  try {
    return readBounded(path).trim();
  } catch {
    return undefined;
  }
}
