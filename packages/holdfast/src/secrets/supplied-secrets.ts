// Values of the secrets that loaded agents declare (`suppliedSecrets`): from standard input, the environment, the
// keychain, the encrypted file, or a person at the terminal.
//
//   supplied-secrets-1. Every missing name is asked for, or named in one error, before anything starts.
//   supplied-secrets-2. A value is never an argument, and is written to standard output or standard error in no form.
//   supplied-secrets-3. A name that no agent declares gets no value.

import { join } from "node:path";
import type { ReadStream } from "node:tty";
import { HoldfastError, UsageError } from "@holdfast/core";
import { isSecretName } from "@holdfast/runtime/internal";
import { askMasked, openKeychain, SecretPlaces, type SecretPlace } from "@holdfast/runner/secrets";
import type { Arguments, Io } from "../frame/command.ts";
import { readAll } from "../frame/input.ts";
import { dataFolder } from "../place/coordinator-storage.ts";
import { holdSecrets } from "./held-secrets.ts";
import { lastUses, noteUses } from "./secret-uses.ts";

export interface NamedSecret {
  readonly name: string;
  readonly place: "keychain" | "file";
  /** Whether its value is the one that is used. */
  readonly used: boolean;
  /** The other place whose value is used. */
  readonly supplier?: SecretPlace;
  /** When a process last took it. Epoch milliseconds. */
  readonly usedAt?: number;
}

/**
 * The value of each name (supplied-secrets-1).
 *
 * @throws HoldfastError `secret_missing` when no place has a value and there is no terminal to ask on.
 */
export async function suppliedSecrets(
  names: readonly string[],
  args: Arguments,
  io: Io,
): Promise<ReadonlyMap<string, string>> {
  const given = await givenOnStdin(names, args, io);
  const values = new Map<string, string>();
  const places = await openSecretPlaces(io, given);
  const missing: string[] = [];
  for (const name of names) {
    const value = await places.value(name);
    if (value === undefined) missing.push(name);
    else values.set(name, value);
  }
  if (missing.length > 0 && !canAsk(io)) throw missingError(missing);
  const stored = names.filter((name) => ["keychain", "file"].includes(places.placeOf(name) ?? ""));
  noteUses(stored, Date.now(), io);
  for (const name of missing) values.set(name, await askFor(`Enter ${name}: `, io));
  holdSecrets(values.values(), io);
  return values;
}

/** The places of this user's secrets. */
export async function openSecretPlaces(
  io: Io,
  given: ReadonlyMap<string, string> = new Map(),
): Promise<SecretPlaces> {
  return new SecretPlaces({
    given,
    env: io.env,
    keychain: await openKeychain(),
    path: join(dataFolder(io), "secrets.json"),
    askPassphrase: canAsk(io) ? (isNew) => askPassphrase(isNew, io) : undefined,
  });
}

/** Whether a person can answer. With `--json` a program has called. */
export function canAsk(io: Io): boolean {
  return !io.isJson && io.stdin.isTTY === true;
}

/** The stored secrets of this user as people see them: names, places and last uses. No value is read. */
export async function namedSecrets(io: Io): Promise<readonly NamedSecret[]> {
  const places = await openSecretPlaces(io);
  const uses = lastUses(io);
  return places.stored().map(({ name, place }) => {
    const supplier = places.placeOf(name);
    const usedAt = supplier === place ? uses.get(name) : undefined;
    return {
      name,
      place,
      used: supplier === place,
      ...(supplier === undefined || supplier === place ? {} : { supplier }),
      ...(usedAt === undefined ? {} : { usedAt }),
    };
  });
}

/** A value that a person types. Ctrl-C ends the command as that signal does. */
export async function askFor(question: string, io: Io): Promise<string> {
  for (;;) {
    const prompt = { stdin: io.stdin as ReadStream, write: (text: string) => io.write(text) };
    const answer = await askMasked(prompt, question);
    if (answer === undefined) return io.stopNow("SIGINT");
    if (answer !== "") return answer;
    io.note("an empty value is none; press Ctrl-C to stop");
  }
}

/** A value from standard input, without the line break at its end. */
export async function readSecretFromStdin(name: string, io: Io): Promise<string> {
  const value = (await readAll(io.stdin)).replace(/\r?\n$/, "");
  if (value !== "") return value;
  throw new UsageError(`standard input has no value for the secret ${name}`, {
    at: "standard input",
    expected: "the value, and then the end of the input",
  });
}

async function givenOnStdin(
  names: readonly string[],
  args: Arguments,
  io: Io,
): Promise<ReadonlyMap<string, string>> {
  const name = args.text("secret-stdin");
  if (name === undefined) return new Map();
  checkSecretName(name);
  if (!names.includes(name))
    throw new UsageError(`no agent declares the secret ${name}`, {
      at: "--secret-stdin",
      expected: names.length === 0 ? "an agent that declares secrets" : names.join(", "),
      fix: `declare it: defineAgent({ secrets: ["${name}"] })`,
    });
  return new Map([[name, await readSecretFromStdin(name, io)]]);
}

/** @throws UsageError. The text is not shown, as it may be a value in the place of a name. */
export function checkSecretName(name: string): void {
  if (isSecretName(name)) return;
  throw new UsageError("the name of a secret is wrong", {
    expected: "a name as environment variables have: letters, digits and _, without a digit at the beginning",
  });
}

async function askPassphrase(isNew: boolean, io: Io): Promise<string> {
  const passphrase = await askFor("Passphrase of the encrypted secrets: ", io);
  if (!isNew) return passphrase;
  if ((await askFor("The same passphrase again: ", io)) === passphrase) return passphrase;
  throw new UsageError("the two passphrases differ", { fix: "start again" });
}

function missingError(names: readonly string[]): HoldfastError {
  const [first = ""] = names;
  const what = names.length === 1 ? `the secret ${first} is missing` : `${names.length} secrets are missing`;
  return new HoldfastError("secret_missing", names.length === 1 ? what : `${what}: ${names.join(", ")}`, {
    expected: `a value for ${names.join(", ")}`,
    fix:
      `run the command on a terminal, which asks for it, set the environment variable ${first}, ` +
      `pipe the value with --secret-stdin ${first}, or store it with \`holdfast secret set ${first}\``,
  });
}
