// What scenarios for `crashEverywhere` are made with: a small outside world, and a task that acts upon it.

import { defineTask } from "@holdfast/runtime";
import type { CrashScenario } from "./crash-everywhere.ts";

/** What tasks did, by idempotency key, so that doing it twice is seen as one. */
export type Outside = Map<string, unknown>;

export function scenario(
  name: string,
  make: (outside: Outside) => Omit<CrashScenario, "name" | "effects" | "reset">,
): CrashScenario {
  const outside: Outside = new Map();
  return {
    ...make(outside),
    name,
    effects: () => [...outside].sort(([a], [b]) => (a < b ? -1 : 1)),
    reset: () => outside.clear(),
  };
}

/**
 * A task whose effect is idempotent, as effects on the outside world must be: by its key, or, where branches race and a
 * crash may change which of them asks first, by its value.
 */
export function effect(outside: Outside, by: "key" | "value" = "key") {
  return defineTask({
    name: "effect",
    run: (input: { value: unknown }, task) => {
      outside.set(by === "key" ? task.idempotencyKey : JSON.stringify(input.value), input.value);
      return input.value;
    },
  });
}
