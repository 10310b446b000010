// `Redactor` replaces secrets in everything that leaves this process: text, JSON and streams of bytes.
//
//   - Every form of a secret is replaced (`secret-forms.ts`), also where forms overlap.
//   - A stream holds back only the bytes that may be the beginning of a form. An event of a server therefore
//     passes at once, and a form that two chunks share is replaced.
//   - A secret that is added later is replaced from then on, also in streams that have begun.
//   - Redacted JSON stays JSON of the same structure.
//   - A form is also found where lines are broken inside of it, at any width, as `base64` and `fold` do. A
//     break is one line break, also as an escape of JSON.
//
// Leaky: redaction is no guarantee. It is the last of several controls, and finds no encoding that it does
// not know.

import { secretForms, SECRET_CHARS_MIN } from "./secret-forms.ts";

const MARK = "[secret]";
/** With `pieces`, a shorter piece reveals too little of a key, and too much other text looks like it. */
const PIECE_CHARS = 12;

export interface RedactorOptions {
  /** Also replace pieces of 12 characters, in text of a server that may quote a part of a key. */
  readonly pieces?: boolean;
}

export interface RedactedStream {
  /** The bytes that may leave now. */
  write(chunk: Uint8Array): Buffer;
  /** The bytes that were held back. */
  end(): Buffer;
}

/** As `RedactedStream`, for text. */
export interface RedactedText {
  write(chunk: string): string;
  end(): string;
}

export class Redactor {
  readonly #secrets = new Set<string>();
  readonly #pieces: boolean;
  #table: FormTable | undefined;

  constructor(secrets: Iterable<string> = [], { pieces = false }: RedactorOptions = {}) {
    this.#pieces = pieces;
    for (const secret of secrets) this.add(secret);
  }

  /** A text below `SECRET_CHARS_MIN` is not replaced. */
  add(secret: string): void {
    if (secret.length < SECRET_CHARS_MIN || this.#secrets.has(secret)) return;
    this.#secrets.add(secret);
    this.#table = undefined;
  }

  text(text: string): string {
    if (this.#secrets.size === 0) return text;
    const found = this.#forms().find(text);
    return found === undefined ? text : replaced(text, found, 0, text.length, false);
  }

  /** A value of JSON. A number that is a secret becomes a text. */
  value(value: unknown): unknown {
    if (this.#secrets.size === 0) return value;
    switch (typeof value) {
      case "string":
        return this.text(value);
      case "number": {
        const safe = this.text(String(value));
        return safe === String(value) ? value : safe;
      }
      case "object":
        if (value === null) return null;
        if (Array.isArray(value)) return value.map((item) => this.value(item));
        return Object.fromEntries(
          Object.entries(value).map(([key, item]) => [this.text(key), this.value(item)]),
        );
      default:
        return value;
    }
  }

  /** The text of a JSON value; the very same text when it has no secret. */
  json(text: string): string {
    if (this.#secrets.size === 0 || this.#forms().find(text) === undefined) return text;
    return JSON.stringify(this.value(JSON.parse(text)));
  }

  /** A value that will be shown as JSON. A value that is none is returned as it is, because it cannot be shown. */
  shown(value: unknown): unknown {
    if (this.#secrets.size === 0) return value;
    try {
      const text = JSON.stringify(value);
      const safe = this.json(text);
      return safe === text ? value : JSON.parse(safe);
    } catch {
      return value;
    }
  }

  stream(): RedactedStream {
    const text = this.textStream();
    return {
      write: (chunk) => Buffer.from(text.write(Buffer.from(chunk).toString("latin1")), "latin1"),
      end: () => Buffer.from(text.end(), "latin1"),
    };
  }

  textStream(): RedactedText {
    let held = "";
    /** How many of the held characters belong to a form that was found. */
    let covered = 0;
    let endedInSecret = false;
    const pass = (text: string, isEnd: boolean): string => {
      if (this.#secrets.size === 0) return text;
      const forms = this.#forms();
      const found = forms.find(text) ?? new Uint8Array(text.length);
      found.fill(1, 0, covered);
      // mutant: secret-split-over-chunks
      const to = isEnd ? text.length : forms.lastSafe(text);
      const safe = replaced(text, found, 0, to, endedInSecret);
      if (to > 0) endedInSecret = found[to - 1] === 1;
      held = text.slice(to);
      covered = 0;
      while (covered < held.length && found[to + covered] === 1) covered++;
      return safe;
    };
    return { write: (chunk) => pass(held + chunk, false), end: () => pass(held, true) };
  }

  #forms(): FormTable {
    this.#table ??= new FormTable([...this.#secrets].flatMap((secret) => this.#patterns(secret)));
    return this.#table;
  }

  #patterns(secret: string): readonly string[] {
    const forms = secretForms(secret);
    return this.#pieces ? forms.flatMap(piecesOf) : forms;
  }
}

function piecesOf(form: string): string[] {
  if (form.length <= PIECE_CHARS) return [form];
  return Array.from({ length: form.length - PIECE_CHARS + 1 }, (_, at) => form.slice(at, at + PIECE_CHARS));
}

/** Part of a text with one mark in the place of each run of found characters. */
function replaced(text: string, found: Uint8Array, from: number, to: number, isInSecret: boolean): string {
  let safe = "";
  let wasSecret = isInSecret;
  for (let at = from; at < to;) {
    let next = at + 1;
    while (next < to && found[next] === found[at]) next++;
    if (found[at] === 0) safe += text.slice(at, next);
    else if (!wasSecret) safe += MARK;
    wasSecret = found[at] === 1;
    at = next;
  }
  return safe;
}

/** The forms of all secrets, found by their first characters. Streams are searched as bytes, in latin1. */
class FormTable {
  readonly #byHead = new Map<string, string[]>();
  /** All proper beginnings of a form that are shorter than a head. */
  readonly #beginnings = new Set<string>();
  /** Which hashes of the first four characters occur: most positions of a text need no more than this. */
  readonly #hashes = new Uint8Array(1 << 16);
  readonly #longest: number;

  constructor(forms: readonly string[]) {
    const plain = [...forms, ...forms.map((form) => Buffer.from(form).toString("latin1"))];
    const joined = plain.map((form) => joinLines(form)?.text ?? form);
    const all = new Set([...plain, ...joined].filter((form) => form.length >= SECRET_CHARS_MIN));
    this.#longest = Math.max(0, ...[...all].map((form) => form.length));
    for (const form of all) {
      this.#hashes[hashAt(form, 0)] = 1;
      const head = form.slice(0, SECRET_CHARS_MIN);
      const same = this.#byHead.get(head);
      if (same === undefined) this.#byHead.set(head, [form]);
      else same.push(form);
      for (let length = 1; length < SECRET_CHARS_MIN; length++) this.#beginnings.add(form.slice(0, length));
    }
  }

  /** A 1 for each character of a form; `undefined` for a text without any. */
  find(text: string): Uint8Array | undefined {
    let found: Uint8Array | undefined;
    const mark = (from: number, to: number): void => {
      found ??= new Uint8Array(text.length);
      found.fill(1, from, to);
    };
    this.#search(text, mark);
    const joined = joinLines(text); // A form may be broken into lines, as `base64` and `fold` do.
    if (joined !== undefined)
      this.#search(joined.text, (from, to) => mark(joined.placeOf(from), joined.placeOf(to - 1) + 1));
    return found;
  }

  #search(text: string, mark: (from: number, to: number) => void): void {
    for (let at = 0; at + SECRET_CHARS_MIN <= text.length; at++) {
      if (this.#hashes[hashAt(text, at)] === 0) continue;
      for (const form of this.#byHead.get(text.slice(at, at + SECRET_CHARS_MIN)) ?? [])
        if (text.startsWith(form, at)) mark(at, at + form.length);
    }
  }

  /** How many characters cannot belong to a form that ends after the text. */
  lastSafe(text: string): number {
    const from = Math.max(0, text.length - (this.#longest - 1) * (1 + BREAK_CHARS) - BREAK_CHARS);
    const end = text.slice(from).replace(BEGUN_BREAK, "");
    const safe = this.#lastSafe(text);
    const joined = joinLines(end) ?? { text: end, placeOf: (at: number) => at };
    const inJoined = this.#lastSafe(joined.text);
    return inJoined === joined.text.length ? safe : Math.min(safe, from + joined.placeOf(inJoined));
  }

  #lastSafe(text: string): number {
    for (let at = Math.max(0, text.length - this.#longest + 1); at < text.length; at++) {
      const rest = text.slice(at);
      if (rest.length < SECRET_CHARS_MIN) {
        if (this.#beginnings.has(rest)) return at;
        continue;
      }
      const forms = this.#byHead.get(rest.slice(0, SECRET_CHARS_MIN)) ?? [];
      if (forms.some((form) => form.length > rest.length && form.startsWith(rest))) return at;
    }
    return text.length;
  }
}

/** The most characters of one break: two escapes of JSON in JSON. */
const BREAK_CHARS = 6;
/** A line break, or its escape in JSON, or in JSON within JSON. */
const BREAKS = /\r?\n|(?:\\{1,2}r)?\\{1,2}n/g;
/** The first characters of a break, at the end of a chunk. */
const BEGUN_BREAK = /(?:\r|\\{1,2}(?:r\\{0,2})?)$/;

interface Joined {
  readonly text: string;
  /** The place of one of its characters in the text with breaks. */
  placeOf(at: number): number;
}

/** A text without its single line breaks; `undefined` for a text that has none. */
function joinLines(text: string): Joined | undefined {
  /** Where each part begins in the joined text, and in the given one. */
  const [joinedAt, givenAt]: [number[], number[]] = [[0], [0]];
  let joined = "";
  let from = 0;
  for (const { index, 0: found } of text.matchAll(BREAKS)) {
    const isDouble = from > 0 && index === from; // No program breaks a line within a form twice.
    if (isDouble) continue;
    joined += text.slice(from, index);
    from = index + found.length;
    joinedAt.push(joined.length);
    givenAt.push(from);
  }
  if (from === 0) return undefined;
  joined += text.slice(from);
  return {
    text: joined,
    placeOf(at) {
      const part = joinedAt.findLastIndex((begin) => begin <= at);
      return givenAt[part]! + at - joinedAt[part]!;
    },
  };
}

function hashAt(text: string, at: number): number {
  const [a, b] = [text.charCodeAt(at), text.charCodeAt(at + 1)];
  const [c, d] = [text.charCodeAt(at + 2), text.charCodeAt(at + 3)];
  return (a ^ (b << 4) ^ (c << 8) ^ (d << 12)) & 0xffff;
}
