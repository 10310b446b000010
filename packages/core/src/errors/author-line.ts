// The line of the author's code in a stack, for errors. Best effort: engines without stacks give none.
//
//   author-line-1. A frame of our own packages is never named: it says nothing to the author.

/** Where our packages lie, `…/packages/` or `…/@holdfast/`. Without the scheme: some loaders give frames as paths. */
const OURS = import.meta.url.replace(/^file:\/\//, "").replace(/core\/(?:src|dist)\/(?:errors\/)?[^/]*$/, "");
/** Tests beside our sources, and what they share, are authors too. */
const OWN_FRAME = /^[^/]+\/(?:src|dist|bin)\/(?!.*(?:\.test\.|\/testing\/))/;

/** `file:line:column` of the nearest frame outside our packages, the engine and what is installed. */
export function lineOf(error: Error): string | undefined {
  for (const frame of (error.stack ?? "").split("\n")) {
    const place = /^\s*at (?:.*\()?(?:async )?(?:file:\/\/)?(\/[^()]*:\d+:\d+)\)?$/.exec(frame)?.[1];
    if (place === undefined || place.includes("/node_modules/") || isOurs(place)) continue;
    return decodedPlace(place);
  }
  return undefined;
}

/** Places in stacks are parts of addresses. */
export function decodedPlace(place: string): string {
  try {
    return decodeURI(place);
  } catch {
    return place;
  }
}

/** Whether a `file:line:column` of a stack is in our packages (author-line-1). */
export function isOurs(place: string): boolean {
  return place.startsWith(OURS) && OWN_FRAME.test(place.slice(OURS.length));
}
