// Values of the secrets that loaded agents declare, and of the keys of their models (`suppliedSecrets`). They
// come from standard input, the environment, the keychain, the encrypted file, or a person at the terminal.
//
//   - Every missing name is asked for, or named in one error, before anything starts. Without a terminal a
//     session starts without an optional one, such as the key of its model.
//   - A value is never an argument, and is written to standard output or standard error in no form.
//   - A name that no agent declares gets no value.

import { join } from "node:path";
import type { ReadStream } from "node:tty";
import { defined, HoldfastError, UsageError } from "@holdfast/core";
import { isSecretName, namesOfSecrets, type WantedSecrets } from "@holdfast/system";
import { askMasked, openKeychain, SecretPlaces, type SecretPlace } from "@holdfast/runner/secrets";
import type { Arguments, Io } from "../frame/command.ts";
import { readAll } from "../frame/input.ts";
import { dataFolder } from "@holdfast/system";
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
 * The values of the names, which `io.env` has from here on as well.
 *
 * @throws HoldfastError `secret_missing` when no place has a required value and there is no terminal to ask
 *   on.
 */
export async function suppliedSecrets(
  wanted: WantedSecrets,
  args: Arguments,
  io: Io,
): Promise<ReadonlyMap<string, string>> {
  const found = new FoundSecrets(await givenOnStdin(wanted, args, io), io);
  for (const name of wanted.required) await found.take(name);
  for (const { anyOf } of wanted.optional) await found.takeAny(anyOf);
  const { values } = found;
  const missing = wanted.required.filter((name) => !values.has(name));
  if (missing.length > 0 && !canAsk(io)) throw missingError(missing);
  noteUses(found.stored, Date.now(), io);
  for (const name of missing) values.set(name, await askFor(`Enter ${name}: `, io));
  for (const { anyOf, isAsked } of wanted.optional)
    if (isAsked && canAsk(io) && !anyOf.some((name) => values.has(name))) await askForAny(anyOf, values, io);
  holdSecrets(values.values(), io);
  io.supply(values);
  return values;
}

/** Values by their names. The stored secrets are opened only for a name that neither the call nor the environment has. */
class FoundSecrets {
  readonly values = new Map<string, string>();
  /** The names whose value is a stored one. */
  readonly stored: string[] = [];
  readonly #given: ReadonlyMap<string, string>;
  readonly #io: Io;
  #places: Promise<SecretPlaces> | undefined;

  constructor(given: ReadonlyMap<string, string>, io: Io) {
    this.#given = given;
    this.#io = io;
  }

  /** @returns whether there is a value. @throws as `openSecretPlaces` does. */
  async take(name: string): Promise<boolean> {
    if (this.#takeHere(name)) return true;
    this.#places ??= openSecretPlaces(this.#io, this.#given);
    const value = await (await this.#places).value(name);
    if (value === undefined) return false;
    this.values.set(name, value);
    this.stored.push(name);
    return true;
  }

  /**
   * All that are here, else the first that is stored. A store that cannot be opened is none, unless a person
   * can mend that.
   */
  async takeAny(names: readonly string[]): Promise<void> {
    if (names.filter((name) => this.#takeHere(name)).length > 0) return;
    try {
      for (const name of names) if (await this.take(name)) return;
    } catch (error) {
      if (!HoldfastError.is(error) || canAsk(this.#io)) throw error;
      this.#io.note(`${this.#io.notes.symbols.warn} ${error.message}`);
    }
  }

  #takeHere(name: string): boolean {
    const value = this.#given.get(name) ?? this.#io.env[name] ?? "";
    if (value === "") return false;
    this.values.set(name, value);
    return true;
  }
}

/** A key for a model that nobody chose: the first name is that of the model by default. */
async function askForAny(names: readonly string[], values: Map<string, string>, io: Io): Promise<void> {
  const [first = "", ...others] = names;
  if (others.length > 0)
    io.note(
      `a model is needed, and has no key; ${others.join(" or ")} in the environment chooses another one, and --scripted asks none`,
    );
  values.set(first, await askFor(`Enter ${first}: `, io));
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
      ...defined({ usedAt }),
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
  wanted: WantedSecrets,
  args: Arguments,
  io: Io,
): Promise<ReadonlyMap<string, string>> {
  const name = args.text("secret-stdin");
  if (name === undefined) return new Map();
  checkSecretName(name);
  const names = namesOfSecrets(wanted);
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
