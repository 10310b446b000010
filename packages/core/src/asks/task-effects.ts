// The effect class of a task that is asked for: `effectOf`, and the retry policy that follows from it.

import type { EffectClass, RetryPolicy } from "../journal/task-policy.ts";
import type { KernelParts } from "../replay/turn.ts";

/** The class to record. On replay the recorded class counts, whatever the task declares now (task-asks-2). */
export function effectOf(
  { cursor }: Pick<KernelParts, "cursor">,
  wanted: EffectClass | undefined,
): EffectClass | undefined {
  const { slice, next } = cursor;
  if (slice !== "replay") return wanted;
  return next?.type === "schedule_task" ? next.effect : undefined;
}

/** A task that happens `once` is not tried again after an error either, unless its author says so. */
export function defaultRetry(effect: EffectClass | undefined): RetryPolicy | undefined {
  return effect === "once" ? { maxAttempts: 1 } : undefined;
}
