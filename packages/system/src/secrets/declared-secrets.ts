// `DeclaredSecrets`: the secrets that the agents and tasks of a runtime declare by name, and their values.
//
//   - A handler gets only secrets that were declared for it. A task's handler gets those of its task, and a
//     function of `ctx.run` gets those of the agents of this runtime.
//   - A value is read when it is asked for. Only the redactor keeps it, which replaces it in everything that
//     is recorded or shown.

import { HoldfastError, isVariableName, UsageError } from "@holdfast/core";
import { Redactor } from "./redactor.ts";

/** Where values of secrets come from: a map from names, or anything that answers in the same way. */
export interface SecretSource {
  /**
   * The value, if there is one. Called whenever it is needed. Must not throw.
   *
   * @param sessionId the session whose task asks.
   */
  get(name: string, sessionId?: string): string | undefined;
  /**
   * Called before each task of a session. The task begins when it has resolved; `undefined` is for at once. A
   * rejection fails the attempt. Must not throw.
   */
  ready?(sessionId: string): Promise<void> | undefined;
}

const STORED = "coordinator:";

/**
 * The name of a secret in an environment of the session's coordinator. Only the source of the session has it, so
 * no definition declares it. It is no name of a variable.
 */
export function storedSecret(environment: string, key: string): string {
  return `${STORED}${environment}/${key}`;
}

export function isStoredSecret(name: string): boolean {
  return name.startsWith(STORED);
}

/** The name of an environment variable, because that is one of the places of a value. */
export function isSecretName(name: unknown): name is string {
  return isVariableName(name);
}

/** The part of a definition that declares secrets. */
export interface Declares {
  readonly secrets?: readonly string[];
}

/** Secrets that a session can start without, such as the key of its model. */
export interface OptionalSecrets {
  /** Names, in the order of preference. One value is enough. */
  readonly anyOf: readonly string[];
  /** Whether a person at a terminal is asked for the first of them, where none has a value. */
  readonly isAsked: boolean;
}

export interface DeclaringAgent extends Declares {
  readonly optionalSecrets?: readonly OptionalSecrets[];
  readonly tasks: readonly Declares[];
  readonly agents: readonly DeclaringAgent[];
}

/** Every name that these agents, the agents below them and these tasks declare, in order. */
export function declaredSecretsOf(
  agents: readonly DeclaringAgent[],
  tasks: readonly Declares[] = [],
): readonly string[] {
  const declaring = [...tasks, ...withAllBelow(agents).flatMap((agent) => [agent, ...agent.tasks])];
  return [...new Set(declaring.flatMap(({ secrets = [] }) => secrets))].toSorted();
}

/** The secrets that agents and tasks ask for. */
export interface WantedSecrets {
  /** Nothing starts without one of them. */
  readonly required: readonly string[];
  readonly optional: readonly OptionalSecrets[];
}

/** The wanted secrets of these agents, the agents below them and these tasks. */
export function wantedSecretsOf(
  agents: readonly DeclaringAgent[],
  tasks: readonly Declares[] = [],
): WantedSecrets {
  const optional = withAllBelow(agents).flatMap(({ optionalSecrets = [] }) => optionalSecrets);
  return {
    required: declaredSecretsOf(agents, tasks),
    optional: [...new Map(optional.map((one) => [JSON.stringify(one), one])).values()],
  };
}

/** The names of wanted secrets, each once. */
export function namesOfSecrets({ required, optional }: WantedSecrets): readonly string[] {
  return [...new Set([...required, ...optional.flatMap(({ anyOf }) => anyOf)])];
}

function withAllBelow(agents: readonly DeclaringAgent[]): readonly DeclaringAgent[] {
  const all = new Set<DeclaringAgent>(agents);
  for (const { agents: below } of all) for (const agent of below) all.add(agent);
  return [...all];
}

export class DeclaredSecrets {
  readonly redactor = new Redactor();
  readonly #source: SecretSource;
  /** Names that functions of `ctx.run` may read. */
  readonly #ofAgents = new Set<string>();

  /** @param known values that nobody declares, and that are replaced all the same. */
  constructor(source: SecretSource, known: Iterable<string> = []) {
    this.#source = source;
    for (const value of known) this.redactor.add(value);
  }

  /** A handler may also know the value from elsewhere, so that it is redacted from here on. */
  declare({ secrets = [] }: Declares): void {
    for (const name of secrets) this.#read(name);
  }

  declareAgent(agent: Declares & Pick<DeclaringAgent, "optionalSecrets">): void {
    this.declare(agent);
    for (const { anyOf } of agent.optionalSecrets ?? []) this.declare({ secrets: anyOf });
    for (const name of agent.secrets ?? []) this.#ofAgents.add(name);
  }

  /**
   * The value for a handler.
   *
   * @param task the definition of the handler's task; `undefined` for a function of `ctx.run`.
   * @param sessionId the session of the task.
   * @throws UsageError for a name that is not declared, HoldfastError `secret_missing` without a value.
   */
  of(task: (Declares & { readonly name: string }) | undefined, name: string, sessionId?: string): string {
    if (isStoredSecret(name)) return this.#read(name, sessionId) ?? notReleased(name);
    const isDeclared = task === undefined ? this.#ofAgents.has(name) : task.secrets?.includes(name) === true;
    if (!isDeclared) {
      const fix = `secrets: [${JSON.stringify(name)}]`;
      throw new UsageError(`the secret ${name} is not declared`, {
        at: task === undefined ? "a function of ctx.run" : `task "${task.name}"`,
        fix: task === undefined ? `defineAgent({ ${fix} })` : `defineTask({ ${fix} })`,
      });
    }
    const value = this.#read(name, sessionId);
    if (value !== undefined) return value;
    throw new HoldfastError("secret_missing", `the secret ${name} has no value in this process`, {
      expected: "a value from the source of secrets, by default the environment",
      fix: `set the environment variable ${name}, or pass createRuntime({ secrets })`,
    });
  }

  /** As `SecretSource.ready`. */
  ready(sessionId: string): Promise<void> | undefined {
    return this.#source.ready?.(sessionId);
  }

  #read(name: string, sessionId?: string): string | undefined {
    const value = this.#source.get(name, sessionId);
    if (value === undefined || value === "") return undefined;
    this.redactor.add(value); // From here on it is replaced in all that is recorded or shown.
    return value;
  }
}

function notReleased(name: string): never {
  const [environment = "", key = ""] = name.slice(STORED.length).split("/");
  throw new HoldfastError(
    "secret_missing",
    `the coordinator has no value of the secret ${key} for this session`,
    {
      expected: `a secret ${key} in the environment ${environment} of the session's person or project`,
      fix: `set it: \`holdfast env set ${environment} ${key} --secret --url URL\``,
    },
  );
}
