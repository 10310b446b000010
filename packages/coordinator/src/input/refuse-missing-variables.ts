// `refuseMissingVariables` refuses a start without a value for a variable that the agent needs, before the
// session exists.
//
// It is refused when each registered runner that would take the session announces variables without a value.
// An environment that the start names may have them. The runner that reads it decides then.

import { missingVariablesText, variablesMissingIn, type GivenEnvironment } from "@holdfast/core";
import { ERRORS_MAX, Refusal } from "../call/refusal.ts";
import type { Registry } from "../store/registry.ts";
import { offersOf, type StartOf } from "./offers-of-start.ts";

/**
 * @param at the JSON pointer of the environment in its request.
 * @throws Refusal `invalid_input`
 */
export async function refuseMissingVariables(
  registry: Registry,
  start: StartOf & { readonly environment?: GivenEnvironment | undefined },
  at: string,
): Promise<void> {
  const { agent, environment } = start;
  const missing = (await offersOf(registry, start)).map(({ requiredVariables = [] }) =>
    variablesMissingIn(environment, requiredVariables),
  );
  const [first] = missing;
  if (first === undefined || missing.some((names) => names.length === 0)) return;
  const [variable = ""] = first;
  throw new Refusal("invalid_input", missingVariablesText(agent.name, first), {
    at,
    expected: "a value of this start, or of an environment that its runner has",
    fix: `give it: --env ${variable}=VALUE, or \`${at}/values/${variable}\` of the request; or set it on the runner's machine: \`holdfast env set base ${variable}=VALUE\``,
    errors: first
      .slice(0, ERRORS_MAX)
      .map((name) => ({ pointer: `${at}/values/${name}`, code: "missing", message: "has no value" })),
  });
}
