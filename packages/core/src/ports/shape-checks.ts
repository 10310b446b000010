// The parts of which checks of received values are made: simple values, lists and shapes of objects.

export type Check = (value: unknown) => boolean;
type Shape = Readonly<Record<string, Check>>;

export const isText: Check = (value) => typeof value === "string";
/** The id of a created session: an id that a user may choose, or a position below another id. */
export const isNewId: Check = (value) =>
  typeof value === "string" && /^[A-Za-z0-9][A-Za-z0-9._-]{0,255}$/.test(value);
export const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
export const isToken: Check = (value) => Number.isSafeInteger(value);
/** A number that the contract has as an integer of 32 bits. */
export const isSmall: Check = (value) => isCount(value) && (value as number) < 2 ** 31;
/** Integers above this are not exact, and a database does not return them. */
export const isTime: Check = (value) =>
  typeof value === "number" && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
/** Text that answers include unchanged. Text that is no JSON would break the whole answer. */
export const isJson: Check = (value) => {
  if (typeof value !== "string") return false;
  try {
    JSON.parse(value);
    return true;
  } catch {
    return false;
  }
};
export const isOneOf =
  (...values: readonly string[]): Check =>
  (value) =>
    typeof value === "string" && values.includes(value);
export const isTrue: Check = (value) => value === true;
export const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
export const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
/** storage-wire-2: `null` is a lease without end. */
export const isLease: Check = (value) => value === null || isTime(value);

/** A JSON object, and no other kind of value. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function hasShape(shape: Shape): Check {
  const fields = Object.entries(shape);
  return (value) => isObject(value) && fields.every(([field, check]) => check(value[field]));
}

/** A check for several shapes, chosen by `type`. */
export function isOfType(checks: Shape): Check {
  return isOfTypeBy("type", checks);
}

export function isOfTypeBy(field: string, checks: Shape): Check {
  return (value) => {
    const type = isObject(value) ? value[field] : undefined;
    return typeof type === "string" && Object.hasOwn(checks, type) && checks[type]!(value);
  };
}
