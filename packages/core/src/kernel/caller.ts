// The line of the agent's code that called us, for errors.

import { lineOf } from "../errors/author-line.ts";

/** `file:line:column` of the nearest frame that is the author's. */
export function callerLine(here: Error = new Error()): string | undefined {
  return lineOf(here);
}

/** The same for later: a stack is cheaper to take than to write out, and most waits never need theirs. */
export function laterCallerLine(): () => string | undefined {
  const here = new Error();
  return () => callerLine(here);
}
