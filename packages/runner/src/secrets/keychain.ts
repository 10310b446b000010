// `openKeychain`: the keychain of the operating system, through the optional package `@napi-rs/keyring`.
//
// Servers and containers have no keychain. Its absence is no error: a caller goes on to the next place of
// secrets.

import { isOlder, packageVersion } from "@holdfast/system";

/** The part of a keychain that is used. A call throws when the keychain is locked or refuses. */
export interface Keychain {
  get(name: string): string | undefined;
  set(name: string, value: string): void;
  delete(name: string): boolean;
  names(): readonly string[];
}

const SERVICE = "holdfast";
/** A variable, so that no compiler and no bundler needs the package. */
const PACKAGE: string = "@napi-rs/keyring";

/** Older ones do not know the choice `PERSISTENT`. */
export const KEYRING_LEAST = "2.1.0";

/** The version of the package where it is too old to be used. */
export function oldKeyring(): string | undefined {
  const found = packageVersion(PACKAGE, import.meta.url);
  return isOlder(found, KEYRING_LEAST) ? found : undefined;
}

/** Without this choice, the package may use the keyring of the Linux kernel, which a restart of the system empties. */
const PERSISTENT = { linux: { store: "secret-service" } } as const;

interface KeyringPackage {
  readonly Entry: new (
    service: string,
    account: string,
    options: typeof PERSISTENT,
  ) => {
    getPassword(): string | null;
    setPassword(value: string): void;
    deletePassword(): boolean;
  };
  findCredentials(service: string): readonly { readonly account: string }[];
}

/** `undefined` without the package or with an old one, and where the system has no keychain. Never throws. */
export async function openKeychain(): Promise<Keychain | undefined> {
  if (oldKeyring() !== undefined) return undefined;
  try {
    const keyring = (await import(PACKAGE)) as KeyringPackage;
    new keyring.Entry(SERVICE, "probe", PERSISTENT).getPassword(); // Throws where the system has none.
    return keychainOf(keyring);
  } catch {
    return undefined;
  }
}

function keychainOf({ Entry, findCredentials }: KeyringPackage): Keychain {
  return {
    get: (name) => new Entry(SERVICE, name, PERSISTENT).getPassword() ?? undefined,
    set: (name, value) => new Entry(SERVICE, name, PERSISTENT).setPassword(value),
    delete: (name) => new Entry(SERVICE, name, PERSISTENT).deletePassword(),
    names: () => findCredentials(SERVICE).map(({ account }) => account),
  };
}
