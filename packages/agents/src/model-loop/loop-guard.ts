// When a model goes round in circles. Pure: a state and what happened, the next state and whether to stop.
//
//   invalid   calls of tools that are not there (also those without a name), or with arguments that are not right
//   repeated  the same call with the same result, with no change in between
//   asked     questions to a person for one request
//
// The state is stored with each turn, so a call is a few characters of it.

import { createHash } from "node:crypto";
import { defined } from "@holdfast/core";

export interface GuardState {
  /** Invalid calls since the last valid one. */
  readonly invalid: number;
  /** Questions to a person. */
  readonly asked: number;
  /** Calls with their results: the beginning of the hash, `!` for a change, and how often it came, above 1. */
  readonly seen: readonly string[];
}

interface SeenCall {
  readonly key: string;
  readonly count: number;
  readonly isChange: boolean;
}

export interface FinishedCall {
  readonly name: string;
  readonly input: unknown;
  readonly text: string;
  /** It was a call that could be carried out, however it ended. */
  readonly isValid: boolean;
  /** It changed files. */
  readonly isChange: boolean;
  /** It waited for the answer of a person. */
  readonly asksPerson?: boolean;
}

export const GUARD_LIMITS = { invalid: 6, warnAt: 3, repeated: 5, seen: 50, asked: 10 } as const;

/** The beginning of a hash in base64, which has 48 bits. */
const KEY_CHARS = 8;

export const FRESH_GUARD: GuardState = { invalid: 0, asked: 0, seen: [] };

export interface Verdict {
  readonly guard: GuardState;
  /** To be added to the call's result. */
  readonly warning?: string;
  /** Why to stop. */
  readonly stop?: string;
}

export function noteCall(guard: GuardState, call: FinishedCall): Verdict {
  if (!call.isValid) {
    const invalid = guard.invalid + 1;
    const stop =
      invalid >= GUARD_LIMITS.invalid
        ? `${invalid} calls in a row were of no tool, or with wrong arguments`
        : undefined;
    return { guard: { ...guard, invalid }, ...defined({ stop }) };
  }
  const key = createHash("sha256")
    .update(JSON.stringify([call.name, call.input, call.text]))
    .digest("base64")
    .slice(0, KEY_CHARS);
  const known = guard.seen.map(readSeen);
  const before = known.find((seen) => seen.key === key);
  const count = (before?.count ?? 0) + 1;
  // After a change the same question may have another answer. The same change again and again is a circle
  // itself.
  const others = known.filter((seen) => seen.key !== key && (!call.isChange || seen.isChange));
  const seen = [...others, { key, count, isChange: call.isChange }].slice(-GUARD_LIMITS.seen).map(storedSeen);
  const asked = guard.asked + (call.asksPerson === true ? 1 : 0);
  const next = { invalid: 0, seen, asked };
  if (call.asksPerson === true && asked >= GUARD_LIMITS.asked)
    return { guard: next, stop: `it has asked for help ${asked} times for this request` };
  if (count >= GUARD_LIMITS.repeated)
    return { guard: next, stop: `${call.name} was called ${count} times with the same result` };
  if (count < GUARD_LIMITS.warnAt) return { guard: next };
  return {
    guard: next,
    warning: `(This is call ${count} of ${call.name} with the same arguments and the same result. Do something else.)`,
  };
}

function storedSeen({ key, count, isChange }: SeenCall): string {
  return `${key}${isChange ? "!" : ""}${count === 1 ? "" : count}`;
}

function readSeen(stored: string): SeenCall {
  const [key, rest] = [stored.slice(0, KEY_CHARS), stored.slice(KEY_CHARS)];
  const isChange = rest.startsWith("!");
  return { key, isChange, count: Number(rest.slice(isChange ? 1 : 0) || 1) };
}
