// `SecretSuspicion`: finds what looks like a secret in configuration, so that it is left out of an export.
//
//   - A value that this process was given as a secret is found in every encoding that the redactor knows.
//   - Other secrets are found by their form (keys of providers, tokens, private keys, passwords in URLs) or
//     by the name of their field. A name with a placeholder, such as ${API_KEY}, is no secret.
//   - A finding says where and why, and never contains the value.
//
// Leaky: a secret without a known form, in a field with another name, is not found. Settings are no place for
// secrets.

import { secretForms } from "@holdfast/system";

const FORMS: readonly (readonly [what: string, form: RegExp])[] = [
  ["a private key", /-----BEGIN [A-Z ]*PRIVATE KEY-----/],
  ["a token of Holdfast", /\bhf_(adm|usr|reg|rnr|job)_[0-9a-f]{16,}/],
  ["a key of a model provider", /\bsk-[A-Za-z0-9_-]{16,}|\bAIza[\w-]{30,}/],
  ["a token of a code host", /\b(gh[pousr]_|github_pat_|glpat-)[A-Za-z0-9_-]{16,}/],
  ["a token of a chat service", /\bxox[abprs]-[A-Za-z0-9-]{10,}/],
  ["an access key", /\b(AKIA|ASIA)[0-9A-Z]{16}\b/],
  ["a web token", /\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\./],
  ["a bearer token", /\bBearer [\w.~+/=-]{12,}/i],
  ["a password in a URL", /:\/\/[^/\s:@"']*:[^/\s@"']+@/],
];

const NAME =
  /(^|[_.-])(api_?key|access_?key|private_?key|secret(_key)?|token|password|passwd|passphrase|credentials?|authorization)$/i;
/** A field with a text, in YAML, TOML, JSON or a file of variables. Numbers and lists are no secrets. */
const FIELD = /^[\s-]*["']?([\w.-]+)["']?\s*[:=]\s*["']?([^\s"',[\]{}][^\s"',]{5,})["']?,?\s*$/gm;
const PLACEHOLDER = /^(\$|<|%|\{\{|true$|false$|null$|[\d.]+$)/;
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
      if (isNamed && !PLACEHOLDER.test(part)) return `the field "${name}"`;
      const why = this.#whyText(name) ?? this.why(part);
      if (why !== undefined) return why;
    }
    return undefined;
  }

  #whyText(text: string): string | undefined {
    const known = this.#known.find(([, forms]) => forms.some((form) => text.includes(form)));
    if (known !== undefined) return `the value of ${known[0]}`;
    const form = FORMS.find(([, pattern]) => pattern.test(text));
    if (form !== undefined) return form[0];
    for (const [, name = "", value = ""] of text.matchAll(FIELD))
      if (isSecretField(name) && !PLACEHOLDER.test(value)) return `the field "${name}"`;
    return undefined;
  }
}

function isSecretField(name: string): boolean {
  return NAME.test(name.replaceAll(/([a-z])([A-Z])/g, "$1_$2"));
}
