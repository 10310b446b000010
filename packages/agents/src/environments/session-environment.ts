// `sessionEnvironment`, `serverEnvironment`: the variables of a session, merged from environments, and which
// of them its commands and its MCP servers get.
//
//   - Environments are merged by `mergeEnvironments` of core. A key that is required and has no value refuses the
//     session, and the error names all such keys.
//   - The result has only the keys that the agent declares, and of secrets their names alone. A value of a
//     secret is looked up when a process is started.
//   - Where several people start sessions (`source.environments`), a start names no other environments than the
//     agent does. Its servers get a value of the start only for a variable that the agent declares.
//   - A coordinator gives no other variables than the agent declares, to its servers neither.
//   - A server gets the keys that its settings name by placeholders. It needs no declaration in `variables`,
//     which are those of commands, and no command gets a key for a server's sake.

import {
  BASE_ENVIRONMENT,
  checkKey,
  checkValue,
  didYouMean,
  hasValue,
  HoldfastError,
  keyOver,
  keysOver,
  keysWithoutValue,
  mergeEnvironments,
  missingVariablesText,
  UsageError,
  type EnvironmentKey,
  type Environments,
  type GivenEnvironment,
  type MergedKeys,
} from "@holdfast/core";

import type { AgentRecord } from "../record/agent-record.ts";

/** The variables that a session's commands get. It is recorded with the session. */
// oxlint-disable-next-line typescript/consistent-type-definitions -- an interface is no JSON value.
export type SessionEnvironment = {
  readonly values: Readonly<Record<string, string>>;
  /** Names of secrets. Each is a variable of the same name. */
  readonly secrets: readonly string[];
  /** Secrets that the coordinator stores: the environment that has the value, by the name of the variable. */
  readonly stored?: Readonly<Record<string, string>>;
};

/** The part of an agent that says where its variables come from. */
export type EnvironmentOf = Pick<AgentRecord, "name" | "environments" | "secrets"> & {
  readonly variables?: readonly string[];
  readonly source: Pick<AgentRecord["source"], "path" | "environments" | "storedEnvironments">;
};

const NO_ENVIRONMENT: GivenEnvironment = {};
const NO_ENVIRONMENTS: Environments = {};

/**
 * The variables of an agent's session.
 *
 * @param stored the environments of the coordinator that the session has, after the environments of its machine.
 * @throws HoldfastError `agent_invalid` for an environment that is not there and for keys without a value.
 *   UsageError for a value
 *     of the call that is a secret.
 */
export function sessionEnvironment(
  record: AgentRecord,
  environments: Environments,
  given: GivenEnvironment = NO_ENVIRONMENT,
  stored: Environments = NO_ENVIRONMENTS,
): SessionEnvironment {
  const { name: agent, variables, source } = record;
  const { merged, names } = mergedFor(record, environments, given, stored);
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
  // The names of the coordinator's environments are compared with these at the start of each session.
  const here = { ...record, environments: ofMachine(record) };
  const { merged } = mergedFor(here, environments, NO_ENVIRONMENT, NO_ENVIRONMENTS);
  return {
    missing: keysWithoutValue(merged, record.variables),
    secrets: chosenKeys(merged, record.variables).secrets,
  };
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
  stored: Environments = NO_ENVIRONMENTS,
): SessionEnvironment {
  if (variables.length === 0) return { values: {}, secrets: [] };
  const { merged } = mergedFor(record, environments, givenToServers(record, given), stored);
  return chosenKeys(merged, variables);
}

/**
 * As `serverEnvironment`, before there is a session. A variable that the agent declares may have its value from the
 * coordinator of each session.
 */
export function offeredServerEnvironment(
  record: EnvironmentOf,
  environments: Environments,
  given: GivenEnvironment | undefined,
  wanted: readonly string[],
): SessionEnvironment {
  const { variables = [], source } = record;
  const own = serverEnvironment({ ...record, environments: ofMachine(record) }, environments, given, wanted);
  if (source.storedEnvironments === undefined) return own;
  const later = wanted.filter((name) => variables.includes(name) && !own.secrets.includes(name));
  return { ...own, values: { ...Object.fromEntries(later.map((name) => [name, "a value"])), ...own.values } };
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

/**
 * The coordinator sends what the agent file declared when it was pushed, as the push said. The policy of this machine
 * was asked about the variables of the file itself. Another one could send the secrets of a server elsewhere.
 */
function onlyDeclared({ variables = [] }: EnvironmentOf, stored: Environments): Environments {
  const isOwn = ([key, one]: readonly [string, EnvironmentKey]): boolean =>
    // mutant: undeclared-value-taken
    variables.includes(key) || !hasValue(one);
  return Object.fromEntries(
    Object.entries(stored).map(([name, keys]) => [
      name,
      Object.fromEntries(Object.entries(keys).filter(isOwn)),
    ]),
  );
}

interface Merged {
  readonly merged: MergedKeys;
  /** The environments that were merged. */
  readonly names: readonly string[];
}

/** The environments of an agent that its machine has to have. */
function ofMachine({
  environments,
  source,
}: Pick<EnvironmentOf, "environments" | "source">): readonly string[] {
  const { storedEnvironments = [] } = source;
  return environments.filter((name) => !storedEnvironments.includes(name));
}

function mergedFor(
  record: EnvironmentOf,
  all: Environments,
  given: GivenEnvironment,
  stored: Environments,
): Merged {
  const { name: agent, environments: named, secrets, source } = record;
  const environments = layered(usableBy(record, all), onlyDeclared(record, stored));
  const declared = Object.fromEntries(secrets.map((name) => [name, { secret: true }]));
  const wanted = [...named, ...(given.references ?? [])];
  const { merged: keys, names, unknown } = mergeEnvironments(environments, wanted, declared);
  const [missing] = unknown;
  if (missing !== undefined) throw unknownEnvironment(missing, agent, source, environments);
  const merged = new Map(keys);
  for (const [key, value] of Object.entries(given.values ?? {})) {
    checkKey(key);
    checkValue(key, value);
    if (merged.get(key)?.secret === true)
      throw new UsageError(`${key} is a secret, and a value is not given as an argument: others can see it`, {
        at: "--env",
        fix: `run \`holdfast secret set ${key}\`, or set the variable ${key} of this process; replace that value, because it may have been seen`,
      });
    merged.set(key, keyOver(merged.get(key), { value }));
  }
  return { merged, names };
}

function layered(first: Environments, next: Environments): Environments {
  const names = [...new Set([...Object.keys(first), ...Object.keys(next)])];
  return Object.fromEntries(names.map((name) => [name, keysOver(first[name] ?? {}, next[name] ?? {})]));
}

function chosenKeys(merged: Merged["merged"], keys: readonly string[]): SessionEnvironment {
  const values = keys.flatMap((key) => {
    const value = merged.get(key)?.value;
    return value === undefined ? [] : [[key, value] as const];
  });
  const secrets = keys.filter((key) => merged.get(key)?.secret === true);
  const stored = secrets.flatMap((key) => {
    const environment = merged.get(key)?.storedIn;
    return environment === undefined ? [] : [[key, environment] as const];
  });
  return {
    values: Object.fromEntries(values),
    secrets: secrets.filter((key) => merged.get(key)?.storedIn === undefined),
    ...(stored.length === 0 ? {} : { stored: Object.fromEntries(stored) }),
  };
}

function unknownEnvironment(
  name: string,
  agent: string,
  { path: at, storedEnvironments }: EnvironmentOf["source"],
  environments: Environments,
): HoldfastError {
  const names = Object.keys(environments);
  const where = storedEnvironments === undefined ? "" : " --url URL";
  return new HoldfastError(
    "agent_invalid",
    `agent "${agent}" asks for the environment "${name}", which is not there${didYouMean(name, names)}`,
    {
      at,
      expected:
        names.length === 0 ? "an environment of this user; there is none" : `one of ${names.join(", ")}`,
      fix: `run \`holdfast env set ${name} KEY=VALUE${where}\`, or correct \`holdfast.environment\` of the agent`,
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
