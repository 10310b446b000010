// Readers for messages of another program, in which nothing is certain. Pure.

/** The fields of a line of JSON. */
export type Fields = Readonly<Record<string, unknown>>;

/** Text of one result of a tool that is recorded. */
const RESULT_CHARS = 64 * 1024;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function fieldsOf(value: unknown): Fields {
  return isFields(value) ? value : {};
}

export function listOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : [];
}

export function textOr(value: unknown, fallback: string): string {
  return typeof value === "string" ? value : fallback;
}

/** A text as it is, and any other value as JSON. */
export function textOrJson(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}

/** The texts of the parts of a result. A part that is no text is named by its type. */
export function partsText(parts: unknown): string {
  const texts = listOf(parts).map(({ type, text }) => textOr(text, `(${textOr(type, "content")})`));
  return recordedResult(texts.join("\n"));
}

/** A count of tokens; zero for everything that is none. */
export function countOf(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

/** @returns the object of a line, `undefined` for a line that holds none. */
export function parseFields(line: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The result of a tool, up to the length that is recorded. */
export function recordedResult(text: string): string {
  return cutText(text, RESULT_CHARS);
}

/** A text up to a length, with a note where it is cut. */
export function cutText(text: string, charsMax: number): string {
  return text.length <= charsMax
    ? text
    : `${text.slice(0, charsMax)}\n(${text.length - charsMax} more characters are not recorded)`;
}
