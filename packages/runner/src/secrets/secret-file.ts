// `SecretFile`: values of secrets, encrypted in one file of this user. A user opts in with
// `holdfast secret set`.
//
//   - Each value is encrypted by AES-256-GCM, with a nonce of its own and with the scope and the name as
//     additional data. A value that was moved to another name is therefore not decrypted.
//   - The key is not in the file. It is derived from a passphrase by scrypt, kept in the keychain of the
//     system, or in a file in another folder.
//   - Names are readable without the key, so that `secret list` asks for nothing.
//   - The file is replaced as a whole, with mode 0600. A process that ends in between leaves the old file.
//   - A file that other users may write, or whose content is wrong, is an error and is not changed.

import { HoldfastError, MIB } from "@holdfast/core";
import {
  isSecretName,
  isWritableByOthers,
  makePrivateFolder,
  replacePrivate,
  requireFileVersion,
} from "@holdfast/system";
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes, scryptSync } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";

const VERSION = 1;
const SCOPE = "user";
const BYTES_MAX = 4 * MIB;
/** 128 MiB and about 0.4 s: a guess costs as much. */
const SCRYPT = { N: 2 ** 17, r: 8, p: 1, maxmem: 160 * MIB } as const;

/** Where the key of a file is. */
export type KeyPlace = "passphrase" | "keychain" | "key_file";

interface Sealed {
  readonly nonce: string;
  readonly tag: string;
  readonly text: string;
}

interface Content {
  readonly version: typeof VERSION;
  readonly key: KeyPlace;
  /** For scrypt, in hexadecimal. */
  readonly salt: string;
  /** A known text, by which a wrong key is recognised. */
  readonly check: Sealed;
  readonly secrets: Readonly<Record<string, Sealed>>;
}

/** The key's material from its place: a passphrase, or 32 random bytes as text. */
export type KeyMaterial = (place: KeyPlace) => string | Promise<string>;

export class SecretFile {
  readonly path: string;
  #content: Content | undefined;
  #key: Buffer | undefined;

  /** @throws HoldfastError `config_invalid` for a file that cannot be used, `version_unsupported`. */
  constructor(path: string) {
    this.path = path;
    this.#content = this.#read();
  }

  get names(): readonly string[] {
    return Object.keys(this.#content?.secrets ?? {}).toSorted();
  }

  /** Where the key is; `undefined` before the first value. */
  get keyPlace(): KeyPlace | undefined {
    return this.#content?.key;
  }

  /** @throws HoldfastError `secret_key` for a wrong key, `config_invalid` for a damaged value. */
  async get(name: string, material: KeyMaterial): Promise<string | undefined> {
    const content = this.#content;
    if (content === undefined || !Object.hasOwn(content.secrets, name)) return undefined;
    const key = await this.#unlock(content, material);
    return this.#open(content.secrets[name]!, name, key);
  }

  /** @param place of the key, for the first value. */
  async set(name: string, value: string, place: KeyPlace, material: KeyMaterial): Promise<void> {
    let content = this.#content;
    if (content === undefined) {
      const salt = randomBytes(16).toString("hex");
      this.#key = deriveKey(place, await material(place), salt);
      content = { version: VERSION, key: place, salt, check: seal(CHECK, "", this.#key), secrets: {} };
    }
    const key = await this.#unlock(content, material);
    this.#write({ ...content, secrets: { ...content.secrets, [name]: seal(value, name, key) } });
  }

  /** Needs no key. Answers whether there was one. */
  delete(name: string): boolean {
    if (this.#content === undefined || !Object.hasOwn(this.#content.secrets, name)) return false;
    const { [name]: _, ...secrets } = this.#content.secrets;
    this.#write({ ...this.#content, secrets });
    return true;
  }

  async #unlock(content: Content, material: KeyMaterial): Promise<Buffer> {
    if (this.#key !== undefined) return this.#key;
    const key = deriveKey(content.key, await material(content.key), content.salt);
    if (unsealed(content.check, "", key) !== CHECK)
      throw new HoldfastError("secret_key", "the key does not fit the file of secrets", {
        at: this.path,
        expected: KEY_WORDS[content.key],
        fix: "give that key, or remove the file and set its secrets again",
      });
    return (this.#key = key);
  }

  #open(sealed: Sealed, name: string, key: Buffer): string {
    const value = unsealed(sealed, name, key);
    if (value !== undefined) return value;
    throw this.#wrong(`the secret ${name} was changed or moved`, "set this secret again");
  }

  #write(content: Content): void {
    makePrivateFolder(dirname(this.path));
    try {
      replacePrivate(this.path, `${JSON.stringify(content, undefined, 2)}\n`);
    } catch (cause) {
      const got = (cause as NodeJS.ErrnoException).code ?? "it failed";
      throw new HoldfastError("storage_unavailable", `the file of secrets cannot be written: ${got}`, {
        at: this.path,
        got,
        fix: "make its folder writable for this user, or name another place in XDG_DATA_HOME",
        cause,
      });
    }
    this.#content = content;
  }

  #read(): Content | undefined {
    let text: string;
    try {
      const stats = statSync(this.path);
      if (!stats.isFile()) throw this.#wrong("it is not a file");
      if (isWritableByOthers(stats)) throw this.#wrong("other users may write it", "run chmod go-w on it");
      if (stats.size > BYTES_MAX) throw this.#wrong(`it has more than ${BYTES_MAX} bytes`);
      text = readFileSync(this.path, "utf8");
    } catch (error) {
      if (HoldfastError.is(error)) throw error;
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT" || code === "ENOTDIR") return undefined;
      throw this.#wrong(code ?? "it cannot be read");
    }
    const content = contentOf(text, this.path);
    if (content === undefined) throw this.#wrong("its content is not that of a file of secrets");
    return content;
  }

  #wrong(
    why: string,
    fix = "restore it from a backup, or remove it and set its secrets again",
  ): HoldfastError {
    return new HoldfastError("config_invalid", `the file of secrets cannot be used: ${why}`, {
      at: this.path,
      fix,
    });
  }
}

const KEY_WORDS: Readonly<Record<KeyPlace, string>> = {
  passphrase: "the passphrase with which the file was made",
  keychain: "the key that the keychain of this system held when the file was made",
  key_file: "the key file with which the file was made, in HOLDFAST_SECRET_KEY_FILE",
};
const CHECK = "holdfast";

/** The key itself. Other keys than passphrases are random, so that nobody can guess them. */
function deriveKey(place: KeyPlace, material: string, saltHex: string): Buffer {
  const salt = Buffer.from(saltHex, "hex");
  if (place === "passphrase") return scryptSync(material.normalize("NFC"), salt, 32, SCRYPT);
  return Buffer.from(hkdfSync("sha256", material, salt, "holdfast secrets", 32));
}

function seal(value: string, name: string, key: Buffer): Sealed {
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(`${SCOPE}/${name}`));
  const text = Buffer.concat([cipher.update(value, "utf8"), cipher.final()]).toString("base64");
  return { nonce: nonce.toString("base64"), tag: cipher.getAuthTag().toString("base64"), text };
}

/** `undefined` when the key, the name or a byte is another one. */
function unsealed(sealed: Sealed, name: string, key: Buffer): string | undefined {
  try {
    const [nonce, tag, text] = [sealed.nonce, sealed.tag, sealed.text].map((part) =>
      Buffer.from(part, "base64"),
    );
    const decipher = createDecipheriv("aes-256-gcm", key, nonce!, { authTagLength: 16 })
      .setAAD(Buffer.from(`${SCOPE}/${name}`))
      .setAuthTag(tag!);
    return Buffer.concat([decipher.update(text!), decipher.final()]).toString("utf8");
  } catch {
    return undefined;
  }
}

function contentOf(text: string, at: string): Content | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  requireFileVersion(value, "secrets", at);
  const { version, key, salt, check, secrets } = (value ?? {}) as Partial<Record<keyof Content, unknown>>;
  const isContent =
    version === VERSION &&
    typeof key === "string" &&
    Object.hasOwn(KEY_WORDS, key) &&
    typeof salt === "string" &&
    isSealed(check) &&
    typeof secrets === "object" &&
    secrets !== null &&
    Object.entries(secrets).every(([name, sealed]) => isSecretName(name) && isSealed(sealed));
  return isContent ? (value as Content) : undefined;
}

function isSealed(value: unknown): value is Sealed {
  if (typeof value !== "object" || value === null) return false;
  const { nonce, tag, text } = value as Partial<Record<keyof Sealed, unknown>>;
  return [nonce, tag, text].every((part) => typeof part === "string");
}
