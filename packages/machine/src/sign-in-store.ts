// `signInStore`: the sign-ins of the user to MCP servers, in the keychain or the encrypted file of the
// secrets.
//
// The secrets are opened for each call, because another process may have changed them. A lock of the
// operating system keeps two processes from renewing one token at once.

import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { SignInStore } from "@holdfast/mcp";
import { ConflictError } from "@holdfast/core";
import { makePrivateFolder } from "@holdfast/system";
import { openKeychain, SecretPlaces, type SecretPlacesOptions } from "@holdfast/runner/secrets";
import { lockFile } from "@holdfast/storage/lock-file";

/** A renewal asks an issuer, which answers within seconds. */
const LOCK_MS = 60_000;
const LOCK_RETRY_MS = 50;

/** @param folder the data folder. */
export function signInStore(
  folder: string,
  { env, askPassphrase }: Pick<SecretPlacesOptions, "env" | "askPassphrase">,
): SignInStore & {
  /** The names of the stored secrets; none where their place cannot be used. Asks nobody, and reads no value. */
  readonly names: () => Promise<readonly string[]>;
  readonly delete: (key: string) => Promise<boolean>;
} {
  const open = async (): Promise<SecretPlaces> =>
    new SecretPlaces({
      env,
      keychain: await openKeychain(),
      path: join(folder, "secrets.json"),
      askPassphrase,
    });
  return {
    read: async (key) => (await open()).value(key),
    write: async (key, value) => void (await (await open()).store(key, value)),
    exclusively: async (work) => {
      makePrivateFolder(folder);
      const path = join(folder, "sign-ins.lock");
      for (const since = performance.now(); ;) {
        const lock = lockFile(path);
        if (lock !== undefined)
          try {
            return await work();
          } finally {
            lock.close();
          }
        if (performance.now() - since > LOCK_MS)
          throw new ConflictError("locked", "another process renews a sign-in and does not end", {
            at: path,
            expected: `the end of its work within ${LOCK_MS / 1_000} s`,
            fix: "end the other process, or try again later",
          });
        await delay(LOCK_RETRY_MS);
      }
    },
    names: async () => {
      try {
        return (await open()).stored().map(({ name }) => name);
      } catch {
        return []; // The command that needs a value says what is wrong with the place.
      }
    },
    delete: async (key) => (await open()).delete(key).length > 0,
  };
}
