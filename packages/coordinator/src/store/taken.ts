// The next answer of a stream, which is then the taker's alone.
//
// A generator or an async function that waits keeps what its variables hold, what it goes over by `yield*` or `for await`, and the
// promises of both: of streams inside each other the one answer, for as long as the reader takes. So it is taken out of the result.

/** @param result of `next()`, of which only `done` is of use then. */
export function taken<T>(result: IteratorYieldResult<T>): T {
  const { value } = result;
  (result as { value: T | undefined }).value = undefined;
  return value;
}
