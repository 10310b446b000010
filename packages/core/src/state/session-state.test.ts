// Typed state: the values that it may have, and the part that a checkpoint stores.

import { expect, test } from "vitest";
import { LimitError } from "../errors/errors.ts";
import { encodeWithin } from "../json/json.ts";
import { migrateState, SessionState } from "./session-state.ts";

const encode = (value: unknown, what: string) => encodeWithin(value, what, 1_000);

test("session-state-2: changes that are larger than the largest payload are stored as the whole state", () => {
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

test("json-2: a value that JSON would silently change is refused as initial and as migrated state", () => {
  for (const wrong of [new Date(0), Number.NaN, new Map([[1, 2]])]) {
    const definition = { version: 2, initial: () => ({ wrong }), migrate: () => ({ wrong }) };
    const refused = "cannot be recorded";
    expect(() => new SessionState(definition, undefined).begin(undefined)).toThrow(refused);
    expect(() => migrateState(definition, { value: {}, version: 1 }, "a")).toThrow(refused);
  }
});
