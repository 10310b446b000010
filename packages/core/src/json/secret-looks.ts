// `secretLook`, `isSecretField`, `hideSecrets`, `withoutSecrets`: what looks like a secret in a text or a value, by its form or
// by the name of its field.
//
// Leaky: a secret without a known form, in a field with another name, is not found.

import type { Json } from "./json.ts";

const FORMS: readonly (readonly [what: string, form: RegExp])[] = [
  // Without its end, all that follows may be of the key.
  [
    "a private key",
    /-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|$)/,
  ],
  [
    "a header of authorization",
    /(?<=\bauthorization\\?["']?\s{0,8}[:=]\s{0,8}\\?["']?)(?![^\n"'\\]*[$<%{])[^\s"'\\][^\n"'\\]*/i,
  ],
  ["a token of Holdfast", /\bhf_(?:adm|usr|reg|rnr|job|met)_[0-9a-f]{16,}/],
  ["a key of a model provider", /\bsk-[A-Za-z0-9_-]{16,}|\bAIza[\w-]{30,}/],
  ["a token of a code host", /\b(?:gh[pousr]_|github_pat_|glpat-)[A-Za-z0-9_-]{16,}/],
  ["a token of a chat service", /\bxox[abprs]-[A-Za-z0-9-]{10,}/],
  ["an access key", /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/],
  ["a web token", /(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*/],
  ["a bearer token", /\bBearer [\w.~+/=-]{12,}/i],
  ["a password for HTTP", /\bBasic [A-Za-z0-9+/=]{8,}/i],
  ["a password in a URL", /:\/\/[^/\s:@"']*:[^/\s@"']+@/],
];

const WORDS =
  "api_?key|access_?key|private_?key|secret(?:_key)?|token|password|passwd|passphrase|credentials?|authorization";
const NAME = new RegExp(`(?:^|[_.])(?:${WORDS})$`, "i");
/** A value behind such a name: in a file of variables, in YAML, or in the arguments of a command. */
const NAMED = new RegExp(
  `(?<name>[\\w.-]{0,60}(?:${WORDS.replaceAll("_?", "[_-]?")})\\\\?["']?(?:\\s*[:=]\\s*|(?<=--[\\w-]{1,80})\\s+))` +
    `(?<value>\\\\"[^"\\\\\\n]*\\\\"|"[^"\\n]*"|'[^'\\n]*'|[^\\s"',;&|]+)`,
  "gi",
);
const PLACEHOLDER = /^["']?(\$\{?\w+\}?["']?$|\$\(|<[^>]*>|%|\{\{|(true|false|null|[\d.]+)["']?$)/;
const MARK = "[secret]";
const EACH_FORM: readonly RegExp[] = FORMS.map(([, form]) => new RegExp(form, `g${form.flags}`));

/** Which kind of secret a text has, by its form. */
export function secretLook(text: string): string | undefined {
  return FORMS.find(([, form]) => form.test(text))?.[0];
}

/** Whether a field with this name has a secret. */
export function isSecretField(name: string): boolean {
  return NAME.test(name.replaceAll(/([a-z])([A-Z])/g, "$1_$2").replaceAll("-", "_"));
}

/** Whether a value stands for another one, such as `${API_KEY}`, or is none that could be a secret. */
export function isPlaceholder(value: string): boolean {
  return PLACEHOLDER.test(value);
}

/** A text with a mark in the place of each part that looks like a secret. */
export function hideSecrets(text: string): string {
  let safe = text;
  for (const form of EACH_FORM) safe = safe.replace(form, MARK);
  return safe.replace(NAMED, (all, name: string, value: string) =>
    isPlaceholder(value) ? all : `${name}${MARK}`,
  );
}

/**
 * A value without what looks like a secret. Texts beyond `charsMax` are cut, and say how long they were.
 */
export function withoutSecrets(value: Json, charsMax: number): Json {
  if (typeof value === "string") return shortText(value, charsMax);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item: Json) => withoutSecrets(item, charsMax));
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      name,
      isSecretField(name) && isHidden(item) ? MARK : withoutSecrets(item, charsMax),
    ]),
  );
}

function isHidden(item: Json): boolean {
  if (typeof item === "string") return item !== "" && !isPlaceholder(item);
  return item !== null && typeof item !== "boolean";
}

function shortText(text: string, charsMax: number): string {
  // A part behind the cut is looked at, too, so that a secret is not cut first and then not known.
  const safe = hideSecrets(text.slice(0, charsMax + MARGIN_CHARS));
  const isCut = text.length > charsMax + MARGIN_CHARS || safe.length > charsMax;
  return isCut ? `${safe.slice(0, charsMax)}… (${text.length} characters)` : safe;
}

const MARGIN_CHARS = 4_096;
