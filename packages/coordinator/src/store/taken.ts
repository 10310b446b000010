// `taken` takes the value out of a stream's result, so that only the taker refers to it.
//
// A waiting generator or async function keeps its variables, the iterators of its loops, and their promises.
// In nested streams, all of these refer to the same answer for as long as the reader takes. Taking the value
// out of the result frees it.

/** @param result a result of `next()`, of which only `done` may be used afterwards. */
export function taken<T>(result: IteratorYieldResult<T>): T {
  const { value } = result;
  // mutant: taken-value-kept
  (result as { value: T | undefined }).value = undefined;
  return value;
}
