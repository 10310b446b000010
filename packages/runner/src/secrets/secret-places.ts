// `SecretPlaces`: the places of secrets, in order, and where each value comes from.
//
//   - The order is: given to this command, environment, keychain, encrypted file. The first place that has a
//     name supplies its value.
//   - A key of the file is asked for only when a value is needed that no other place has.
//   - A key file does not lie in the folder of the secrets: a copy of that folder would open itself.

import { defined, HoldfastError } from "@holdfast/core";
import { KEY_FILE_FIX, readKeyFile } from "@holdfast/system";
import { randomBytes } from "node:crypto";
import { KEYRING_LEAST, oldKeyring, type Keychain } from "./keychain.ts";
import { SecretFile, type KeyPlace } from "./secret-file.ts";

export const SECRET_PLACES = ["given", "environment", "keychain", "file"] as const;
export type SecretPlace = (typeof SECRET_PLACES)[number];

/** The account of the file's key in the keychain. No secret has this name, which has a dash. */
const KEY_ACCOUNT = "encryption-key";

export interface SecretPlacesOptions {
  readonly given?: ReadonlyMap<string, string>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly keychain: Keychain | undefined;
  /** The path of the encrypted file, which need not exist. */
  readonly path: string;
  /** Asks a person for the passphrase; `undefined` where there is no person. */
  readonly askPassphrase?: ((isNew: boolean) => Promise<string>) | undefined;
}

export class SecretPlaces {
  readonly #options: SecretPlacesOptions;
  readonly #file: SecretFile;

  /** @throws HoldfastError `config_invalid` for a file of secrets that cannot be used. */
  constructor(options: SecretPlacesOptions) {
    this.#options = options;
    this.#file = new SecretFile(options.path);
  }

  /** The place that supplies a name, without its value. */
  placeOf(name: string): SecretPlace | undefined {
    const { given, env, keychain } = this.#options;
    if (isValue(given?.get(name))) return "given";
    if (isValue(env[name])) return "environment";
    if (isValue(keychain?.get(name))) return "keychain";
    return this.#file.names.includes(name) ? "file" : undefined;
  }

  /** @throws HoldfastError `secret_key` when the file cannot be opened. */
  async value(name: string): Promise<string | undefined> {
    const { given, env, keychain } = this.#options;
    switch (this.placeOf(name)) {
      case undefined:
        return undefined;
      case "given":
        return given?.get(name);
      case "environment":
        return env[name];
      case "keychain":
        return keychain?.get(name);
      case "file":
        return this.#valueInFile(name);
    }
  }

  async #valueInFile(name: string): Promise<string | undefined> {
    try {
      return await this.#file.get(name, (place) => this.#keyMaterial(place, false));
    } catch (error) {
      if (!HoldfastError.is(error)) throw error;
      const { code, at, expected, fix } = error;
      throw new HoldfastError(
        code,
        `the secret ${name} cannot be read: ${error.message}`,
        defined({ at, expected, fix }),
      );
    }
  }

  /** Every stored name with its place, in the order of names. */
  stored(): readonly { readonly name: string; readonly place: "keychain" | "file" }[] {
    const inKeychain = (this.#options.keychain?.names() ?? []).filter((name) => name !== KEY_ACCOUNT);
    const all = [
      ...inKeychain.map((name) => ({ name, place: "keychain" as const })),
      ...this.#file.names.map((name) => ({ name, place: "file" as const })),
    ];
    return all.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Stores a value where the user wants it: by default in the keychain, else in the file. */
  async store(name: string, value: string, wanted?: "keychain" | "file"): Promise<"keychain" | "file"> {
    const { keychain } = this.#options;
    const old = oldKeyring();
    if (wanted === "keychain" && keychain === undefined)
      throw new HoldfastError("config_invalid", "this system has no keychain that can be used", {
        ...(old === undefined ? {} : { got: `@napi-rs/keyring ${old}` }),
        expected: `the package @napi-rs/keyring in version ${KEYRING_LEAST} or newer, and a keychain that is unlocked`,
        fix: "install the package, or store the secret with --to file",
      });
    if (keychain !== undefined && wanted !== "file") {
      keychain.set(name, value);
      return "keychain";
    }
    const isNew = this.#file.keyPlace === undefined;
    await this.#file.set(name, value, this.#placeOfNewKey(), (place) => this.#keyMaterial(place, isNew));
    return "file";
  }

  /** Removes every stored value of this name. Answers from where. */
  delete(name: string): readonly ("keychain" | "file")[] {
    const places = this.stored().flatMap((stored) => (stored.name === name ? [stored.place] : []));
    if (places.includes("keychain")) this.#options.keychain?.delete(name);
    if (places.includes("file")) this.#file.delete(name);
    return places;
  }

  #placeOfNewKey(): KeyPlace {
    const { env, keychain } = this.#options;
    if (isValue(env["HOLDFAST_SECRET_KEY_FILE"])) return "key_file";
    return keychain === undefined ? "passphrase" : "keychain";
  }

  async #keyMaterial(place: KeyPlace, isNew: boolean): Promise<string> {
    switch (place) {
      case "key_file":
        return this.#keyFile();
      case "keychain":
        return this.#keychainKey(isNew);
      case "passphrase":
        return this.#passphrase(isNew);
    }
  }

  async #passphrase(isNew: boolean): Promise<string> {
    const { askPassphrase } = this.#options;
    if (askPassphrase === undefined)
      throw this.#noKey(
        "there is no terminal to ask for the passphrase",
        isNew
          ? "run the command on a terminal, or name a file with a key of at least 32 characters in HOLDFAST_SECRET_KEY_FILE"
          : "run the command on a terminal",
      );
    return askPassphrase(isNew);
  }

  #keychainKey(isNew: boolean): string {
    const { keychain } = this.#options;
    const known = keychain?.get(KEY_ACCOUNT);
    if (isValue(known)) return known;
    if (!isNew || keychain === undefined)
      throw this.#noKey("the keychain does not have it", "unlock the keychain that had it");
    const key = randomBytes(32).toString("hex");
    keychain.set(KEY_ACCOUNT, key);
    return key;
  }

  #keyFile(): string {
    const path = this.#options.env["HOLDFAST_SECRET_KEY_FILE"];
    if (!isValue(path))
      throw this.#noKey("HOLDFAST_SECRET_KEY_FILE is not set", "set it to the path of the key file");
    try {
      return readKeyFile(path, this.#options.path, "the secrets");
    } catch (error) {
      throw this.#noKey(`the key file cannot be used: ${(error as Error).message}`, KEY_FILE_FIX, path);
    }
  }

  #noKey(why: string, fix: string, at = this.#options.path): HoldfastError {
    return new HoldfastError("secret_key", `the key of the encrypted secrets is missing: ${why}`, {
      at,
      fix: `${fix}, or give the secrets in the environment`,
    });
  }
}

function isValue(text: string | undefined): text is string {
  return text !== undefined && text !== "";
}
