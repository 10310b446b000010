// `jsonRows`: two JSON values line by line beside each other, such as a state before and after a turn.
//
//   json-rows-1. Fields are compared by name and items by position. A line stands beside the line of the same
//       place.
//   json-rows-2. The result has at most `ROWS_MAX` lines of `LINE_CHARS` characters, however large the values
//       are, and says when it was cut.

export interface JsonRow {
  /** The line on each side; absent where the other side has something more. */
  readonly left?: string;
  readonly right?: string;
  readonly isChanged: boolean;
}

interface JsonRows {
  readonly rows: readonly JsonRow[];
  readonly changes: number;
  readonly isCut: boolean;
}

const ROWS_MAX = 4_000;
const LINE_CHARS = 400;
const DEPTH_MAX = 60;

/** @param left,right `undefined` for a side that has no value. */
export function jsonRows(left: unknown, right: unknown): JsonRows {
  const writer = new Writer();
  writer.pair("", left, right, 0);
  const { rows, isCut } = writer;
  return { rows, changes: rows.filter(({ isChanged }) => isChanged).length, isCut };
}

/** Rows of which long runs without a change are one number: how many lines it leaves out. */
export function foldRows(rows: readonly JsonRow[], around = 2): readonly (JsonRow | number)[] {
  const isNear = rows.map(() => false);
  for (const [at, { isChanged }] of rows.entries())
    if (isChanged) isNear.fill(true, Math.max(0, at - around), at + around + 1);
  const folded: (JsonRow | number)[] = [];
  for (const [at, row] of rows.entries()) {
    const last = folded.at(-1);
    if (isNear[at] === true) folded.push(row);
    else if (typeof last === "number") folded[folded.length - 1] = last + 1;
    else folded.push(1);
  }
  return folded;
}

type Fields = Readonly<Record<string, unknown>>;

class Writer {
  readonly rows: JsonRow[] = [];
  isCut = false;

  pair(name: string, left: unknown, right: unknown, depth: number): void {
    const [a, b] = [fieldsOf(left), fieldsOf(right)];
    if (
      a === undefined ||
      b === undefined ||
      Array.isArray(left) !== Array.isArray(right) ||
      depth > DEPTH_MAX
    )
      return this.#whole(name, left, right, depth);
    const [open, close] = Array.isArray(left) ? ["[", "]"] : ["{", "}"];
    this.#both(name + open, depth);
    for (const field of new Set([...Object.keys(a), ...Object.keys(b)])) {
      if (this.isCut) return;
      this.pair(Array.isArray(left) ? "" : `${JSON.stringify(field)}: `, a[field], b[field], depth + 1);
    }
    this.#both(close, depth);
  }

  /** Values without a part in common. */
  #whole(name: string, left: unknown, right: unknown, depth: number): void {
    const [a, b] = [linesOf(name, left, depth), linesOf(name, right, depth)];
    const isSame =
      left !== undefined && right !== undefined && JSON.stringify(left) === JSON.stringify(right);
    for (let n = 0; n < Math.max(a.length, b.length); n++) {
      const [one, other] = [a[n], b[n]];
      this.#push({
        ...(one === undefined ? {} : { left: one }),
        ...(other === undefined ? {} : { right: other }),
        isChanged: !isSame,
      });
    }
  }

  #both(text: string, depth: number): void {
    const line = lineOf(text, depth);
    this.#push({ left: line, right: line, isChanged: false });
  }

  #push(row: JsonRow): void {
    if (this.rows.length < ROWS_MAX) this.rows.push(row);
    else this.isCut = true; // json-rows-2.
  }
}

function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null ? (value as Fields) : undefined;
}

function linesOf(name: string, value: unknown, depth: number): readonly string[] {
  if (value === undefined) return [];
  const fields = fieldsOf(value);
  if (fields === undefined || depth > DEPTH_MAX) return [lineOf(name + textOf(value), depth)];
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  const lines = [lineOf(name + open, depth)];
  for (const [field, each] of Object.entries(fields)) {
    if (lines.length > ROWS_MAX) break;
    const inner = Array.isArray(value) ? "" : `${JSON.stringify(field)}: `;
    lines.push(...linesOf(inner, each, depth + 1));
  }
  return [...lines, lineOf(close, depth)];
}

function textOf(value: unknown): string {
  return JSON.stringify(value) ?? "";
}

function lineOf(text: string, depth: number): string {
  const cut = text.length > LINE_CHARS ? `${text.slice(0, LINE_CHARS)}… (${text.length} characters)` : text;
  return "  ".repeat(depth) + cut;
}
