// `findPayloadProblem`: finds parts of a JSON text that values read from it would lose, and scans the text
// for that.
//
// The text is known to be well-formed, because `JSON.parse` accepted it, so nothing here checks syntax.
// Nothing recurses, so no nesting is too deep.

import { FORMAT_LIMITS } from "../limits.ts";

export interface Span {
  readonly start: number;
  readonly end: number;
}

/** The characters of a JSON number. */
export const NUMERIC = "0123456789.eE+-";

/** Why a user's value cannot be kept as it is, or `undefined`. */
export function findPayloadProblem(
  text: string,
  { start, end }: Span,
): { code: string; message: string } | undefined {
  let depth = 0;
  for (let at = start; at < end;) {
    const character = text[at]!;
    if (character === '"') {
      at = endOfString(text, at);
    } else if (character === "{" || character === "[") {
      if (++depth > FORMAT_LIMITS.jsonDepth)
        return { code: "too_deep", message: `is nested deeper than ${FORMAT_LIMITS.jsonDepth} levels` };
      at++;
    } else if (character === "}" || character === "]") {
      depth--;
      at++;
    } else if (character === "-" || (character >= "0" && character <= "9")) {
      const numberEnd = skip(NUMERIC, text, at);
      const literal = text.slice(at, numberEnd);
      // mutant: integer-rounded
      if (isChanged(literal))
        return {
          code: Number.isFinite(Number(literal)) ? "not_safe_integer" : "not_finite",
          message: `holds the number ${literal.slice(0, 40)}, which would become ${Number(literal)}: send it as a string`,
        };
      at = numberEnd;
    } else {
      at++;
    }
  }
  return undefined;
}

/** A number with this many digits may be infinite without an exponent. */
const DIGITS_MAX = 300;

/**
 * Whether reading a number changes it. An integer may become another one, and any number may become infinite.
 */
function isChanged(literal: string): boolean {
  if (literal.length >= 16 && /^-?\d+$/.test(literal)) return String(Number(literal)) !== literal;
  return (/e/i.test(literal) || literal.length > DIGITS_MAX) && !Number.isFinite(Number(literal));
}

/** The index after the string that starts there. Each backslash is examined once, by the quote behind it. */
export function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text[at - 1 - backslashes] === "\\") backslashes++;
    if (backslashes % 2 === 0) return at + 1;
  }
  throw new Error("not a JSON text");
}

/** The index after all these characters. A pattern would keep a way back for each of them. */
export function skip(characters: string, text: string, at: number): number {
  let end = at;
  while (end < text.length && characters.includes(text[end]!)) end++;
  return end;
}
