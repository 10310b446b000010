// `Sealing`: encrypts texts for the storage, with keys that are not in the storage.
//
//   - AES-256-GCM, with a nonce of its own for each text, and with the identity of its record as additional data.
//     A text that was moved to another record is therefore not decrypted.
//   - The first key encrypts, and every key decrypts. A text names its key by a hash of the key.
//   - A key is derived from a random text of at least `KEY_CHARS` characters, which its owner keeps.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { HoldfastError } from "@holdfast/core";

/** An encrypted text. The parts are in base64, and the name of the key in hexadecimal. */
export interface Sealed {
  readonly key: string;
  readonly nonce: string;
  readonly tag: string;
  readonly text: string;
}

interface Key {
  readonly name: string;
  readonly bytes: Buffer;
}

/** The shortest text of a key: 128 random bits in hexadecimal. */
const KEY_CHARS = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const NAME_BYTES = 8;

export class Sealing {
  readonly #keys: readonly Key[];

  /**
   * @param keys texts of keys; without any, nothing is encrypted and nothing decrypted.
   * @throws HoldfastError `config_invalid`
   */
  constructor(keys: readonly string[]) {
    if (keys.some((text) => text.length < KEY_CHARS))
      throw new HoldfastError("config_invalid", "a key of environments is too short", {
        at: "environmentKeys",
        expected: `at least ${KEY_CHARS} characters`,
      });
    this.#keys = keys.map((text) => ({
      name: derived(text, "holdfast key name", NAME_BYTES).toString("hex"),
      bytes: derived(text, "holdfast environments", 32),
    }));
  }

  get hasKey(): boolean {
    return this.#keys.length > 0;
  }

  /** Whether the text of a record can be decrypted, as far as its key says. */
  knows({ key }: Sealed): boolean {
    return this.#keys.some(({ name }) => name === key);
  }

  /** Whether it was encrypted with the first key. */
  isNewest({ key }: Sealed): boolean {
    return this.#keys[0]?.name === key;
  }

  /** @param identity of the record, which is the same when it is opened. @throws HoldfastError `secret_key` */
  seal(text: string, identity: string): Sealed {
    const [first] = this.#keys;
    if (first === undefined) throw noKey();
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", first.bytes, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(additionalData(identity));
    const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
    return {
      key: first.name,
      nonce: nonce.toString("base64"),
      tag: cipher.getAuthTag().toString("base64"),
      text: sealed.toString("base64"),
    };
  }

  /** @throws HoldfastError `secret_key` without the right key, `corrupt_record` for a text that was changed or moved. */
  open(sealed: Sealed, identity: string): string {
    if (!this.hasKey) throw noKey();
    const key = this.#keys.find(({ name }) => name === sealed.key);
    if (key === undefined) throw wrongKey(sealed.key);
    try {
      const [nonce, tag, text] = [sealed.nonce, sealed.tag, sealed.text].map((part) =>
        Buffer.from(part, "base64"),
      );
      const decipher = createDecipheriv("aes-256-gcm", key.bytes, nonce!, { authTagLength: TAG_BYTES })
        .setAAD(additionalData(identity))
        .setAuthTag(tag!);
      return Buffer.concat([decipher.update(text!), decipher.final()]).toString("utf8");
    } catch {
      throw new HoldfastError(
        "corrupt_record",
        "an environment of the coordinator was changed or moved in its storage",
        {
          at: identity,
          fix: "delete the environment, and set it again",
        },
      );
    }
  }
}

function additionalData(identity: string): Buffer {
  // mutant: environment-moved
  return Buffer.from(identity);
}

function derived(text: string, use: string, bytes: number): Buffer {
  return Buffer.from(hkdfSync("sha256", text, "", use, bytes));
}

function noKey(): HoldfastError {
  return new HoldfastError(
    "secret_key",
    "the coordinator has no key, so it stores and reads no environments",
    {
      expected: "a coordinator with a key for environments",
      fix: "have its operator make a key, `(umask 077; openssl rand -hex 32 > FILE)`, and start it with --environment-key FILE",
    },
  );
}

/** @param name of the key that is needed. */
export function wrongKey(name: string): HoldfastError {
  return new HoldfastError("secret_key", "the coordinator does not have the key of an environment", {
    got: `an environment that was encrypted with the key ${name}`,
    expected: "every key with which environments were encrypted",
    fix: "start the coordinator with that key as a further --environment-key. If it is lost, start the coordinator without keys, delete the environments, and set them again with a new key",
  });
}
