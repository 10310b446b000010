// `refuseWrongInput` checks the input of a session before the session exists.
//
// An input is refused when each registered runner that would take the session announces a schema that refuses
// it. A missing input is refused where the agent cannot start without one.

import type { JsonText } from "@holdfast/core";
import { Refusal, ERRORS_MAX, type FieldError } from "../call/refusal.ts";
import type { OfferedAgent, Registry } from "../store/registry.ts";
import { findInputErrors } from "./input-schema.ts";
import { offersOf, type StartOf } from "./offers-of-start.ts";

interface CheckedStart extends StartOf {
  readonly input?: JsonText | undefined;
}

/** A longer schema is not shown: the places say what is wrong. */
const SCHEMA_CHARS_MAX = 2_000;
const PLACES_MAX = 5;

/**
 * @param at the JSON pointer of the input in its request.
 * @throws Refusal `invalid_input`
 */
export async function refuseWrongInput(registry: Registry, start: CheckedStart, at: string): Promise<void> {
  const problem = await problemOf(registry, start, at);
  if (problem === undefined) return;
  const { errors, schema } = problem;
  const places = errors.slice(0, PLACES_MAX).map(({ pointer, message }) => `${pointer}: ${message}`);
  const more = errors.length > PLACES_MAX ? ` (and ${errors.length - PLACES_MAX} more)` : "";
  throw new Refusal(
    "invalid_input",
    `input of agent "${start.agent.name}" does not match its schema: ${places.join("; ")}${more}`,
    {
      at,
      ...(schema.length > SCHEMA_CHARS_MAX ? {} : { expected: `a value of ${schema}` }),
      fix: "send an input of the shape that the schema describes; no session was started",
      errors: errors.slice(0, ERRORS_MAX),
    },
  );
}

interface InputProblem {
  readonly errors: readonly FieldError[];
  readonly schema: JsonText;
}

async function problemOf(
  registry: Registry,
  { input, ...start }: CheckedStart,
  at: string,
): Promise<InputProblem | undefined> {
  const problems = (await offersOf(registry, start)).map((offered) => problemBy(offered, input, at));
  return problems.includes(undefined) ? undefined : problems[0];
}

function problemBy(
  { inputSchema, isInputOptional }: OfferedAgent,
  input: JsonText | undefined,
  at: string,
): InputProblem | undefined {
  if (inputSchema === undefined || (input === undefined && isInputOptional === true)) return undefined;
  const errors = findInputErrors(inputSchema, input, at);
  return errors.length === 0 ? undefined : { errors, schema: inputSchema };
}
