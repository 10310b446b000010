// `Edit` is the change of one source that plants a mutant. The environment variable `HOLDFAST_MUTANT` holds
// it as JSON, and vitest and Node make it as they load the source. This file imports nothing, because each
// program that a test starts with a mutant loads it.

export interface Edit {
  /** Path of the source from the root of the repository. */
  readonly file: string;
  /** Where the replaced text begins and ends, in UTF-16 units. */
  readonly start: number;
  readonly end: number;
  readonly becomes: string;
}

/** The source with the change. */
export function edited(text: string, { start, end, becomes }: Edit): string {
  return text.slice(0, start) + becomes + text.slice(end);
}
