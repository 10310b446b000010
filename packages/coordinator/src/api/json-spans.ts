// Where in a JSON text its parts stand, so that a part can be taken over to the byte.
//
// The text is known to be well-formed (`JSON.parse` took it): nothing here checks syntax. No recursion, so that no nesting is too deep.

import { endOfString, NUMERIC, skip, type Span } from "@holdfast/core/internal";

const SPACE = "\t\n\r ";
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
