// `lineOf`, `callerLine`: the line of the author's code in a stack, for errors. Best effort, because some
// engines have no stacks, and programs change how stacks look.
//
// A frame of our own packages is never named, because it says nothing to the author. In a bundle our code and
// the author's may be one file. No line of that file is named then, unless Node reads source maps.

/** The place of this file, as stacks show it. Bundlers of CommonJS leave `import.meta` empty. */
const HERE = placeIn(framesOf(new Error())[0])?.replace(/:\d+:\d+$/, "");
/** The folder of our packages, `…/packages/` or `…/@holdfast/`; `undefined` in a bundle. */
const OURS = /^(.*\/)core\/(?:src|dist)\/(?:errors\/)?[^/]*$/.exec(HERE ?? "")?.[1];
/** Tests beside our sources, and their shared code, count as authors' code. */
const OWN_FRAME = /^[^/]+\/(?:src|dist|bin)\/(?!.*(?:\.test\.|\/testing\/))/;

/**
 * The text of an error's stack. Never throws: `Error.prepareStackTrace` of a program may give a list of
 * frames, anything else, or an exception.
 */
export function stackOf(error: object): string {
  try {
    const { stack } = error as { readonly stack?: unknown };
    if (Array.isArray(stack)) return stack.map((frame) => `    at ${String(frame)}`).join("\n");
    return typeof stack === "string" ? stack : "";
  } catch {
    return "";
  }
}

/** The frames of an error's stack, as lines that begin with `at`. */
export function framesOf(error: object): readonly string[] {
  return stackOf(error)
    .split("\n")
    .filter((line) => /^\s*at /.test(line));
}

/** `file:line:column` of a line of a stack, without the scheme, because some loaders give frames as paths. */
function placeIn(frame = ""): string | undefined {
  return /^\s*at (?:.*\()?(?:async )?(?:file:\/\/)?(\/[^()]*:\d+:\d+)\)?$/.exec(frame)?.[1];
}

/** `file:line:column` of the nearest frame outside our packages, the engine and installed packages. */
export function lineOf(error: Error): string | undefined {
  for (const frame of framesOf(error)) {
    const place = placeIn(frame);
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
  if (OURS === undefined) return HERE !== undefined && place.startsWith(`${HERE}:`);
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
