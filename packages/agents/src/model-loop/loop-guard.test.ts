import { describe, expect, test } from "vitest";

import { FRESH_GUARD, GUARD_LIMITS, noteCall, type FinishedCall, type GuardState } from "./loop-guard.ts";

const READ: FinishedCall = {
  name: "read_file",
  input: { path: "a" },
  text: "x",
  isValid: true,
  isChange: false,
};
const EDIT: FinishedCall = {
  name: "edit_file",
  input: { path: "a" },
  text: "changed",
  isValid: true,
  isChange: true,
};
const INVALID: FinishedCall = { name: "", input: {}, text: "no tool", isValid: false, isChange: false };

/** The number of the call at which it stops, and why. */
function play(calls: readonly FinishedCall[]): { readonly at: number; readonly stop: string } | undefined {
  let guard: GuardState = FRESH_GUARD;
  for (const [index, call] of calls.entries()) {
    const verdict = noteCall(guard, call);
    guard = verdict.guard;
    if (verdict.stop !== undefined) return { at: index + 1, stop: verdict.stop };
  }
  return undefined;
}

const times = <T>(count: number, ...items: T[]): T[] => Array.from({ length: count }, () => items).flat();

describe("a model that goes round in circles is stopped", () => {
  test("calls without a name, in a row", () => {
    expect(play(times(231, INVALID))).toEqual({
      at: GUARD_LIMITS.invalid,
      stop: expect.stringContaining("in a row"),
    });
    expect(
      play(times(20, ...times(GUARD_LIMITS.invalid - 1, INVALID), { ...READ, text: "differs" }))?.stop,
    ).not.toContain("in a row");
  });

  test("the guard detects the same call with the same result", () => {
    expect(play(times(9, READ))).toEqual({
      at: GUARD_LIMITS.repeated,
      stop: "read_file was called 5 times with the same result",
    });
  });

  test("two calls in turn", () => {
    expect(play(times(9, READ, { ...READ, input: { path: "b" } }))?.at).toBe(9);
  });

  test("the guard detects the same repeated change, with reads in between", () => {
    expect(play(times(9, EDIT, READ))).toEqual({
      at: 9,
      stop: "edit_file was called 5 times with the same result",
    });
  });
});

test("an agent with another result or a change in between makes progress, and is not stopped", () => {
  expect(play(Array.from({ length: 50 }, (_, i) => ({ ...READ, text: String(i) })))).toBeUndefined();
  expect(
    play(Array.from({ length: 50 }, (_, i) => [READ, READ, { ...EDIT, input: i }]).flat()),
  ).toBeUndefined();
});

test("it is warned first", () => {
  const verdicts = [READ, READ, READ].reduce<{ guard: GuardState; warnings: (string | undefined)[] }>(
    (before, call) => {
      const { guard, warning } = noteCall(before.guard, call);
      return { guard, warnings: [...before.warnings, warning] };
    },
    { guard: FRESH_GUARD, warnings: [] },
  );
  expect(verdicts.warnings).toEqual([undefined, undefined, expect.stringContaining("call 3")]);
});

test("the state of the guard stays small", () => {
  let guard = FRESH_GUARD;
  for (let i = 0; i < 500; i++) guard = noteCall(guard, { ...READ, text: String(i) }).guard;
  expect(guard.seen.length).toBe(GUARD_LIMITS.seen);
});

test("a call takes few characters of the state, with its count and whether it was a change", () => {
  const last = [READ, READ, EDIT, EDIT, { ...READ, text: "y" }].reduce<GuardState>(
    (guard, call) => noteCall(guard, call).guard,
    FRESH_GUARD,
  );
  expect(last.seen).toEqual([expect.stringMatching(/^.{8}!2$/), expect.stringMatching(/^.{8}$/)]);
});

test("questions to a person are counted for one request, whatever lies between them", () => {
  const questions = Array.from({ length: 12 }, (_, at): FinishedCall[] => [
    { ...READ, name: "ask_user", input: { question: String(at) }, asksPerson: true },
    { ...EDIT, text: String(at) },
  ]).flat();
  expect(play(questions)).toEqual({ at: 19, stop: "it has asked for help 10 times for this request" });
});
