// `signInStore`: the sign-ins of the user to MCP servers, in the keychain or the encrypted file of the secrets.
//
// The secrets are opened for each call, because another process may have changed them.

import { join } from "node:path";
import type { SignInStore } from "@holdfast/agents";
import { openKeychain, SecretPlaces, type SecretPlacesOptions } from "@holdfast/runner/secrets";

/** @param folder the data folder. */
export function signInStore(
  folder: string,
  { env, askPassphrase }: Pick<SecretPlacesOptions, "env" | "askPassphrase">,
): SignInStore & {
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
    names: async () => (await open()).stored().map(({ name }) => name),
    delete: async (key) => (await open()).delete(key).length > 0,
  };
}
