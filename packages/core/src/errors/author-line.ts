// `lineOf`, `callerLine`: the line of the author's code in a stack, for errors. Best effort, because some
// engines have no stacks.
//
// A frame of our own packages is never named, because it says nothing to the author.

/**
 * The place of our packages, `…/packages/` or `…/@holdfast/`, without the scheme, because some loaders give
 * frames as paths.
 */
const OURS = import.meta.url.replace(/^file:\/\//, "").replace(/core\/(?:src|dist)\/(?:errors\/)?[^/]*$/, "");
/** Tests beside our sources, and their shared code, count as authors' code. */
const OWN_FRAME = /^[^/]+\/(?:src|dist|bin)\/(?!.*(?:\.test\.|\/testing\/))/;

/** `file:line:column` of the nearest frame outside our packages, the engine and installed packages. */
export function lineOf(error: Error): string | undefined {
  for (const frame of (error.stack ?? "").split("\n")) {
    const place = /^\s*at (?:.*\()?(?:async )?(?:file:\/\/)?(\/[^()]*:\d+:\d+)\)?$/.exec(frame)?.[1];
    if (place === undefined || place.includes("/node_modules/") || isOurs(place)) continue;
    return decodedPlace(place);
  }
  return undefined;
}

/** A place in a stack with its address decoded. */
export function decodedPlace(place: string): string {
  try {
    return decodeURI(place);
  } catch {
    return place;
  }
}

/** Whether a `file:line:column` of a stack is in our packages. */
export function isOurs(place: string): boolean {
  return place.startsWith(OURS) && OWN_FRAME.test(place.slice(OURS.length));
}

/** `file:line:column` of the nearest frame that is the author's. */
export function callerLine(here: Error = new Error()): string | undefined {
  return lineOf(here);
}

/** The same for later: a stack is cheaper to take than to write out, and most waits never need theirs. */
export function laterCallerLine(): () => string | undefined {
  const here = new Error();
  return () => callerLine(here);
}
