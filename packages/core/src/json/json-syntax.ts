// `jsonSyntaxProblem`: finds the place where the syntax of a JSON text is wrong. Engines give a position for
// some mistakes and none for others, and they quote the text, which may hold a secret. This file therefore
// scans the text that `JSON.parse` refused.
//
//   json-syntax-1. A problem is found exactly where `JSON.parse` throws.
//   json-syntax-2. One pass without recursion, so no nesting is too deep, and the time grows with the text.

/**
 * The mistake with its line and column, both counted from 1; `undefined` for valid JSON. No letter and no
 * digit is quoted.
 */
export function jsonSyntaxProblem(text: string): string | undefined {
  const at = findSyntaxError(text);
  if (at === undefined) return undefined;
  const before = text.slice(0, at).split(/\r\n|\r|\n/);
  const column = Array.from(before.at(-1)!).length + 1;
  const place = `at line ${before.length}, column ${column}`;
  const [character] = text.slice(at);
  if (character === undefined) return `the text ends too early, ${place}`;
  return `unexpected ${/[\p{L}\p{N}]/u.test(character) ? "character" : JSON.stringify(character)} ${place}`;
}

type Expected = "value" | "value_or_close" | "key" | "key_or_close" | "colon" | "comma_or_close" | "end";

/**
 * The index of the first character that no JSON text has there. For a text that ends too early it is the
 * length.
 */
function findSyntaxError(text: string): number | undefined {
  const open: ("{" | "[")[] = [];
  let expected: Expected = "value";
  const afterValue = (): Expected => (open.length === 0 ? "end" : "comma_or_close");
  for (let at = past(SPACE, text, 0); ; at = past(SPACE, text, at)) {
    const character = text[at];
    if (character === undefined) return expected === "end" ? undefined : at;
    const isClose = character === (open.at(-1) === "{" ? "}" : "]");
    if (isClose && (expected === "comma_or_close" || expected.endsWith("_or_close"))) {
      open.pop();
      expected = afterValue();
      at++;
    } else if (expected === "end") {
      return at;
    } else if (expected === "comma_or_close") {
      if (character !== ",") return at;
      expected = open.at(-1) === "{" ? "key" : "value";
      at++;
    } else if (expected === "colon") {
      if (character !== ":") return at;
      expected = "value";
      at++;
    } else if (expected === "key" || expected === "key_or_close") {
      if (character !== '"') return at;
      const string = readString(text, at);
      if (!string.isWhole) return string.end;
      at = string.end;
      expected = "colon";
    } else if (character === "{" || character === "[") {
      open.push(character);
      expected = character === "{" ? "key_or_close" : "value_or_close";
      at++;
    } else {
      const scalar = readScalar(text, at);
      if (!scalar.isWhole) return scalar.end;
      at = scalar.end;
      expected = afterValue();
    }
  }
}

interface Part {
  /** The index behind it, or the place of the mistake. */
  readonly end: number;
  readonly isWhole: boolean;
}

function readScalar(text: string, start: number): Part {
  const character = text[start]!;
  if (character === '"') return readString(text, start);
  if (character === "-" || DIGIT.test(character)) return readNumber(text, start);
  const word = WORDS.find((candidate) => candidate.startsWith(character));
  if (word === undefined) return { end: start, isWhole: false };
  for (let i = 0; i < word.length; i++)
    if (text[start + i] !== word[i]) return { end: start + i, isWhole: false };
  return { end: start + word.length, isWhole: true };
}

function readString(text: string, start: number): Part {
  for (let at = start + 1; ; at++) {
    const character = text[at];
    if (character === undefined || character < " ") return { end: at, isWhole: false };
    if (character === '"') return { end: at + 1, isWhole: true };
    if (character !== "\\") continue;
    const escaped = text[++at];
    if (escaped === undefined || !ESCAPED.test(escaped)) return { end: at, isWhole: false };
    if (escaped !== "u") continue;
    for (const last = at + 4; at < last;) if (!HEX.test(text[++at] ?? "")) return { end: at, isWhole: false };
  }
}

function readNumber(text: string, start: number): Part {
  let at = text[start] === "-" ? start + 1 : start;
  /** At least one digit. */
  const digits = (): boolean => {
    const from = at;
    at = past(DIGIT, text, at);
    return at > from;
  };
  if (text[at] === "0") at++;
  else if (!digits()) return { end: at, isWhole: false };
  if (text[at] === ".") {
    at++;
    if (!digits()) return { end: at, isWhole: false };
  }
  if (text[at] === "e" || text[at] === "E") {
    at++;
    if (text[at] === "+" || text[at] === "-") at++;
    if (!digits()) return { end: at, isWhole: false };
  }
  return { end: at, isWhole: true };
}

function past(character: RegExp, text: string, start: number): number {
  let at = start;
  while (at < text.length && character.test(text[at]!)) at++;
  return at;
}

const WORDS = ["true", "false", "null"] as const;
const SPACE = /[ \t\r\n]/;
const DIGIT = /[0-9]/;
const HEX = /[0-9A-Fa-f]/;
const ESCAPED = /["\\/bfnrtu]/;
