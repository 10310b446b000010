// `unlessCorrupt`, `ifCorrupt`: reads that pass over damaged sessions and rows where many are read, so that
// the others are still found. A caller that asks for a damaged session itself gets the error.

import { HoldfastError } from "./errors.ts";

export function isCorrupt(thrown: unknown): boolean {
  return HoldfastError.is(thrown) && thrown.code === "corrupt_record";
}

/** The value that is read; `undefined` if it is damaged. */
export function unlessCorrupt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    return ifCorrupt(error);
  }
}

/** `undefined` for a damaged value: `read.catch(ifCorrupt)`. */
export function ifCorrupt(thrown: unknown): undefined {
  // mutant: damage-stops-round
  if (!isCorrupt(thrown)) throw thrown;
}
