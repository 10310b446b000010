// Damaged rows, where many are looked through: one of them must not keep the others from being found. Whoever asks for it itself is told.

import { HoldfastError } from "@holdfast/core";

export function isCorrupt(thrown: unknown): boolean {
  return HoldfastError.is(thrown) && thrown.code === "corrupt_record";
}

/** What is read; nothing where it is damaged. */
export function unlessCorrupt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (isCorrupt(error)) return undefined;
    throw error;
  }
}
