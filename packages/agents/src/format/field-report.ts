// The report on the fields of an agent file (`FieldReport`): one verdict for each field, so that nothing is
// ignored silently.

export type Verdict = "honoured" | "mapped" | "ignored" | "refused";

export interface FieldVerdict {
  /** The path of the field, such as `holdfast.budget`. */
  readonly field: string;
  /** A file with a `refused` field is not loaded. */
  readonly verdict: Verdict;
  /** The value that it is mapped to, or the reason; may be empty for `honoured`. */
  readonly text: string;
  /** The line of the field in its file, from 1. */
  readonly line: number | null;
}

export class FieldReport {
  readonly verdicts: FieldVerdict[] = [];
  readonly #lineOf: (path: readonly string[]) => number | null;

  constructor(lineOf: (path: readonly string[]) => number | null = () => null) {
    this.#lineOf = lineOf;
  }

  add(path: readonly string[], verdict: Verdict, text = ""): void {
    this.verdicts.push({ field: path.join("."), verdict, text, line: this.#lineOf(path) });
  }
}
