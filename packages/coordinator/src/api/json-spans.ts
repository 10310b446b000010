// Where in a JSON text its parts stand, so that a part can be taken over to the byte.
//
// The text is known to be well-formed (`JSON.parse` took it): nothing here checks syntax. No recursion, so that no nesting is too deep.

import { FORMAT_LIMITS } from "@holdfast/core";

export interface Span {
  readonly start: number;
  readonly end: number;
}

const SPACE = "\t\n\r ";
const NUMERIC = "0123456789.eE+-";
/** What a number, `true`, `false` or `null` is written with. */
const WORD = `${NUMERIC}abcdfghijklmnopqrstuvwxyz`;

/** The value itself, without the space around it. */
export function trimmed(text: string): Span {
  const start = skip(SPACE, text, 0);
  return { start, end: endOfValue(text, start) };
}

/** Keys and places of values of the object that stands there, in their order, also of a key that comes twice. */
export function membersOf(text: string, { start }: Span): readonly (readonly [key: string, span: Span])[] {
  const members: [string, Span][] = [];
  let at = skip(SPACE, text, start + 1);
  while (text[at] !== "}") {
    const keyEnd = endOfString(text, at);
    const key = JSON.parse(text.slice(at, keyEnd)) as string;
    const valueStart = skip(SPACE, text, skip(SPACE, text, keyEnd) + 1);
    const end = endOfValue(text, valueStart);
    members.push([key, { start: valueStart, end }]);
    at = nextItem(text, end);
  }
  return members;
}

/** Places of the elements of the list that stands there. */
export function elementsOf(text: string, { start }: Span): readonly Span[] {
  const elements: Span[] = [];
  let at = skip(SPACE, text, start + 1);
  while (text[at] !== "]") {
    const end = endOfValue(text, at);
    elements.push({ start: at, end });
    at = nextItem(text, end);
  }
  return elements;
}

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
      if (isRounded(literal))
        return {
          code: "not_safe_integer",
          message: `holds the integer ${literal.slice(0, 40)}, which would become ${Number(literal)}: send it as a string`,
        };
      at = numberEnd;
    } else {
      at++;
    }
  }
  return undefined;
}

/** An integer that is another one once it is read as a number, and is not how a number is written. */
function isRounded(literal: string): boolean {
  return literal.length >= 16 && /^-?\d+$/.test(literal) && String(Number(literal)) !== literal;
}

function endOfValue(text: string, start: number): number {
  const first = text[start];
  if (first === '"') return endOfString(text, start);
  if (first !== "{" && first !== "[") return skip(WORD, text, start);
  let depth = 0;
  for (let at = start; ;) {
    const character = text[at];
    if (character === '"') {
      at = endOfString(text, at);
      continue;
    }
    at++;
    if (character === "{" || character === "[") depth++;
    else if ((character === "}" || character === "]") && --depth === 0) return at;
    else if (character === undefined) throw new Error("not a JSON text");
  }
}

function nextItem(text: string, end: number): number {
  const at = skip(SPACE, text, end);
  return text[at] === "," ? skip(SPACE, text, at + 1) : at;
}

/** Past the string that starts there. Each backslash is looked at once, by the quote it stands before. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text[at - 1 - backslashes] === "\\") backslashes++;
    if (backslashes % 2 === 0) return at + 1;
  }
  throw new Error("not a JSON text");
}

/** Past all these characters. A pattern would keep a way back for each of them. */
function skip(characters: string, text: string, at: number): number {
  let end = at;
  while (end < text.length && characters.includes(text[end]!)) end++;
  return end;
}
