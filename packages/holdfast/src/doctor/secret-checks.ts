// The check of the places of secrets, and what models need from them (`lookAtSecrets`).

import { join } from "node:path";
import { openKeychain, SecretPlaces, type Keychain, type SecretPlace } from "@holdfast/runner/secrets";
import type { Io } from "@holdfast/terminal/frame/command";
import { count } from "@holdfast/terminal/frame/plain-text";
import { dataFolder } from "@holdfast/system";
import { tryProgram } from "@holdfast/system/processes";
import { problemOf, type Finding } from "./check.ts";

const KEYCHAIN_MS = 3_000;

export interface SecretsFound {
  readonly finding: Finding;
  /** The place that has a secret, without its value. */
  placeOf(name: string): SecretPlace | undefined;
  /** @throws HoldfastError when the place cannot be opened without a person. */
  value(name: string): Promise<string | undefined>;
}

/** Never rejects. With a file of secrets that cannot be used, the other places still count. */
export async function lookAtSecrets(io: Io): Promise<SecretsFound> {
  const answers = await isKeychainAnswering();
  const keychain: Keychain | undefined = answers === true ? await openKeychain() : undefined;
  const path = join(dataFolder(io), "secrets.json");
  let places: SecretPlaces;
  try {
    places = new SecretPlaces({ env: io.env, keychain, path });
  } catch (thrown) {
    const inEnvironment = (name: string) => (io.env[name] ?? "") !== "";
    return {
      finding: problemOf(thrown),
      placeOf: (name) => (inEnvironment(name) ? "environment" : undefined),
      value: async (name) => io.env[name],
    };
  }
  const names = places.stored().length;
  const stored = names === 0 ? "no secret is stored" : `${count(names, "secret")} stored`;
  const found =
    keychain === undefined ? `no keychain, so the encrypted file; ${stored}` : `the keychain; ${stored}`;
  const finding: Finding =
    answers === "late"
      ? {
          status: "warning",
          found: `the keychain does not answer in ${KEYCHAIN_MS / 1_000} s; ${stored}`,
          fix: "unlock it: commands that need a secret wait for it",
        }
      : { status: "ok", found };
  return { finding, placeOf: (name) => places.placeOf(name), value: (name) => places.value(name) };
}

/** A call of the keychain blocks its process while the system asks a person to unlock it, so another process calls first. */
async function isKeychainAnswering(): Promise<boolean | "late"> {
  const program = `const { openKeychain } = await import(${JSON.stringify(import.meta.resolve("@holdfast/runner/secrets"))});
process.exit((await openKeychain()) === undefined ? 1 : 0);`;
  const args = ["--no-warnings", "--input-type=module", "-e", program];
  const end = await tryProgram(process.execPath, args, { ms: KEYCHAIN_MS, env: process.env });
  if (end.status === "done") return true;
  return end.status === "failed" && end.isLate ? "late" : false;
}
