// `SecretSuspicion`: finds what looks like a secret in configuration, so that it is left out of an export.
//
//   - A value that this process was given as a secret is found in every encoding that the redactor knows.
//   - Other secrets are found by their form (keys of providers, tokens, private keys, passwords in URLs) or
//     by the name of their field. A name with a placeholder, such as ${API_KEY}, is no secret.
//   - A finding says where and why, and never contains the value.
//
// Leaky: a secret without a known form, in a field with another name, is not found. Settings are no place for
// secrets.

import { isPlaceholder, isSecretField, secretLook } from "@holdfast/core";
import { secretForms } from "@holdfast/system";

/** A field with a text, in YAML, TOML, JSON or a file of variables. Numbers and lists are no secrets. */
const FIELD = /^[\s-]*["']?([\w.-]+)["']?\s*[:=]\s*["']?([^\s"',[\]{}][^\s"',]{5,})["']?,?\s*$/gm;
const VARIABLE_CHARS_MIN = 8;

export class SecretSuspicion {
  readonly #known: readonly (readonly [name: string, forms: readonly string[]])[];

  /** @param env the variables of this process; those with the name of a secret have one. */
  constructor(env: Readonly<Record<string, string | undefined>>) {
    this.#known = Object.entries(env).flatMap(([name, value = ""]) =>
      (isSecretField(name) || /KEY$/i.test(name)) && value.length >= VARIABLE_CHARS_MIN
        ? [[name, secretForms(value)] as const]
        : [],
    );
  }

  /** Why a value looks like a secret; nothing when it does not. */
  why(value: unknown): string | undefined {
    if (typeof value === "string") return this.#whyText(value);
    if (typeof value !== "object" || value === null) return undefined;
    for (const [name, part] of Object.entries(value)) {
      const isNamed = typeof part === "string" && part !== "" && isSecretField(name);
      if (isNamed && !isPlaceholder(part)) return `the field "${name}"`;
      const why = this.#whyText(name) ?? this.why(part);
      if (why !== undefined) return why;
    }
    return undefined;
  }

  #whyText(text: string): string | undefined {
    const known = this.#known.find(([, forms]) => forms.some((form) => text.includes(form)));
    if (known !== undefined) return `the value of ${known[0]}`;
    const look = secretLook(text);
    if (look !== undefined) return look;
    for (const [, name = "", value = ""] of text.matchAll(FIELD))
      if (isSecretField(name) && !isPlaceholder(value)) return `the field "${name}"`;
    return undefined;
  }
}
