// `membersOf` and `elementsOf` find the places of values in a JSON text, so that a value can be copied
// unchanged. A span has indexes of the text's characters.
//
// The text is well-formed, because `JSON.parse` accepted it; nothing here checks syntax. There is no
// recursion, so any nesting depth works.
//
//   json-spans-1. Members of a value that is no object, and elements of a value that is no list, are an
//       error. It never becomes a search beyond the end of the text.

import { endOfString, NUMERIC, skip, type Span } from "@holdfast/core";

const SPACE = "\t\n\r ";
/** The characters of a number, `true`, `false` or `null`. */
const WORD = `${NUMERIC}abcdfghijklmnopqrstuvwxyz`;

/** The span of the value, without the space around it. */
export function trimmed(text: string): Span {
  const start = skip(SPACE, text, 0);
  return { start, end: endOfValue(text, start) };
}

/** The keys and value spans of the object at a place, in their order, including repeated keys. */
export function membersOf(text: string, { start }: Span): readonly (readonly [key: string, span: Span])[] {
  const members: [string, Span][] = [];
  requireAt(text, start, "{");
  let at = skip(SPACE, text, start + 1);
  while (text[at] !== "}") {
    requireAt(text, at, '"');
    const keyEnd = endOfString(text, at);
    const key = JSON.parse(text.slice(at, keyEnd)) as string;
    const valueStart = skip(SPACE, text, skip(SPACE, text, keyEnd) + 1);
    const end = endOfValue(text, valueStart);
    members.push([key, { start: valueStart, end }]);
    at = nextItem(text, end);
  }
  return members;
}

/** The spans of the elements of the list at a place. */
export function elementsOf(text: string, { start }: Span): readonly Span[] {
  const elements: Span[] = [];
  requireAt(text, start, "[");
  let at = skip(SPACE, text, start + 1);
  while (text[at] !== "]") {
    const end = endOfValue(text, at);
    if (end === at) throw new Error(NOT_JSON);
    elements.push({ start: at, end });
    at = nextItem(text, end);
  }
  return elements;
}

const NOT_JSON = "not a JSON text, or not the value that was asked for";

/** json-spans-1. */
function requireAt(text: string, at: number, character: string): void {
  if (text[at] !== character) throw new Error(NOT_JSON);
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
    else if (character === undefined) throw new Error(NOT_JSON);
  }
}

function nextItem(text: string, end: number): number {
  const at = skip(SPACE, text, end);
  return text[at] === "," ? skip(SPACE, text, at + 1) : at;
}
