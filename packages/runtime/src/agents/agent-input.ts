// `inputOf`, `inputNow`: an input after the schema of its agent, with defaults and conversions, as it is
// recorded and as the agent sees it.

import { validate, validateNow } from "@holdfast/core";
import type { Agent } from "./define.ts";

type Schema = Pick<Agent, "name" | "input">;

/** For a start. @throws HoldfastError `invalid_input` */
export function inputOf({ name, input }: Schema, given: unknown): Promise<unknown> {
  return validate(input, given, whatOf(name), "invalid_input");
}

/**
 * For a child, which is asked for without waiting. @throws HoldfastError `invalid_input`; UsageError when the
 * schema answers later.
 */
export function inputNow({ name, input }: Schema, given: unknown): unknown {
  return input === undefined ? given : validateNow(input, given, whatOf(name), "invalid_input");
}

function whatOf(name: string): string {
  return `input of agent "${name}"`;
}
