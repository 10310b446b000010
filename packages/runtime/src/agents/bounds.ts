// `Bounds`: the limits of a session whatever its agent does. A bound is a time to live, or a budget of its
// tree. A budget per hour, day or month is a bound as well: it ends no session, and limits what each costs in
// that time.
//
//   - A daemon is an agent in the turn form: each turn ends in a checkpoint, so no limit on growth stops it.
//     No start can know whether the loop of a free-form agent ends, and the limits of its journal stop it.
//   - A daemon without a bound is started with a warning, unless it says that it limits its turns. Where
//     bounds are strict it is refused before anything is stored. A schedule is refused like the session it
//     would start, and has no warning, as it has no session yet.

import { UsageError, type Budget, type Per } from "@holdfast/core";
import type { Agent } from "./define.ts";

interface Bounds {
  readonly budget?: Budget | undefined;
  readonly timeoutMs?: number | undefined;
}

const ENDING = ["maxCostMicroUsd", "maxTokens", "maxSteps", "maxTurns", "ttlMs"] as const;
const ROLLING: ReadonlySet<Per> = new Set<Per>(["hour", "day", "month"]);

/** The warning for a daemon that nothing ends. @throws UsageError where bounds are strict. */
export function checkBounds(
  { name, turns, limitsTurns }: Pick<Agent, "name" | "turns" | "limitsTurns">,
  { budget, timeoutMs = Infinity }: Bounds,
  isStrict: boolean,
): string | undefined {
  const isEnding = timeoutMs !== Infinity || ENDING.some((limit) => budget?.[limit] !== undefined);
  if (!turns || isEnding || budget?.windows?.some(({ per }) => ROLLING.has(per)) === true) return undefined;
  const message = `agent "${name}" may take turns for ever: its session has no limit of time or budget`;
  if (!isStrict && limitsTurns) return undefined;
  if (!isStrict) return `${message}; set one by --ttl or --budget, in a program by timeoutMs or budget`;
  throw new UsageError(message, {
    at: "strictBounds",
    expected: `a time, or a budget with one of ${ENDING.join(", ")} or a window per hour, day or month`,
    fix: "give --ttl or --budget, in a program timeoutMs or budget",
  });
}

/** The deadline of a session with this time to live. @throws UsageError for an invalid time. */
export function deadlineOf(now: number, ms: number): { readonly deadlineAt?: number } {
  if (ms === Infinity) return {};
  if (Number.isFinite(ms) && ms > 0) return { deadlineAt: Math.ceil(now + ms) };
  throw new UsageError(`a session cannot have ${ms} ms to live`, {
    expected: "a number of milliseconds above 0",
  });
}
