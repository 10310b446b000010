// VerifyReport: the findings of a full check of a database, of any kind, during the check and afterwards.
//
//   - A check never stops at the first problem, and never throws for one: the report is for a person who must
//     decide.
//   - Memory is bounded: problems are counted beyond `PROBLEMS_MAX`.

import { HoldfastError, toError } from "@holdfast/core";

export interface VerifyReport {
  /** The first `PROBLEMS_MAX` problems. Empty when the database is sound. */
  readonly problems: readonly VerifyProblem[];
  readonly problemCount: number;
  /** Rows checked, by table. */
  readonly rows: Readonly<Record<string, number>>;
}

interface VerifyProblem {
  readonly table: string;
  readonly message: string;
}

export const PROBLEMS_MAX = 100;

export class Findings implements VerifyReport {
  readonly problems: VerifyProblem[] = [];
  problemCount = 0;
  readonly rows: Record<string, number> = {};
  /** The name of the database system, for errors of another kind than ours. */
  readonly #database: string;

  constructor(database: string) {
    this.#database = database;
  }

  add(table: string, message: string): void {
    this.problemCount++;
    if (this.problems.length < PROBLEMS_MAX) this.problems.push({ table, message });
  }

  /** Something could not be read. */
  addError(table: string, error: unknown): void {
    const { message } = toError(error);
    this.add(table, HoldfastError.is(error) ? message : `${this.#database} says: ${message}`);
  }

  count(table: string): void {
    this.rows[table] = (this.rows[table] ?? 0) + 1;
  }
}
