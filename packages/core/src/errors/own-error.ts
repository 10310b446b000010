// `OWN_ERROR`: the mark of our errors. A foreign error may have a `code` of the same text. Many have: gRPC,
// Firebase and Stripe use "unavailable" and "unauthenticated" for their own.

/** Registered, so that two copies of this package know each other's errors. */
export const OWN_ERROR: unique symbol = Symbol.for("@holdfast/core/error") as never;

/** Whether an error bears the mark. @throws what a hostile value throws when it is read. */
export function isOwnError(error: object): boolean {
  return (error as { readonly [OWN_ERROR]?: unknown })[OWN_ERROR] === true;
}
