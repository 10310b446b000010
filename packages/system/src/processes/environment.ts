// The environment of commands: an allow-list, so that commands receive no key by accident
// (`scrubEnvironment`). And values above an environment (`layeredEnvironment`).

import { HoldfastError } from "@holdfast/core";

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The variables that commands need to work at all. All others are declared by name and value when the
 * workspace is opened.
 */
export const INHERITED_VARIABLES = ["PATH", "HOME", "LANG", "TERM", "TMPDIR"] as const;

/** Later parts win. A declared variable that is `undefined` is left out. */
export function scrubEnvironment(
  inherited: Environment,
  ...declared: readonly Environment[]
): Record<string, string> {
  const result: Record<string, string> = {};
  for (const name of INHERITED_VARIABLES) {
    const value = inherited[name];
    if (value !== undefined) result[name] = value;
  }
  for (const [name, value] of declared.flatMap((part) => Object.entries(part))) {
    checkVariable(name, value);
    if (value !== undefined) result[name] = value;
  }
  return result;
}

function checkVariable(name: string, value: string | undefined): void {
  const isUsable = name !== "" && !/[=\0]/.test(name) && value?.includes("\0") !== true;
  if (isUsable) return;
  // The value is not shown: it may be a secret.
  throw new HoldfastError(
    "invalid_input",
    `the environment variable "${name.replaceAll("\0", "\\0")}" cannot be set`,
    {
      expected: "a name without = and NUL, and a value without NUL",
    },
  );
}

/** An environment with values above it. Values that are added later are seen in it, too. */
export function layeredEnvironment(below: Environment, over: ReadonlyMap<string, string>): Environment {
  const valueOf = (name: string | symbol): string | undefined =>
    typeof name === "string" ? (over.get(name) ?? below[name]) : undefined;
  const refuse = (): boolean => false;
  return new Proxy<Environment>(
    {},
    {
      get: (_, name) => valueOf(name),
      has: (_, name) => valueOf(name) !== undefined,
      ownKeys: () => [...new Set([...Reflect.ownKeys(below), ...over.keys()])],
      getOwnPropertyDescriptor(_, name) {
        const value = valueOf(name);
        if (value === undefined) return undefined;
        return { value, enumerable: true, configurable: true, writable: true };
      },
      set: refuse,
      defineProperty: refuse,
      deleteProperty: refuse,
    },
  );
}
