// What typed state may be, and what a checkpoint stores of it.

import { expect, test } from "vitest";
import { LimitError } from "../errors/errors.ts";
import { encodeWithin } from "./checks.ts";
import { migrateState, SessionState } from "./session-state.ts";

const encode = (value: unknown, what: string) => encodeWithin(value, what, 1_000);

test("session-state-2: changes that are larger than any payload may be are stored as the whole they make", () => {
  let state = new SessionState({ version: 1, initial: () => ({ text: "" }) }, undefined);
  state.begin(undefined);
  state.update({ text: "x".repeat(400) }, encode);
  state.seal(undefined, encode);
  state = state.after(3);
  for (let i = 0; i < 5; i++) state.update({ text: `${i}${"x".repeat(400)}` }, encode);
  expect(state.seal(undefined, encode)).toEqual({ payload: JSON.stringify(state.current), version: 1 });
  state.update({ more: "x".repeat(900) }, encode);
  expect(() => state.seal(undefined, encode)).toThrow(LimitError);
});

test("json-2: what JSON would change without a word is no state, neither to begin with nor migrated", () => {
  for (const wrong of [new Date(0), Number.NaN, new Map([[1, 2]])]) {
    const definition = { version: 2, initial: () => ({ wrong }), migrate: () => ({ wrong }) };
    const refused = "cannot be recorded";
    expect(() => new SessionState(definition, undefined).begin(undefined)).toThrow(refused);
    expect(() => migrateState(definition, { value: {}, version: 1 }, "a")).toThrow(refused);
  }
});
