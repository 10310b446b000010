// The line of the user's code that an error comes from. A stack is ours to read and nobody's to be shown.

import { fileURLToPath } from "node:url";

/** Where our own packages lie: their frames say nothing to a user. */
const OURS = fileURLToPath(new URL("../../", import.meta.url));

/** `file:line:column` of the first frame that is the user's. */
export function placeOf(error: Error): string | undefined {
  const stack = error.stack ?? "";
  // Errors of syntax begin with their place; others have it in their frames.
  const head = /^(?:file:\/\/)?(\/[^\n]*?:\d+)\n/.exec(stack)?.[1];
  if (head !== undefined) return decoded(head);
  for (const frame of stack.split("\n")) {
    const place = /^\s*at (?:.*\()?(?:file:\/\/)?(\/[^()]*:\d+:\d+)\)?$/.exec(frame)?.[1];
    if (place !== undefined && !place.includes("/node_modules/") && !place.startsWith(OURS))
      return decoded(place);
  }
  return undefined;
}

/** Places in stacks are parts of URLs. */
export function decoded(place: string): string {
  try {
    return decodeURI(place);
  } catch {
    return place;
  }
}
