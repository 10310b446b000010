// `Parts`: common table expressions over the rows of a group, as one statement with its parameters.
//
// Parts of one row each are written with plain values (write-statement-5). All others take their rows from
// arrays:
//
//   - A text column is unnested. The server keeps the result of each such column in a store of 24 KB. That
//     was more than half of its work for a group.
//   - A number is therefore read from its array by the number of its row. That takes no time only while no
//     element is null.
//   - Columns that are marked `alike` mostly have one value in all rows. Such a value is sent once. If the
//     rows of a part differ in one of them, its alike columns are all unnested. Thus a part has three texts.

import { crc32 } from "node:zlib";
import { binaryArray, type Element, type ElementType } from "../database/binary-arrays.ts";
import type { Statement } from "../database/database.ts";

export interface WriteStatement {
  readonly statement: Statement;
  readonly values: readonly unknown[];
}

export interface Column {
  readonly type: ElementType;
  readonly values: readonly Element[];
  readonly isAlike: boolean;
}

/** How a column is made of rows. A column of numbers with nulls is `alike`. */
export type ColumnOf<T> = readonly [type: ElementType, value: (row: T) => Element, alike?: "alike"];

/** Columns of rows, in the order they are named. */
export function columnsOf<T>(rows: readonly T[], ...columns: readonly ColumnOf<T>[]): Column[] {
  return columns.map(([type, value, alike]) => ({
    type,
    values: rows.map(value),
    isAlike: alike !== undefined,
  }));
}

interface Part {
  readonly name: string;
  readonly text: string;
  readonly columns: readonly Column[];
}

export class Parts {
  readonly #parts: Part[] = [];
  readonly #values: unknown[] = [];
  readonly #conditions: string[] = [];
  #mustMove: string | undefined;

  /**
   * @param text of an expression. The rows of `columns` are put where it says `$COLUMNS`, and `$OK` is whether
   *   rows may be touched.
   */
  add(name: string, text: string, columns: readonly Column[] = []): void {
    this.#parts.push({ name, text, columns });
  }

  /** No part touches a row unless this part finds that many rows. It comes before all parts that touch rows. */
  mustFind(name: string, rows: number): void {
    this.#conditions.push(this.#counts(name, rows));
  }

  /** It fails unless this part touches so many rows. */
  mustTouch(name: string, rows: number): void {
    this.#mustMove = this.#counts(name, rows);
  }

  #counts(name: string, rows: number): string {
    return `(SELECT count(*) FROM ${name}) = ${this.#param(rows, "int8")}`;
  }

  #param(value: unknown, type: string): string {
    this.#values.push(value);
    return `$${this.#values.length}::${type}`;
  }

  statement(): WriteStatement {
    const areRows = this.#parts.every(({ columns }) => columns.every(({ values }) => values.length === 1));
    const isFree = this.#conditions.length === 0;
    const parts = this.#parts.map(({ name, text, columns }) => {
      const from = columns.length === 0 ? "" : areRows ? this.#row(columns) : this.#rows(columns);
      const filled = text
        .replace("$COLUMNS", () => from)
        .replace("$OK", isFree ? "true" : "(SELECT ok FROM ok)");
      return `${name} AS ${filled}`;
    });
    // `ok` comes after the parts that it counts, and before the parts that read it.
    if (!isFree)
      parts.splice(
        this.#conditions.length,
        0,
        `ok AS MATERIALIZED (SELECT ${this.#conditions.join(" AND ")} AS ok)`,
      );
    const answer = isFree ? "true" : "ok";
    const isWhole = this.#mustMove === undefined ? "" : ` AND 1 / (${this.#mustMove})::int = 1`;
    const all = parts.length === 0 ? "" : `WITH ${parts.join(",\n")}\n`;
    const text = `${all}SELECT ${answer}${isWhole} AS ok${isFree ? "" : " FROM ok"}`;
    return { statement: { name: `write_${crc32(text).toString(36)}`, text }, values: this.#values };
  }

  #row(columns: readonly Column[]): string {
    return `(VALUES (${columns.map(({ type, values }) => this.#param(values[0], type)).join(", ")}))`;
  }

  #rows(columns: readonly Column[]): string {
    const areAlike = columns.every(({ isAlike, values }) => !isAlike || isOneValue(values));
    const listed = columns.filter(({ type, isAlike }) => (isAlike ? !areAlike : type === "text"));
    const lists = new Set(listed.length === 0 ? columns.slice(0, 1) : listed); // Something has to say how many rows.
    const unnested: string[] = [];
    const cells = columns.map((column) => {
      const { type, values, isAlike } = column;
      if (!lists.has(column) && isAlike) return this.#param(values[0], type);
      const array = this.#param(binaryArray(type, values), `${type}[]`);
      if (!lists.has(column)) return `(${array})[u.nth]`;
      unnested.push(array);
      return `u.c${unnested.length}`;
    });
    const names = unnested.map((_, i) => `c${i + 1}`);
    return `(SELECT ${cells.join(", ")} FROM unnest(${unnested.join(", ")}) WITH ORDINALITY AS u (${names.join(", ")}, nth))`;
  }
}

function isOneValue(values: readonly Element[]): boolean {
  const [first] = values;
  return values.every((value) => value === first);
}
