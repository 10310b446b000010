// `titleFrom`, `titleOf`, `titleLine`: the title of a session, one short line by which a person knows what it is about.
//
//   - A title has at most `TITLE_CHARS` characters on one line. It holds nothing that steers a
//       terminal, reorders a text or is not drawn.
//   - Texts that look like secrets are replaced before anything is cut, so that no part of them stays.
//
// A title is made once, when its session is created. Pure.

import type { JsonText } from "./json/json.ts";
import { hideSecrets, isSecretField } from "./json/secret-looks.ts";

export const TITLE_CHARS = 80;
/** The fields that say what a session is to do, the most telling ones first. */
const REQUEST_FIELDS = ["prompt", "message", "task", "goal", "title", "text"] as const;
/** As much of a text is read. */
const READ_CHARS = 2_048;
/** A title begins in this part of it. A secret that begins there is then known by its rest. */
const BEGIN_CHARS = 1_024;
const VALUE_CHARS = 40;

const SEQUENCE =
  // oxlint-disable-next-line no-control-regex -- they are what is looked for.
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b\]|\u009d)[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]*[0-~]/g;
/** Joiners inside of emojis and between letters stay, as do the selectors that make a sign an emoji. */
const UNDRAWN = /(?![\u200c\u200d])[\p{Cf}\p{Cs}]|[\u034f\u115f\u1160\u2800\u3164\uffa0]/gu;
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]+/gu;
const LINE_BREAK = /[\n\r\u0085\u2028\u2029]+/;
/** The beginning of a line of Markdown that marks a heading, a quotation or an item of a list. */
const MARKUP = /^\s*(?:(?:#{1,6}|>|[-*+]|\d{1,3}[.)])\s+)+/;
/** A line that only opens or closes a part of a prompt. */
const TAG = /^\s*<\/?[\w:.-]+(?:\s[^<>]*)?>\s*$/;
const MEANING = /[\p{L}\p{N}\p{Extended_Pictographic}\p{RI}]/u;

/** The title of a session that is stored: the given one, or else one that is made of the input. */
export function titleFrom({
  title,
  input,
}: {
  readonly title?: string;
  readonly input: JsonText | undefined;
}): string | undefined {
  return titleLine(title ?? "") ?? titleOf(input);
}

/**
 * The title for the input of a session: the first meaningful line of its request, or what its simple fields
 * say. `undefined` when the input says nothing.
 */
export function titleOf(input: JsonText | undefined): string | undefined {
  if (input === undefined) return undefined;
  const value = JSON.parse(input) as unknown;
  if (typeof value !== "object" || value === null) return titleLine(scalarText(value) ?? "");
  const fields = value as Readonly<Record<string, unknown>>;
  for (const name of REQUEST_FIELDS) {
    const text = fields[name];
    const title = typeof text === "string" ? titleLine(text) : undefined;
    if (title !== undefined) return title;
  }
  return titleLine(Array.isArray(value) ? scalarsOf(value) : fieldsOf(fields));
}

/** A text as a title: its first meaningful line. `undefined` when there is none. */
export function titleLine(text: string): string | undefined {
  const safe = hideSecrets(text.trimStart().slice(0, READ_CHARS)).replace(SEQUENCE, "");
  const isCut = text.length > READ_CHARS;
  for (const line of (isCut ? safe.slice(0, BEGIN_CHARS) : safe).split(LINE_BREAK)) {
    if (!MEANING.test(line) || TAG.test(line)) continue;
    const drawn = line.replace(CONTROL, " ").replace(UNDRAWN, "");
    const words = drawn.replace(/\s+/g, " ").trim().replace(MARKUP, "");
    if (MEANING.test(words)) return cut(words);
  }
  return undefined;
}

/** `path=src/a.ts limit=3`: the simple fields that fit, without those that have a secret by their name. */
function fieldsOf(fields: Readonly<Record<string, unknown>>): string {
  let text = "";
  for (const [name, value] of Object.entries(fields)) {
    const shown = isSecretField(name) ? undefined : scalarText(value);
    if (shown === undefined || shown === "") continue;
    const line = shown.slice(0, READ_CHARS).replace(/\s+/g, " ").trim();
    text += `${text === "" ? "" : " "}${name}=${/\s/.test(line) ? JSON.stringify(shortened(line)) : line}`;
    if (text.length > TITLE_CHARS) break;
  }
  return text;
}

/** A secret is known by its whole text only, so a text that is to be cut is looked at before. */
function shortened(line: string): string {
  return line.length <= VALUE_CHARS ? line : cut(hideSecrets(line), VALUE_CHARS);
}

function scalarsOf(items: readonly unknown[]): string {
  return items
    .slice(0, TITLE_CHARS)
    .flatMap((item) => scalarText(item)?.slice(0, READ_CHARS) ?? [])
    .join(", ");
}

function scalarText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

/** At a word where there is one near the end, else between two characters as people see them. */
function cut(line: string, charsMax = TITLE_CHARS): string {
  if (line.length <= charsMax) return line;
  const end = charsMax - 1;
  const word = line.lastIndexOf(" ", end);
  if (word > charsMax * 0.7) return `${line.slice(0, word)}…`;
  let fits = 0;
  // Some more than fits, so that a cluster at the end is seen whole.
  for (const { index } of new Intl.Segmenter().segment(line.slice(0, charsMax * 2)))
    if (index <= end) fits = index;
  return `${line.slice(0, fits === 0 ? wholeEnd(line, end) : fits)}…`;
}

/** A single cluster that is longer than a title is cut between its code points. */
function wholeEnd(line: string, end: number): number {
  return /[\uD800-\uDBFF]/.test(line[end - 1]!) ? end - 1 : end;
}
