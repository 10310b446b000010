// Damaged sessions and rows, where many are looked through: one of them must not keep the others from being found. Whoever asks for it
// itself is told.

import { HoldfastError } from "./errors.ts";

export function isCorrupt(thrown: unknown): boolean {
  return HoldfastError.is(thrown) && thrown.code === "corrupt_record";
}

/** What is read; nothing where it is damaged. */
export function unlessCorrupt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    return ifCorrupt(error);
  }
}

/** Nothing where it is damaged: `read.catch(ifCorrupt)`. */
export function ifCorrupt(thrown: unknown): undefined {
  if (!isCorrupt(thrown)) throw thrown;
}
