// `watchStrayRejections`: attributes unhandled rejections to sessions, so that they do not end the process
// (K4a).

import type { AsyncLocalStorage } from "node:async_hooks";
import type { RunningCode } from "../tasks/task-session.ts";

/** Marks every listener of ours, also of another copy of this package. */
const OURS = Symbol.for("holdfast.stray-rejections");

interface Ours {
  /** Whether the current rejection belongs to a session of that runtime. */
  readonly [OURS]: () => boolean;
}

/**
 * Handle the unhandled rejections that belong to a session; leave all others to other listeners, or to Node's
 * default.
 *
 * @param context identifies the session in all code that an agent's function starts; useless once this is
 * stopped.
 * @returns the function that stops it.
 */
export function watchStrayRejections(
  context: AsyncLocalStorage<RunningCode>,
  onStray: (sessionId: string, reason: unknown) => void,
): () => void {
  const listener = (reason: unknown): void => {
    // Node calls listeners in the asynchronous context of the promise that was rejected.
    const sessionId = context.getStore()?.sessionId;
    if (sessionId !== undefined) {
      onStray(sessionId, reason);
      return;
    }
    // Our listeners have switched Node's default off. Without any other listener, do what the default would
    // do.
    if (process.listeners("unhandledRejection").some((each) => !(OURS in each) || (each as Ours)[OURS]()))
      return;
    throw reason;
  };
  Object.assign(listener, { [OURS]: () => context.getStore() !== undefined } satisfies Ours);
  // One listener for each open runtime is no leak.
  process.setMaxListeners(process.getMaxListeners() + 1);
  process.on("unhandledRejection", listener);
  return () => {
    process.setMaxListeners(process.getMaxListeners() - 1);
    process.off("unhandledRejection", listener);
    // The context is no longer needed. Node 22 passes its content on with every promise, even if it is not
    // used.
    context.disable();
  };
}
