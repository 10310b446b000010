// `viewCause`: why something failed, for people. The cause comes first, then its code, then its advice.
//
// Texts are those of agents and of other systems. The caller makes them visible.

import type { PlainError } from "../journal-event.ts";

interface CauseView {
  /** The innermost error, which says what went wrong first. */
  readonly words: string;
  /** The code of the innermost error that has one. */
  readonly code?: string;
  /** How to mend it, of the innermost error that says so. */
  readonly advice?: string;
  /** The errors around the cause, the outermost first. Each says what failed because of it. */
  readonly around: readonly string[];
}

/** A chain that is longer is one that refers to itself. */
const DEPTH_MAX = 20;

export function viewCause(error: PlainError): CauseView {
  const chain = [error];
  for (let cause = error.cause; cause !== undefined && chain.length < DEPTH_MAX; cause = cause.cause)
    chain.push(cause);
  const inner = chain.toReversed();
  const code = inner.find((one) => one.code !== undefined)?.code;
  const advice = inner.find((one) => one.fix !== undefined)?.fix;
  return {
    words: wordsOf(inner[0]!),
    ...(code !== undefined && { code }),
    ...(advice !== undefined && { advice }),
    around: chain.slice(0, -1).map(wordsOf),
  };
}

/** Names that say no more than that it is an error. */
const PLAIN_NAMES: ReadonlySet<string> = new Set(["Error", "HoldfastError", "TaskFailedError"]);

function wordsOf({ name, message }: PlainError): string {
  return PLAIN_NAMES.has(name) || name === "" ? message : `${name}: ${message}`;
}
