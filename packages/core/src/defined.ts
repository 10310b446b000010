// `defined`: an object without the fields that have no value.
//
//   - Sources that work at every step of every session spread a condition instead, which costs no further
//     object: `...(x === undefined ? {} : { x })`.

/** The fields that have a value, and those that may have one. */
type Defined<T> = { [Name in keyof T as undefined extends T[Name] ? never : Name]: T[Name] } & {
  [Name in keyof T as undefined extends T[Name] ? Name : never]?: Exclude<T[Name], undefined>;
};

/** An object without its fields that are `undefined`: a field that may be left out is there only with a value. */
export function defined<T extends object>(fields: T): Defined<T> {
  const there: Record<string, unknown> = {};
  for (const name in fields) if (fields[name] !== undefined) there[name] = fields[name];
  return there as Defined<T>;
}
