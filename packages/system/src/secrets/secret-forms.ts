// `secretForms`: the texts that a secret becomes when programs write it down. `redactor.ts` searches for
// them.
//
// Leaky: a secret that was encoded twice, split, reversed, compressed or encrypted has no form here. The only
// doubled encoding is JSON in JSON, because agents, tools and servers quote each other's JSON.

/** A shorter text is no secret: it would stand in too much other text. */
export const SECRET_CHARS_MIN = 6;

/** Each form is unique and has at least `SECRET_CHARS_MIN` characters. */
export function secretForms(secret: string): readonly string[] {
  const forms = basesOf(secret).flatMap((base) => [base, ...textForms(base), ...byteForms(base)]);
  // Everything may stand in JSON, which has escapes of its own for the escapes of others.
  const all = new Set(forms.flatMap((form) => [form, JSON.stringify(form).slice(1, -1)]));
  return [...all].filter((form) => form.length >= SECRET_CHARS_MIN);
}

/** The secret, the secret without quotes around it, and the lines of a key file, which tools show one by one. */
function basesOf(secret: string): string[] {
  const lines = secret.split(/\r?\n/).filter((line) => line !== secret && !line.startsWith("-----"));
  const trimmed = secret.replaceAll(/^["']+|["']+$/g, "");
  return [...new Set([secret, trimmed, secret.trim(), ...lines])].filter(
    (base) => base.length >= SECRET_CHARS_MIN,
  );
}

function textForms(text: string): string[] {
  const json = JSON.stringify(text).slice(1, -1);
  const ascii = json.replaceAll(/[^\u{20}-\u{7e}]/gu, (char) => char.replaceAll(/[^]/g, unicodeEscape));
  const uri = encodeURIComponent(text.toWellFormed());
  const strictUri = uri.replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  const everyChar = text.replaceAll(/[^]/g, unicodeEscape);
  return [
    json,
    ascii,
    ...[ascii, everyChar].flatMap(bothEscapes),
    JSON.stringify(json).slice(1, -1),
    json.replaceAll("/", String.raw`\/`),
    json.replaceAll(/[<>&]/g, unicodeEscape), // Go's encoding/json.
    ...[uri, strictUri, formField(text), encodeURI(text.toWellFormed())].flatMap(bothCases),
    ...["&apos;", "&#39;", "&#x27;"].map((quote) => xmlEscaped(text).replaceAll("'", quote)),
    goQuoted(text),
    text.replaceAll('"', String.raw`\"`), // The command line of Windows.
    text.replaceAll("'", String.raw`\'`), // Python's repr, and $'…' of a shell.
    text.replaceAll("\\", "\\\\").replaceAll("'", String.raw`\'`),
    text.replaceAll("'", String.raw`'\''`),
    text.replaceAll("'", `'"'"'`),
    text.replaceAll(/["$\\`]/g, String.raw`\$&`), // Within double quotes of a shell.
    text.replaceAll(/[^\w@%+=:,./-]/gu, String.raw`\$&`), // `printf %q`.
  ];
}

/** `\\u00f6` and `\\u00F6` are the same. */
function bothEscapes(escaped: string): string[] {
  return [escaped, escaped.replaceAll(/\\u[\da-f]{4}/g, (code) => `\\u${code.slice(2).toUpperCase()}`)];
}

/** `%2F` and `%2f` are the same. */
function bothCases(uri: string): string[] {
  return [uri, uri.replaceAll(/%../g, (code) => code.toLowerCase())];
}

/** A field of a form, with its own rules for spaces and marks. */
function formField(text: string): string {
  return new URLSearchParams([["", text]]).toString().slice(1);
}

function unicodeEscape(char: string): string {
  return String.raw`\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function xmlEscaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** `strconv.Quote` of Go, whose control characters JSON writes in another way. */
function goQuoted(text: string): string {
  const names: Readonly<Record<string, string>> = {
    '"': '\\"',
    "\\": "\\\\",
    "\u0007": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
  };
  const hex = (char: string): string => String.raw`\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`;
  return text.replaceAll(/["\\\p{Cc}]/gu, (char) => names[char] ?? hex(char));
}

function byteForms(text: string): string[] {
  const bytes = Buffer.from(text);
  const hex = bytes.toString("hex");
  const base64 = [0, 1, 2].flatMap((shift) => [
    base64At(bytes, shift, "base64"),
    base64At(bytes, shift, "base64url"),
  ]);
  // Whole, with the padding and with the character that the secret shares with what follows.
  const whole = [bytes.toString("base64"), bytes.toString("base64url")];
  return [hex, hex.toUpperCase(), ...whole, ...base64];
}

/** The characters that stand for these bytes alone, when `shift` bytes of something else come before them. */
function base64At(bytes: Buffer, shift: number, encoding: "base64" | "base64url"): string {
  const whole = Buffer.concat([Buffer.alloc(shift), bytes]).toString(encoding);
  const end = Math.floor(((shift + bytes.length) * 8) / 6);
  return whole.slice(Math.ceil((shift * 8) / 6), end);
}
