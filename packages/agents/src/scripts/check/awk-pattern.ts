// `awkPattern`: a pattern of a JSON Schema as a regular expression of awk. Pure.
//
//   - The texts that it meets are plain: each character that is not ASCII is one DEL (`plain` of the runtime).
//     A class is thus the list of the ASCII characters that it matches here, and DEL stands for all others.
//   - A part that the expressions of awk have not, such as a look ahead, has no translation.

/** An escaped character, a class, the beginning of a group, a repetition, or one character. */
const PARTS =
  /\\(?:u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[a-zA-Z]|[^])|\[(?:\\[^]|[^\]\\])*\]|\((?:\?(?:[:=!]|<[=!]|<\w+>))?|(?:[*+?]|\{\d+(?:,\d*)?\})\??|[^]/gu;
const REPETITION = /^([*+?])|^\{(\d+)(,?)(\d*)\}/;
const DEL = "\x7f";
/** Characters that stand for all that are not ASCII. A class that holds only some of them has no translation. */
const OTHERS = ["é", "ß", "Ω", "я", "中", "😀", "\u00a0", "\u2028"];
const ASCII = Array.from({ length: 126 }, (_, at) => String.fromCodePoint(at + 1));
/** The length of a translated pattern. Repetitions with numbers are written out, because not every awk has them. */
const CHARS_MAX = 4_000;

/** @returns `undefined` for a pattern without a translation. */
export function awkPattern(pattern: string): string | undefined {
  try {
    const reader = new PatternReader(pattern);
    const text = reader.alternatives();
    return reader.isAtEnd && text.length <= CHARS_MAX ? text : undefined;
  } catch (error) {
    if (error instanceof Untranslated) return undefined;
    throw error;
  }
}

class Untranslated extends Error {}

class PatternReader {
  readonly #parts: readonly string[];
  #at = 0;

  constructor(pattern: string) {
    this.#parts = pattern.match(PARTS) ?? [];
  }

  get isAtEnd(): boolean {
    return this.#at === this.#parts.length;
  }

  alternatives(): string {
    const all = [this.#sequence()];
    while (this.#parts[this.#at] === "|") {
      this.#at++;
      all.push(this.#sequence());
    }
    // The programs read an empty alternative in different ways.
    if (all.length > 1 && all.includes("")) throw new Untranslated();
    return all.join("|");
  }

  #sequence(): string {
    let text = "";
    while (!this.isAtEnd && this.#parts[this.#at] !== "|" && this.#parts[this.#at] !== ")") {
      text += this.#repeated(this.#atom());
      if (text.length > CHARS_MAX) throw new Untranslated();
    }
    return text;
  }

  #atom(): string {
    const part = this.#parts[this.#at++] ?? "";
    if (part === "^" || part === "$") return part;
    if (REPETITION.test(part)) throw new Untranslated();
    if (!part.startsWith("(")) return charactersOf(part);
    if (/^\(\?(?:[=!]|<[=!])/.test(part)) throw new Untranslated();
    const inner = this.alternatives();
    if (this.#parts[this.#at++] !== ")" || inner === "") throw new Untranslated();
    return `(${inner})`;
  }

  #repeated(atom: string): string {
    const [text = "", sign, least, comma, most] = REPETITION.exec(this.#parts[this.#at] ?? "") ?? [];
    if (text === "") return atom;
    if (atom === "^" || atom === "$") throw new Untranslated();
    this.#at++;
    if (sign !== undefined) return atom + sign;
    const from = Number(least);
    if (from * atom.length > CHARS_MAX || Number(most) * atom.length > CHARS_MAX) throw new Untranslated();
    const begin = atom.repeat(from);
    if (comma === "") return begin;
    return begin + (most === "" ? `${atom}*` : `${atom}?`.repeat(Math.max(0, Number(most) - from)));
  }
}

/** One character, an escape for one, or a class, as the list of what it matches. */
function charactersOf(part: string): string {
  if (/^\\(?:[bBpPk]|\d)/.test(part)) throw new Untranslated();
  let one: RegExp;
  try {
    one = new RegExp(`^(?:${part})$`, "u");
  } catch {
    throw new Untranslated();
  }
  const others = OTHERS.filter((character) => one.test(character));
  const matched = ASCII.filter((character) => one.test(character));
  const isPlain = !/\P{ASCII}|\\[ux]/u.test(part);
  const isOfAscii = isPlain && others.length === 0 && matched.length > 0;
  // White space beyond ASCII, and line ends beyond it, are the only ones that a class may leave out.
  const isOpen = isPlain && others.length >= OTHERS.length - 2;
  const isSpace = isPlain && /\\s/.test(part) && others.length <= 2;
  if (!isOfAscii && !isOpen && !isSpace) throw new Untranslated();
  return classOf(isOpen ? [...matched, DEL] : matched);
}

/** Not every awk reads these in brackets alike. */
const APART = ["]", "[", "\\", "^", "-"];

function classOf(characters: readonly string[]): string {
  const ranges: [first: number, last: number][] = [];
  for (const character of characters.filter((one) => !APART.includes(one))) {
    const code = character.codePointAt(0) ?? 0;
    const open = ranges.at(-1);
    if (open?.[1] === code - 1) open[1] = code;
    else ranges.push([code, code]);
  }
  const inside = ranges.map(([first, last]) =>
    last - first > 1
      ? `${String.fromCodePoint(first)}-${String.fromCodePoint(last)}`
      : String.fromCodePoint(...new Set([first, last])),
  );
  const apart = APART.filter((one) => characters.includes(one)).map((one) => `\\${one}`);
  const all = [...(inside.length === 0 ? [] : [`[${inside.join("")}]`]), ...apart];
  return all.length === 1 ? all.join("") : `(${all.join("|")})`;
}
