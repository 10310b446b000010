// isObject: whether a parsed JSON value is an object, rather than an array, a scalar or null.

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
