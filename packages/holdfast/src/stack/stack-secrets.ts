// `StackSecrets`: values of the secrets that loaded agents declare, in the memory of the supervisor.
//
//   - Each name is asked for once. A process that is restarted gets the value without another question.
//   - Values go to the runner over its channel. They are in no file, argument or environment of the stack.
//   - A line of the log, from whichever process, shows no value (`redacted`).

import { HoldfastError } from "@holdfast/core";
import { namesOfSecrets, Redactor, type WantedSecrets } from "@holdfast/system";
import type { Arguments, Io } from "@holdfast/terminal/frame/command";
import { errorOf, reportedError, type ReportedError } from "@holdfast/terminal/frame/command-error";
import { suppliedFor } from "@holdfast/terminal/secrets/agent-secrets";
import { holdSecrets } from "@holdfast/terminal/secrets/held-secrets";

/** The supervisor's question to the command that started it. */
export interface SecretsQuestion {
  readonly type: "secrets";
  readonly wanted: WantedSecrets;
}

/** The answer of that command. */
export type SecretsAnswer =
  | { readonly type: "secrets"; readonly values: Readonly<Record<string, string>> }
  | { readonly type: "refused"; readonly error: ReportedError };

type Supply = (wanted: WantedSecrets) => Promise<ReadonlyMap<string, string>>;

export class StackSecrets {
  readonly #supply: Supply;
  readonly #values = new Map<string, string>();
  readonly #redactor = new Redactor();
  #hasAsked = false;
  #asking: Promise<unknown> = Promise.resolve();

  /** @param keys values of the environment that no line of the log shows either. */
  constructor(supply: Supply, keys: readonly string[] = []) {
    this.#supply = supply;
    for (const key of keys) this.#redactor.add(key);
  }

  /** The values that there are. @throws HoldfastError `secret_missing` when no place has a required one. */
  async valuesOf(wanted: WantedSecrets): Promise<Readonly<Record<string, string>>> {
    // Two runners may start at once, and a person answers one question at a time.
    const asked = this.#asking.then(() => this.#ask(wanted));
    this.#asking = asked.catch(() => {});
    await asked;
    return Object.fromEntries(
      namesOfSecrets(wanted).flatMap((name) => {
        const value = this.#values.get(name);
        return value === undefined ? [] : [[name, value]];
      }),
    );
  }

  redacted(text: string): string {
    return this.#redactor.text(text);
  }

  async #ask({ required, optional }: WantedSecrets): Promise<void> {
    const missing: WantedSecrets = {
      required: required.filter((name) => !this.#values.has(name)),
      optional: optional.filter(({ anyOf }) => !anyOf.some((name) => this.#values.has(name))),
    };
    // The first question also finds a value that no agent declares.
    if (missing.required.length + missing.optional.length === 0 && this.#hasAsked) return;
    for (const [name, value] of await this.#supply(missing)) {
      this.#values.set(name, value);
      this.#redactor.add(value);
    }
    this.#hasAsked = true;
  }
}

/** From the command that started this supervisor and waits for it. */
export async function supplyByLauncher(wanted: WantedSecrets, io: Io): Promise<ReadonlyMap<string, string>> {
  const answered = Promise.withResolvers<SecretsAnswer>();
  const gone = (): void =>
    answered.reject(new HoldfastError("secret_missing", "the command that started the stack has ended"));
  process.once("message", (message) => answered.resolve(message as SecretsAnswer));
  process.once("disconnect", gone);
  try {
    process.send?.({ type: "secrets", wanted } satisfies SecretsQuestion);
    const answer = await answered.promise;
    if (answer.type === "refused") throw errorOf(answer.error);
    holdSecrets(Object.values(answer.values), io);
    return new Map(Object.entries(answer.values));
  } finally {
    process.off("disconnect", gone);
  }
}

/** The launcher's answer to the supervisor's question. Never rejects. */
export async function answerTo({ wanted }: SecretsQuestion, args: Arguments, io: Io): Promise<SecretsAnswer> {
  try {
    return { type: "secrets", values: Object.fromEntries(await suppliedFor(wanted, args, io)) };
  } catch (error) {
    return { type: "refused", error: reportedError(error) };
  }
}
