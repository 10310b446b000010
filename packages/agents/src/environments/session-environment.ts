// `sessionEnvironment`, `serverEnvironment`: the variables of a session, merged from environments, and which
// of them its commands and its MCP servers get.
//
//   - The base environment, then the named ones in their order, then the values of the call: the last value
//     of a key counts. They are always merged, also when only one of them is there.
//   - A key that is required stays required. Without a value the session is refused, and the error names all
//     such keys.
//   - The result has only the keys that the agent declares, and of secrets their names alone. A value of a
//     secret is looked up when a process is started.
//   - Where several people start sessions (`source.environments`), a start names no other environments than the
//     agent does. Its servers get a value of the start only for a variable that the agent declares.
//   - A server gets the keys that its settings name by placeholders. It needs no declaration in `variables`,
//     which are those of commands, and no command gets a key for a server's sake.

import {
  didYouMean,
  HoldfastError,
  missingVariablesText,
  UsageError,
  type GivenEnvironment,
} from "@holdfast/core";

import type { AgentRecord } from "../record/agent-record.ts";
import {
  BASE_ENVIRONMENT,
  checkKey,
  checkValue,
  type EnvironmentKey,
  type Environments,
} from "./environment-file.ts";

/** The variables that a session's commands get. It is recorded with the session. */
// oxlint-disable-next-line typescript/consistent-type-definitions -- an interface is no JSON value.
export type SessionEnvironment = {
  readonly values: Readonly<Record<string, string>>;
  /** Names of secrets. Each is a variable of the same name. */
  readonly secrets: readonly string[];
};

/** The part of an agent that says where its variables come from. */
export type EnvironmentOf = Pick<AgentRecord, "name" | "environments" | "secrets"> & {
  readonly variables?: readonly string[];
  readonly source: Pick<AgentRecord["source"], "path" | "environments">;
};

const NO_ENVIRONMENT: GivenEnvironment = {};

/**
 * The variables of an agent's session.
 *
 * @throws HoldfastError `agent_invalid` for an environment that is not there and for keys without a value.
 *   UsageError for a value
 *     of the call that is a secret.
 */
export function sessionEnvironment(
  record: AgentRecord,
  environments: Environments,
  given: GivenEnvironment = NO_ENVIRONMENT,
): SessionEnvironment {
  const { name: agent, variables, source } = record;
  const { merged, names } = mergeEnvironments(record, environments, given);
  const missing = keysWithoutValue(merged, variables);
  if (missing.length > 0) throw missingKeys(missing, agent, source.path, names);
  return chosenKeys(merged, variables);
}

/**
 * The variables that each start of the agent has to give: the environments of this machine have no value for
 * them. `secrets` are the secrets among its other variables.
 *
 * @throws HoldfastError `agent_invalid` for an environment that is not there.
 */
export function offeredEnvironment(
  record: AgentRecord,
  environments: Environments,
): { readonly missing: readonly string[]; readonly secrets: readonly string[] } {
  const { merged } = mergeEnvironments(record, environments, NO_ENVIRONMENT);
  return {
    missing: keysWithoutValue(merged, record.variables),
    secrets: chosenKeys(merged, record.variables).secrets,
  };
}

function keysWithoutValue(merged: Merged["merged"], variables: readonly string[]): readonly string[] {
  const required = [...merged].flatMap(([key, one]) =>
    one.required === true && !hasValue(one) ? [key] : [],
  );
  const declared = variables.filter((key) => !hasValue(merged.get(key) ?? {}));
  return [...new Set([...required, ...declared])];
}

/**
 * The variables that the settings of an MCP server name. A key that no environment has is not among them.
 *
 * @param variables the names in the server's placeholders.
 * @throws as `sessionEnvironment` does, but for keys without a value.
 */
export function serverEnvironment(
  record: EnvironmentOf,
  environments: Environments,
  given: GivenEnvironment | undefined,
  variables: readonly string[],
): SessionEnvironment {
  if (variables.length === 0) return { values: {}, secrets: [] };
  const { merged } = mergeEnvironments(record, environments, givenToServers(record, given));
  return chosenKeys(merged, variables);
}

/**
 * The part of a start that its servers get. Where several people start sessions, it is the variables that the agent
 * declares. A start could otherwise send the secrets of a server to another address.
 */
function givenToServers(
  { source, variables = [] }: EnvironmentOf,
  given: GivenEnvironment = NO_ENVIRONMENT,
): GivenEnvironment {
  // mutant: server-of-a-start
  if (source.environments === undefined) return given;
  const declared = Object.entries(given.values ?? {}).filter(([name]) => variables.includes(name));
  return { ...given, values: Object.fromEntries(declared) };
}

/**
 * The record for a machine on which several people start sessions. They cannot name other environments than the
 * agent does.
 */
export function withOwnEnvironments(record: AgentRecord): AgentRecord {
  const { source, environments } = record;
  if (source.environments !== undefined) return record;
  return { ...record, source: { ...source, environments: [BASE_ENVIRONMENT, ...environments] } };
}

/**
 * The secrets among the variables of a session that has begun, as far as today's environments say. Its call
 * may have named any environment. A variable without a plain value in those of the agent is thus a secret
 * where any environment says so.
 */
export function secretsOfBegun(
  record: EnvironmentOf,
  all: Environments,
  variables: readonly string[],
): readonly string[] {
  const environments = usableBy(record, all);
  const isThere = (name: string): boolean => Object.hasOwn(environments, name);
  const present = { ...record, environments: record.environments.filter(isThere) };
  const own = serverEnvironment(present, environments, undefined, variables);
  const isSecret = (key: string): boolean =>
    Object.values(environments).some((keys) => Object.hasOwn(keys, key) && keys[key]?.secret === true);
  const others = variables.filter((key) => !Object.hasOwn(own.values, key) && isSecret(key));
  return [...new Set([...own.secrets, ...others])];
}

/** The others are as if they were not there, for the base environment as well. */
function usableBy({ source }: Pick<EnvironmentOf, "source">, all: Environments): Environments {
  const { environments: usable } = source;
  if (usable === undefined) return all;
  return Object.fromEntries(Object.entries(all).filter(([name]) => usable.includes(name)));
}

interface Merged {
  readonly merged: ReadonlyMap<string, EnvironmentKey>;
  /** The environments that were merged. */
  readonly names: readonly string[];
}

function mergeEnvironments(record: EnvironmentOf, all: Environments, given: GivenEnvironment): Merged {
  const { name: agent, environments: named, secrets, source } = record;
  const environments = usableBy(record, all);
  const merged = new Map<string, EnvironmentKey>(secrets.map((name) => [name, { secret: true }]));
  const names = [
    ...(Object.hasOwn(environments, BASE_ENVIRONMENT) ? [BASE_ENVIRONMENT] : []),
    ...named,
    ...(given.references ?? []),
  ];
  for (const name of names) {
    const environment = Object.hasOwn(environments, name) ? environments[name] : undefined;
    if (environment === undefined) throw unknownEnvironment(name, agent, source.path, environments);
    for (const [key, next] of Object.entries(environment)) merged.set(key, over(merged.get(key), next));
  }
  for (const [key, value] of Object.entries(given.values ?? {})) {
    checkKey(key);
    checkValue(key, value);
    if (merged.get(key)?.secret === true)
      throw new UsageError(`${key} is a secret, and a value is not given as an argument: others can see it`, {
        at: "--env",
        fix: `run \`holdfast secret set ${key}\`, or set the variable ${key} of this process; replace that value, because it may have been seen`,
      });
    merged.set(key, over(merged.get(key), { value }));
  }
  return { merged, names };
}

function hasValue({ value, secret }: EnvironmentKey): boolean {
  return value !== undefined || secret === true;
}

function chosenKeys(merged: Merged["merged"], keys: readonly string[]): SessionEnvironment {
  const values = keys.flatMap((key) => {
    const value = merged.get(key)?.value;
    return value === undefined ? [] : [[key, value] as const];
  });
  return {
    values: Object.fromEntries(values),
    secrets: keys.filter((key) => merged.get(key)?.secret === true),
  };
}

/** A key that says only that it is required leaves the value before as it is. */
function over(before: EnvironmentKey = {}, next: EnvironmentKey): EnvironmentKey {
  const required = before.required === true || next.required === true;
  if (next.secret === true) return { secret: true, required };
  if (next.value !== undefined) return { value: next.value, required };
  return { ...before, required };
}

function unknownEnvironment(
  name: string,
  agent: string,
  at: string,
  environments: Environments,
): HoldfastError {
  const names = Object.keys(environments);
  return new HoldfastError(
    "agent_invalid",
    `agent "${agent}" asks for the environment "${name}", which is not there${didYouMean(name, names)}`,
    {
      at,
      expected:
        names.length === 0 ? "an environment of this user; there is none" : `one of ${names.join(", ")}`,
      fix: `run \`holdfast env set ${name} KEY=VALUE\`, or correct \`holdfast.environment\` of the agent`,
    },
  );
}

function missingKeys(
  keys: readonly string[],
  agent: string,
  at: string,
  names: readonly string[],
): HoldfastError {
  const [first = ""] = keys;
  return new HoldfastError("agent_invalid", missingVariablesText(agent, keys), {
    at,
    expected: `a value in ${names.length === 0 ? "an environment of the agent" : names.join(", ")}, or of this call`,
    fix: `give it: --env ${first}=VALUE, or \`holdfast env set ${names.at(-1) ?? BASE_ENVIRONMENT} ${first}=VALUE\``,
  });
}
