// `SessionVariables`: the secrets and MCP servers of a session's agents, by the environments of the user and
// of the call.
//
// A session that has begun keeps the servers and the variables of its start. Its process declares every
// secret that the session may ask for: those that it recorded, and those that today's environments name. An
// agent that is offered to starts of others needs no value that a start can give.

import {
  environmentsBeside,
  offeredEnvironment,
  offeredServerEnvironment,
  readEnvironments,
  secretsOfBegun,
  sessionEnvironment,
  variablesOfServers,
  withMcpServers,
  type AgentPlaces,
  type AgentRecord,
  type SessionEnvironment,
} from "@holdfast/agents";
import { HoldfastError, type Environments, type GivenEnvironment } from "@holdfast/core";
import type { OptionalSecrets } from "@holdfast/system";

export interface SessionVariablesOptions {
  readonly places: AgentPlaces;
  readonly given?: GivenEnvironment | undefined;
  /** Others start its sessions, and give environments and variables each time. */
  readonly isOffered?: boolean;
  /** The names of the secrets that a session began with; `undefined` for a new session. */
  readonly recorded: readonly string[] | undefined;
}

export class SessionVariables {
  readonly #places: AgentPlaces;
  readonly #given: GivenEnvironment | undefined;
  readonly #isOffered: boolean;
  readonly #recorded: readonly string[] | undefined;
  #read: Environments | undefined;

  constructor({ places, given, isOffered = false, recorded }: SessionVariablesOptions) {
    this.#isOffered = isOffered;
    this.#places = places;
    this.#given = given;
    this.#recorded = recorded;
  }

  /**
   * The names of the secrets that its commands get. @throws HoldfastError for a missing key, unless the
   * session has begun.
   */
  secretsOf(record: AgentRecord): readonly string[] {
    if (this.#isOffered) return offeredEnvironment(record, this.#environments).secrets;
    return this.#recorded === undefined
      ? sessionEnvironment(record, this.#environments, this.#given).secrets
      : [...this.#recorded, ...secretsOfBegun(record, this.#environments, record.variables)];
  }

  /** The names of the variables that each start has to give. */
  requiredOf(record: AgentRecord): readonly string[] {
    return this.#isOffered ? offeredEnvironment(record, this.#environments).missing : [];
  }

  /** The secrets of the environments that a start may name. */
  startSecretsOf(record: AgentRecord): readonly OptionalSecrets[] {
    if (!this.#isOffered) return [];
    return secretsOfBegun(record, this.#environments, record.variables).map((name) => ({
      anyOf: [name],
      isAsked: false,
    }));
  }

  /** @throws HoldfastError for a server that cannot be used. */
  withServers(record: AgentRecord): AgentRecord {
    return withMcpServers(
      record,
      this.#places,
      this.#recorded === undefined ? this.#ofServer : EVERY_VARIABLE,
    );
  }

  /** The names of the secrets that its MCP servers get. @param record as `withServers` returns it. */
  serverSecretsOf(record: AgentRecord): readonly string[] {
    if (this.#recorded === undefined) return this.#ofServer(record, variablesOfServers(record)).secrets;
    try {
      const served = withMcpServers(record, this.#places, EVERY_VARIABLE);
      return [...this.#recorded, ...secretsOfBegun(record, this.#environments, variablesOfServers(served))];
    } catch (error) {
      if (!HoldfastError.is(error)) throw error;
      return this.#recorded; // Its servers are gone from their files.
    }
  }

  /** The stored secrets that the settings of its MCP servers name. @param record as `withServers` returns it. */
  storedSecretsOf(record: AgentRecord): readonly OptionalSecrets[] {
    const { storedSecrets = [] } = this.#places;
    return variablesOfServers(record)
      .filter((name) => storedSecrets.includes(name))
      .map((name) => ({ anyOf: [name], isAsked: false }));
  }

  readonly #ofServer = (record: AgentRecord, variables: readonly string[]): SessionEnvironment =>
    offeredServerEnvironment(record, this.#environments, this.#given, variables);

  get #environments(): Environments {
    this.#read ??= readEnvironments(environmentsBeside(this.#places.trustFile));
    return this.#read;
  }
}

/** A session that has begun got a value for each variable. */
const EVERY_VARIABLE = (_record: AgentRecord, variables: readonly string[]): SessionEnvironment => ({
  values: Object.fromEntries(variables.map((name) => [name, "a value"])),
  secrets: [],
});
