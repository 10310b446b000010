// `retryAfterMs`: the wait that a server asks for in the headers of its refusal. Pure.

/** `retry-after-ms`, or `retry-after` in seconds or as a date. */
export function retryAfterMs(
  headers: Readonly<Record<string, string>> | undefined,
  now: number,
): number | undefined {
  const exact = Number(headers?.["retry-after-ms"] ?? Number.NaN);
  if (exact >= 0) return exact;
  const after = headers?.["retry-after"];
  if (after === undefined || after.trim() === "") return undefined;
  const seconds = Number(after);
  if (seconds >= 0) return seconds * 1_000;
  const date = Date.parse(after);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
