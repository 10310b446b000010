// What is read of sessions where many are looked through: one that is damaged must not keep the others from being found.

import { HoldfastError } from "@holdfast/core";

/** What is read; nothing where it is damaged: whoever asks for the session itself is told so. */
export async function unlessDamaged<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (HoldfastError.is(error) && error.code === "corrupt_record") return undefined;
    throw error;
  }
}
