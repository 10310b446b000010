// Rejections nobody handled, told apart by the session whose code made them: they must not end the process (K4a).

import type { AsyncLocalStorage } from "node:async_hooks";

/**
 * Take the unhandled rejections that belong to a session; leave all others to whoever else listens, or to Node's default.
 *
 * @param context holds the session's id in all code an agent's function starts.
 * @returns the function that stops it.
 */
export function watchStrayRejections(
  context: AsyncLocalStorage<string>,
  onStray: (sessionId: string, reason: unknown) => void,
): () => void {
  const listener = (reason: unknown, promise: Promise<unknown>): void => {
    // Node calls listeners in the asynchronous context of the promise that was rejected.
    const sessionId = context.getStore();
    if (sessionId !== undefined) {
      onStray(sessionId, reason);
      return;
    }
    // Our being here switched Node's default off. With nobody else to decide, do what it would have done.
    if (process.listenerCount("unhandledRejection") > 1) return;
    void promise;
    throw reason;
  };
  process.on("unhandledRejection", listener);
  return () => process.off("unhandledRejection", listener);
}
