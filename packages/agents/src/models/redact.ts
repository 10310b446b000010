// Cuts secrets out of text that servers wrote (`redact`), because such text is recorded, traced and shown.
//
// A server may quote a key as it is, in a URL, in JSON, in a header in base64, in hexadecimal, or in pieces.
// Leaky: a piece of fewer than PART_CHARS characters stays, and so does a key that was encoded twice or in
// another way.

/** A shorter piece reveals too little of a key to be of use, and too much other text looks like it. */
const PART_CHARS = 12;
const MARK = "[secret]";

/** Text without the secrets, however they were written down. */
export function redact(text: string, secrets: readonly string[]): string {
  const forms = secrets.filter((secret) => secret !== "").flatMap(formsOf);
  const parts = new Set(forms.flatMap(partsOf));
  const isSecret = new Uint8Array(text.length);
  for (const part of parts) {
    for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) {
      isSecret.fill(1, at, at + part.length);
    }
  }
  let safe = "";
  for (let from = 0; from < text.length;) {
    let to = from + 1;
    while (to < text.length && isSecret[to] === isSecret[from]) to++;
    safe += isSecret[from] === 1 ? MARK : text.slice(from, to);
    from = to;
  }
  return safe;
}

function partsOf(form: string): string[] {
  if (form.length <= PART_CHARS) return [form];
  return Array.from({ length: form.length - PART_CHARS + 1 }, (_, at) => form.slice(at, at + PART_CHARS));
}

function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const url = encodeURIComponent(secret);
  const hex = bytes.toString("hex");
  const escaped = JSON.stringify(secret).slice(1, -1);
  const inBase64 = [0, 1, 2].flatMap((shift) => [
    base64At(bytes, shift, "base64"),
    base64At(bytes, shift, "base64url"),
  ]);
  return [
    secret,
    url,
    url.replaceAll(/%../g, (code) => code.toLowerCase()),
    escaped,
    JSON.stringify(escaped).slice(1, -1),
    escaped.replaceAll("/", String.raw`\/`),
    hex,
    hex.toUpperCase(),
    ...inBase64,
  ];
}

/** The characters that stand for these bytes alone, when `shift` bytes of something else come before them. */
function base64At(bytes: Buffer, shift: number, encoding: "base64" | "base64url"): string {
  const whole = Buffer.concat([Buffer.alloc(shift), bytes]).toString(encoding);
  const end = Math.floor(((shift + bytes.length) * 8) / 6);
  return whole.slice(Math.ceil((shift * 8) / 6), end);
}
