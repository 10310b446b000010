// The line of the user's code that an error of loading or running it comes from.

import { decodedPlace, lineOf, stackOf } from "@holdfast/core";

/** `file:line:column` of the first frame that is the user's. */
export function placeOf(error: Error): string | undefined {
  // Errors of syntax begin with their place; others have it in their frames.
  const head = /^(?:file:\/\/)?(\/[^\n]*?:\d+)\n/.exec(stackOf(error))?.[1];
  return head === undefined ? lineOf(error) : decodedPlace(head);
}
