// `keyReachText`: whether the shell of an external agent can read the keys of its program, as a text. It
// loads no agent, because `show` uses it.

import type { KeyReach } from "@holdfast/programs";

export function keyReachText({ held, readable }: KeyReach): string {
  if (readable.length > 0) return `its shell can read ${readable.join(", ")}`;
  return held.length > 0
    ? `its shell cannot read ${held.join(", ")}`
    : "its shell can read the program's own sign-in, if it has one";
}

/** Whether a part of a task's output is a `KeyReach`. */
export function isKeyReach(value: unknown): value is KeyReach {
  const { held, readable } = (value ?? {}) as Partial<Record<keyof KeyReach, unknown>>;
  return [held, readable].every(
    (names) => Array.isArray(names) && names.every((name) => typeof name === "string"),
  );
}
