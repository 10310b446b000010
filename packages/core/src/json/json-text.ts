// What a JSON text says that values read from it would no longer say, and the scanning that takes.
//
// The text is known to be well-formed (`JSON.parse` took it): nothing here checks syntax. No recursion, so that no nesting is too deep.

import { FORMAT_LIMITS } from "../limits.ts";

export interface Span {
  readonly start: number;
  readonly end: number;
}

/** What a number is written with. */
export const NUMERIC = "0123456789.eE+-";

/** Why a value of a user cannot be kept as it is, when it cannot. */
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

/** A number of so many digits may be infinite without an exponent. */
const DIGITS_MAX = 300;

/** An integer that is another one once it is read as a number, and is not how a number is written; or what is read as infinite. */
function isChanged(literal: string): boolean {
  if (literal.length >= 16 && /^-?\d+$/.test(literal)) return String(Number(literal)) !== literal;
  return (/e/i.test(literal) || literal.length > DIGITS_MAX) && !Number.isFinite(Number(literal));
}

/** Past the string that starts there. Each backslash is looked at once, by the quote it stands before. */
export function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text[at - 1 - backslashes] === "\\") backslashes++;
    if (backslashes % 2 === 0) return at + 1;
  }
  throw new Error("not a JSON text");
}

/** Past all these characters. A pattern would keep a way back for each of them. */
export function skip(characters: string, text: string, at: number): number {
  let end = at;
  while (end < text.length && characters.includes(text[end]!)) end++;
  return end;
}
