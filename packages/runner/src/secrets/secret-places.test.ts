import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Keychain } from "./keychain.ts";
import { SecretPlaces, type SecretPlacesOptions } from "./secret-places.ts";

let folder: string;
let keyFile: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-places-"));
  mkdirSync(join(folder, "keys"));
  keyFile = join(folder, "keys", "key");
  writeFileSync(keyFile, `${"0123456789abcdef".repeat(4)}\n`, { mode: 0o600 });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const places = (options: Partial<SecretPlacesOptions> = {}): SecretPlaces =>
  new SecretPlaces({ env: {}, keychain: undefined, path: join(folder, "secrets.json"), ...options });
const withKeyFile = (): SecretPlaces => places({ env: { HOLDFAST_SECRET_KEY_FILE: keyFile } });

/** A keychain as a system has it, in memory. */
function memoryKeychain(): Keychain {
  const values = new Map<string, string>();
  return {
    get: (name) => values.get(name),
    set: (name, value) => void values.set(name, value),
    delete: (name) => values.delete(name),
    names: () => [...values.keys()],
  };
}

test("the first place that has a name supplies its value", async () => {
  const keychain = memoryKeychain();
  const env = { HOLDFAST_SECRET_KEY_FILE: keyFile };
  await places({ keychain, env }).store("K", "in the file", "file");
  expect(await places({ keychain, env }).value("K")).toBe("in the file");
  keychain.set("K", "in the keychain");
  expect(await places({ keychain, env }).value("K")).toBe("in the keychain");
  expect(await places({ keychain, env: { ...env, K: "in the environment" } }).value("K")).toBe(
    "in the environment",
  );
  const given = new Map([["K", "given"]]);
  const all = places({ keychain, env: { ...env, K: "in the environment" }, given });
  expect([all.placeOf("K"), await all.value("K")]).toEqual(["given", "given"]);
  expect([all.placeOf("NONE"), await all.value("NONE")]).toEqual([undefined, undefined]);
});

test("an empty variable is no value", () => {
  expect(places({ env: { K: "" } }).placeOf("K")).toBeUndefined();
});

test("names are listed without the key of the file, and the keychain's own key is no name", async () => {
  const keychain = memoryKeychain();
  await places({ keychain }).store("B", "value", "file");
  await places({ keychain }).store("A", "value");
  expect(places({ keychain }).stored()).toEqual([
    { name: "A", place: "keychain" },
    { name: "B", place: "file" },
  ]);
  expect(places({ keychain }).delete("B")).toEqual(["file"]);
  expect(places({ keychain }).delete("B")).toEqual([]);
});

describe("the key of the file", () => {
  test("a passphrase is asked for, once as a new one and then as the known one", async () => {
    const asked: boolean[] = [];
    const askPassphrase = async (isNew: boolean) => {
      asked.push(isNew);
      return "correct horse";
    };
    await places({ askPassphrase }).store("K", "value");
    expect(await places({ askPassphrase }).value("K")).toBe("value");
    expect(asked).toEqual([true, false]);
  });

  test("a key in the keychain opens the file, and another keychain does not", async () => {
    const keychain = memoryKeychain();
    await places({ keychain }).store("K", "value", "file");
    expect(await places({ keychain }).value("K")).toBe("value");
    await expect(places({ keychain: memoryKeychain() }).value("K")).rejects.toMatchObject({
      code: "secret_key",
    });
  });

  test("a key file opens the file", async () => {
    await withKeyFile().store("K", "value");
    expect(await withKeyFile().value("K")).toBe("value");
  });

  const wrong: Readonly<Record<string, () => string | undefined>> = {
    "lies in the folder of the secrets": () => {
      const inside = join(folder, "key");
      writeFileSync(inside, "x".repeat(64), { mode: 0o600 });
      return inside;
    },
    "may be read by other users": () => {
      chmodSync(keyFile, 0o644);
      return keyFile;
    },
    "is too short": () => {
      writeFileSync(keyFile, "short");
      return keyFile;
    },
    "is not there": () => join(folder, "none"),
    "is a folder": () => folder,
  };
  test.each(Object.entries(wrong))("a key file that %s is refused", async (_what, make) => {
    const refused = places({ env: { HOLDFAST_SECRET_KEY_FILE: make() } }).store("K", "value");
    await expect(refused).rejects.toMatchObject({
      code: "secret_key",
      fix: expect.stringContaining("openssl rand"),
    });
    expect(places().stored()).toEqual([]);
  });

  test("without a terminal and without a key the error names both ways", async () => {
    await withKeyFile().store("K", "value");
    await expect(places().value("K")).rejects.toMatchObject({
      code: "secret_key",
      message: expect.stringMatching(
        /^the secret K cannot be read: the key of the encrypted secrets is missing/,
      ),
      fix: "set it to the path of the key file, or give the secrets in the environment",
    });
    const first = new SecretPlaces({
      env: {},
      keychain: undefined,
      path: join(folder, "other", "secrets.json"),
    });
    await expect(first.store("K", "value")).rejects.toMatchObject({ code: "secret_key" });
  });
});

test("a keychain that is asked for and not there is an error", async () => {
  await expect(places().store("K", "value", "keychain")).rejects.toMatchObject({ code: "config_invalid" });
});
