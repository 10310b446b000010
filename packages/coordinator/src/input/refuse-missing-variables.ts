// `refuseMissingVariables` refuses a start without a value for a variable that the agent needs, or without an
// environment that it names, before the session exists.
//
//   - It is refused when each registered runner that would take the session announces variables without a value.
//   - A runner announces the environments that its agent gets from the coordinator. They are merged here, as the
//     runner merges them, and their variables have values.
//   - Without such environments, one that the start names may have all variables. The runner that reads it
//     decides then.

import {
  BASE_ENVIRONMENT,
  defined,
  type Environments,
  hasValue,
  mergeEnvironments,
  missingVariablesText,
  variablesMissingIn,
  type GivenEnvironment,
} from "@holdfast/core";
import { declaredBy, type Catalogue, type Declared } from "../catalogue/catalogue.ts";
import { ERRORS_MAX, Refusal } from "../call/refusal.ts";
import type { StoredEnvironments } from "../environments/stored-environments.ts";
import type { OfferedAgent, Registry } from "../store/registry.ts";
import { offersOf, type StartOf } from "./offers-of-start.ts";

export interface VariablesHost {
  readonly registry: Registry;
  readonly catalogue: Catalogue;
  readonly environments: StoredEnvironments;
}

interface CheckedStart extends StartOf {
  readonly environment?: GivenEnvironment | undefined;
  /** The project of the session. */
  readonly project: string | undefined;
}

/** The lacks of a start at one runner. */
interface Lacks {
  readonly environments: readonly string[];
  readonly variables: readonly string[];
}

/**
 * @param at the JSON pointer of the environment in its request.
 * @throws Refusal `invalid_input`, HoldfastError `secret_key`
 */
export async function refuseMissingVariables(
  host: VariablesHost,
  start: CheckedStart,
  at: string,
): Promise<void> {
  const lacks: Lacks[] = [];
  for (const offer of await offersOf(host.registry, start)) lacks.push(await lacksOf(host, offer, start));
  const [first] = lacks;
  if (first === undefined || lacks.some((one) => one.environments.length + one.variables.length === 0))
    return;
  const [environment] = first.environments;
  throw environment === undefined
    ? missingVariables(start.agent.name, first.variables, at)
    : missingEnvironment(start, environment, at);
}

async function lacksOf(host: VariablesHost, offer: OfferedAgent, start: CheckedStart): Promise<Lacks> {
  const { requiredVariables = [], environments: wanted } = offer;
  const { agent, environment: given = {} } = start;
  if (wanted === undefined)
    return { environments: [], variables: variablesMissingIn(given, requiredVariables) };
  const declared = declaredBy(await host.catalogue.agent(agent.name), agent.version);
  if (declared === undefined) return { environments: wanted, variables: requiredVariables };
  const stored = await storedFor(host, declared, start);
  return lacksWith(stored, declared, { wanted, requiredVariables }, given);
}

function storedFor(
  { environments }: VariablesHost,
  { environments: named }: Declared,
  { placement, project, environment: { references = [] } = {} }: CheckedStart,
): Promise<Environments> {
  return environments.ofSession({ person: placement?.owner, project, named, references });
}

/** @param wanted the environments of the agent that its machine does not have. */
function lacksWith(
  stored: Environments,
  { environments: named, variables }: Declared,
  {
    wanted,
    requiredVariables,
  }: { readonly wanted: readonly string[]; readonly requiredVariables: readonly string[] },
  { references = [], values = {} }: GivenEnvironment,
): Lacks {
  const others = references.filter((name) => !named.includes(name) && name !== BASE_ENVIRONMENT);
  // mutant: missing-environment-started
  const environments = [...wanted, ...others].filter((name) => !Object.hasOwn(stored, name));
  const present = [...named, ...references].filter((name) => Object.hasOwn(stored, name));
  const { merged } = mergeEnvironments(stored, present);
  const lacks = (key: string): boolean => !Object.hasOwn(values, key) && !hasValue(merged.get(key) ?? {});
  // The machine has a value of each variable that it does not announce.
  const required = [...merged].flatMap(([key, one]) =>
    one.required === true && (!variables.includes(key) || requiredVariables.includes(key)) ? [key] : [],
  );
  return { environments, variables: [...new Set([...requiredVariables, ...required])].filter(lacks) };
}

function missingVariables(agent: string, missing: readonly string[], at: string): Refusal {
  const [variable = ""] = missing;
  return new Refusal("invalid_input", missingVariablesText(agent, missing), {
    at,
    expected: "a value of this start, or of an environment that its runner has",
    fix: `give it: --env ${variable}=VALUE, or \`${at}/values/${variable}\` of the request; or set it on the runner's machine: \`holdfast env set base ${variable}=VALUE\``,
    errors: missing
      .slice(0, ERRORS_MAX)
      .map((name) => ({ pointer: `${at}/values/${name}`, code: "missing", message: "has no value" })),
  });
}

function missingEnvironment({ agent, placement, project }: CheckedStart, name: string, at: string): Refusal {
  const owners = Object.entries(defined({ person: placement?.owner, project }));
  const whose = owners.map(([kind, owner]) => `the ${kind} ${owner}`).join(" or ");
  return new Refusal(
    "invalid_input",
    `the start of agent "${agent.name}" needs the environment "${name}", which is not at the coordinator`,
    {
      at,
      expected: whose === "" ? "a session of a person or of a project" : `an environment of ${whose}`,
      fix: `set it: \`holdfast env set ${name} KEY=VALUE --url URL\`, or start with the project that has it (the demand \`project\`)`,
      errors: [
        { pointer: at, code: "missing", message: `names the environment ${name}, which is not there` },
      ],
    },
  );
}
