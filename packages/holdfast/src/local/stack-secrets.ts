// `StackSecrets`: values of the secrets that loaded agents declare, in the memory of the supervisor.
//
//   stack-secrets-1. Each name is asked for once. A process that is restarted gets the value without another question.
//   stack-secrets-2. Values go to the runner over its channel. They are in no file, argument or environment of the stack.
//   stack-secrets-3. A line of the log, from whichever process, shows no value (`redacted`).

import { HoldfastError } from "@holdfast/core";
import { Redactor } from "@holdfast/runtime/internal";
import type { Arguments, Io } from "../frame/command.ts";
import { errorOf, reportedError, type ReportedError } from "../frame/command-error.ts";
import { holdSecrets } from "../secrets/held-secrets.ts";

/** The supervisor's question to the command that started it. */
export interface SecretsQuestion {
  readonly type: "secrets";
  readonly names: readonly string[];
}

/** The answer of that command. */
export type SecretsAnswer =
  | { readonly type: "secrets"; readonly values: Readonly<Record<string, string>> }
  | { readonly type: "refused"; readonly error: ReportedError };

type Supply = (names: readonly string[]) => Promise<ReadonlyMap<string, string>>;

export class StackSecrets {
  readonly #supply: Supply;
  readonly #values = new Map<string, string>();
  readonly #redactor = new Redactor();
  #hasAsked = false;
  #asking: Promise<unknown> = Promise.resolve();

  constructor(supply: Supply) {
    this.#supply = supply;
  }

  /** The values of these names. @throws HoldfastError `secret_missing` when no place has one. */
  async valuesOf(names: readonly string[]): Promise<Readonly<Record<string, string>>> {
    // Two runners may start at once, and a person answers one question at a time.
    const asked = this.#asking.then(() => this.#ask(names));
    this.#asking = asked.catch(() => {});
    await asked;
    return Object.fromEntries(names.map((name) => [name, this.#values.get(name) ?? ""]));
  }

  /** stack-secrets-3. */
  redacted(text: string): string {
    return this.#redactor.text(text);
  }

  async #ask(names: readonly string[]): Promise<void> {
    const missing = names.filter((name) => !this.#values.has(name));
    // The first question also finds a value that no agent declares.
    if (missing.length === 0 && this.#hasAsked) return;
    for (const [name, value] of await this.#supply(missing)) {
      this.#values.set(name, value);
      this.#redactor.add(value);
    }
    this.#hasAsked = true;
  }
}

/** From the places of this user, or from a person at this terminal. */
export async function supplyHere(
  names: readonly string[],
  args: Arguments,
  io: Io,
): Promise<ReadonlyMap<string, string>> {
  if (names.length === 0 && !args.has("secret-stdin")) return new Map();
  return (await import("../secrets/supplied-secrets.ts")).suppliedSecrets(names, args, io);
}

/** From the command that started this supervisor and waits for it. */
export async function supplyByLauncher(
  names: readonly string[],
  io: Io,
): Promise<ReadonlyMap<string, string>> {
  const answered = Promise.withResolvers<SecretsAnswer>();
  const gone = (): void =>
    answered.reject(new HoldfastError("secret_missing", "the command that started the stack has ended"));
  process.once("message", (message) => answered.resolve(message as SecretsAnswer));
  process.once("disconnect", gone);
  try {
    process.send?.({ type: "secrets", names } satisfies SecretsQuestion);
    const answer = await answered.promise;
    if (answer.type === "refused") throw errorOf(answer.error);
    holdSecrets(Object.values(answer.values), io);
    return new Map(Object.entries(answer.values));
  } finally {
    process.off("disconnect", gone);
  }
}

/** The launcher's answer to the supervisor's question. Never rejects. */
export async function answerTo({ names }: SecretsQuestion, args: Arguments, io: Io): Promise<SecretsAnswer> {
  try {
    return { type: "secrets", values: Object.fromEntries(await supplyHere(names, args, io)) };
  } catch (error) {
    return { type: "refused", error: reportedError(error) };
  }
}
