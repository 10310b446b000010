// `Environments`: named sets of variables, and `mergeEnvironments`, which makes one set of those that a session
// has. A machine and a coordinator merge by it alike.
//
//   - The base environment, then the named ones in their order, then the values of the call: the last value
//     of a key counts. They are always merged, also when only one of them is there.
//   - A key that is required stays required.
//   - Environments of one name in several places are one environment (`keysOver`), before all are merged.

import { UsageError } from "../errors/errors.ts";

/** A key of an environment. Without a value it is required, or a secret of this name, or both. */
export interface EnvironmentKey {
  readonly value?: string | undefined;
  readonly secret?: boolean | undefined;
  /** A session without a value for it is refused. */
  readonly required?: boolean | undefined;
  /** The environment of the session's coordinator that has the value of the secret. */
  readonly storedIn?: string | undefined;
}

/** Keys by name. */
export type EnvironmentKeys = Readonly<Record<string, EnvironmentKey>>;
/** Environments by name. */
export type Environments = Readonly<Record<string, EnvironmentKeys>>;

/** The environment that every session begins with, if there is one of this name. */
export const BASE_ENVIRONMENT = "base";

/** `environments` is the number in one place, `keys` the number in one environment. */
export const ENVIRONMENT_LIMITS = { environments: 200, keys: 500, valueBytes: 32 * 1024 } as const;

/** Keys by name, in the order in which they came. */
export type MergedKeys = ReadonlyMap<string, EnvironmentKey>;

interface MergedEnvironments {
  readonly merged: MergedKeys;
  /** The environments that were merged. */
  readonly names: readonly string[];
  /** The names of which there is no environment. */
  readonly unknown: readonly string[];
}

/** @param named the environments after the base environment. @param first the keys before all of them. */
export function mergeEnvironments(
  environments: Environments,
  named: readonly string[],
  first: EnvironmentKeys = {},
): MergedEnvironments {
  const isThere = (name: string): boolean => Object.hasOwn(environments, name);
  const names = [...(isThere(BASE_ENVIRONMENT) ? [BASE_ENVIRONMENT] : []), ...named];
  const keys = names.filter(isThere).reduce((before, name) => keysOver(before, environments[name]!), first);
  return {
    merged: new Map(Object.entries(keys)),
    names,
    unknown: names.filter((name) => !isThere(name)),
  };
}

/** The keys of one environment after those of another one. */
export function keysOver(before: EnvironmentKeys, next: EnvironmentKeys): EnvironmentKeys {
  const keys = new Map(Object.entries(before));
  for (const [name, key] of Object.entries(next)) keys.set(name, keyOver(keys.get(name), key));
  return Object.fromEntries(keys);
}

/** A key that says only that it is required leaves the value before as it is. */
export function keyOver(before: EnvironmentKey = {}, next: EnvironmentKey): EnvironmentKey {
  const required = before.required === true || next.required === true;
  if (next.secret === true || next.value !== undefined) return { ...next, required };
  return { ...before, required };
}

export function hasValue({ value, secret }: EnvironmentKey): boolean {
  return value !== undefined || secret === true;
}

/** The required keys, and those of `variables`, that have no value. */
export function keysWithoutValue(merged: MergedKeys, variables: readonly string[]): readonly string[] {
  const required = [...merged].flatMap(([key, one]) =>
    one.required === true && !hasValue(one) ? [key] : [],
  );
  const declared = variables.filter((key) => !hasValue(merged.get(key) ?? {}));
  return [...new Set([...required, ...declared])];
}

/** @throws UsageError */
export function checkEnvironmentName(name: string): void {
  if (/^[a-z0-9][a-z0-9_-]{0,62}$/.test(name)) return;
  throw new UsageError(`${JSON.stringify(name.slice(0, 80))} cannot be the name of an environment`, {
    expected: "up to 63 small letters, digits, - and _, such as staging",
  });
}

/** The name of a variable of a process. */
export function isVariableName(name: unknown): name is string {
  return typeof name === "string" && /^[A-Za-z_]\w{0,99}$/.test(name);
}

/** @throws UsageError. The text is not shown, as it may be a value in the place of a key. */
export function checkKey(name: string): void {
  if (isVariableName(name) && !name.startsWith("HOLDFAST_") && name !== "__proto__") return;
  throw new UsageError("the key of an environment is wrong", {
    expected:
      "a name as environment variables have: letters, digits and _, and not HOLDFAST_ at its beginning",
  });
}

/** @throws UsageError. The value is not shown. */
export function checkValue(name: string, value: string): void {
  const bytes = utf8Length(value);
  if (bytes <= ENVIRONMENT_LIMITS.valueBytes && !value.includes("\0")) return;
  throw new UsageError(`the value of ${name} cannot be used`, {
    expected: `up to ${ENVIRONMENT_LIMITS.valueBytes} bytes without a NUL character`,
  });
}

/** @throws UsageError for a name, a key, a value or a number of keys that cannot be. */
export function checkEnvironment(name: string, keys: EnvironmentKeys): void {
  checkEnvironmentName(name);
  for (const [key, { value = "" }] of Object.entries(keys)) {
    checkKey(key);
    checkValue(key, value);
  }
  if (Object.keys(keys).length > ENVIRONMENT_LIMITS.keys)
    throw new UsageError(`the environment ${name} has more than ${ENVIRONMENT_LIMITS.keys} keys`, {
      fix: "divide it into several environments",
    });
}

/** A lone surrogate has the three bytes of the replacement character, which encoders write for it. */
function utf8Length(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    bytes += point < 0x80 ? 1 : point < 0x8_00 ? 2 : point < 0x1_00_00 ? 3 : 4;
  }
  return bytes;
}
