// `effect` and the parts of scenarios for `crashEverywhere`: a small outside world, and a task that acts upon
// it.

import { defineTask } from "@holdfast/runtime";
import type { CrashScenario } from "./crash-everywhere.ts";

/** The effects of tasks, by idempotency key, so that a repeated effect counts once. */
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
 * A task with an idempotent effect, as effects on the outside world must be. The effect is identified by its
 * key. Where branches race, a crash may change which of them asks first, so there it is identified by its
 * value.
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
