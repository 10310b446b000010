// `StoredEnvironments`: the environments of persons and of projects at a coordinator, as encrypted documents of
// the storage.
//
//   - A document has in the clear the owner and the name of the environment, and the person and time of its last change. Names of keys and
//     their values are encrypted, with the id of the document as their identity (`sealing.ts`).
//   - Every change is one audited change (X14). The audit has names of keys, and no value.
//   - Without the right key nothing is read and nothing stored. An environment can be deleted.

import {
  type AgentStorage,
  type Audit,
  BASE_ENVIRONMENT,
  type Change,
  checkEnvironment,
  type Clock,
  defined,
  ENVIRONMENT_LIMITS,
  type EnvironmentKey,
  type EnvironmentKeys,
  type Environments,
  HoldfastError,
  keysOver,
  LimitError,
  MIB,
  NotFoundError,
  type StoredDocument,
  UsageError,
} from "@holdfast/core";
import { Sealing, wrongKey, type Sealed } from "./sealing.ts";

/** The owner of environments. */
export interface EnvironmentOwner {
  readonly kind: "person" | "project";
  readonly name: string;
}

export interface StoredEnvironment {
  readonly name: string;
  /** With the values of secrets. */
  readonly keys: EnvironmentKeys;
  readonly changedAt: number;
  readonly changedBy: string;
}

/** A key as it is to be. Without a value it is required, and keeps the value that it has. */
export interface ChangedKey extends Pick<EnvironmentKey, "value" | "secret" | "required"> {
  readonly name: string;
}

export interface EnvironmentChange {
  readonly keys: readonly ChangedKey[];
  /** Names of keys. */
  readonly remove: readonly string[];
  readonly by: string;
}

/** The part of a session, or of a start, that decides which environments it has. */
export interface EnvironmentsOfSession {
  readonly person: string | undefined;
  readonly project: string | undefined;
  /** The environments that the agent file names. */
  readonly named: readonly string[];
  /** The environments that the start names. */
  readonly references: readonly string[];
}

interface Body {
  readonly sealed: Sealed;
  readonly changedAt: number;
  readonly changedBy: string;
}

const COLLECTION = "environment";
const PAGE = 500;
/** The encrypted text of one environment. */
const BYTES_MAX = MIB;

export class StoredEnvironments {
  readonly #storage: AgentStorage;
  readonly #clock: Clock;
  readonly #sealing: Sealing;

  /** @param keys texts of the keys: the first one encrypts. */
  constructor({
    storage,
    clock,
    keys,
  }: {
    readonly storage: AgentStorage;
    readonly clock: Clock;
    readonly keys: readonly string[];
  }) {
    this.#storage = storage;
    this.#clock = clock;
    this.#sealing = new Sealing(keys);
  }

  /**
   * Compares the keys of the coordinator with those of the stored environments.
   *
   * @returns the number of environments that nobody can read, because the coordinator has no key at all.
   * @throws HoldfastError `secret_key` when it has keys, and none of them is that of an environment.
   */
  async checkKeys(): Promise<number> {
    let count = 0;
    for await (const { body } of this.#documents("")) {
      count++;
      // mutant: wrong-key-at-start
      if (this.#sealing.hasKey && !this.#sealing.knows(body.sealed)) throw wrongKey(body.sealed.key);
    }
    return this.#sealing.hasKey ? 0 : count;
  }

  /** By name. @throws HoldfastError `secret_key` */
  async list(owner: EnvironmentOwner): Promise<readonly StoredEnvironment[]> {
    const found: StoredEnvironment[] = [];
    for await (const { id, body } of this.#documents(prefixOf(owner))) found.push(this.#opened(id, body));
    return found;
  }

  /** @throws NotFoundError, HoldfastError `secret_key` */
  async get(owner: EnvironmentOwner, name: string): Promise<StoredEnvironment> {
    const found = await this.#read(owner, name);
    if (found === undefined) throw noEnvironment(owner, name);
    return found.environment;
  }

  /**
   * The environments of a session by their names: those of its project, with those of its person over them.
   * A start names further environments of its person alone, because those of a project are for the agent files
   * that name them.
   */
  async ofSession({ person, project, named, references }: EnvironmentsOfSession): Promise<Environments> {
    const own = [...new Set([BASE_ENVIRONMENT, ...named])];
    // mutant: environment-of-a-project-by-reference
    const ofProject = project === undefined ? {} : await this.#named({ kind: "project", name: project }, own);
    if (person === undefined) return ofProject;
    const ofPerson = await this.#named({ kind: "person", name: person }, [
      ...new Set([...own, ...references]),
    ]);
    const names = [...new Set([...Object.keys(ofProject), ...Object.keys(ofPerson)])];
    return Object.fromEntries(
      names.map((name) => [name, keysOver(ofProject[name] ?? {}, ofPerson[name] ?? {})]),
    );
  }

  /** Sets and removes keys. @throws UsageError, LimitError, HoldfastError `secret_key` */
  async change(
    owner: EnvironmentOwner,
    name: string,
    { keys, remove, by }: EnvironmentChange,
    audit: Pick<Audit, "actor" | "requestId">,
  ): Promise<StoredEnvironment> {
    for (;;) {
      const known = await this.#read(owner, name);
      if (known === undefined && keys.length > 0) await this.#refuseTooMany(owner);
      const before = known?.environment.keys ?? {};
      const made = changed(before, keys, remove, name);
      const environment = { name, keys: made, changedAt: this.#clock.now(), changedBy: by };
      const details = JSON.stringify({ set: keys.map((key) => key.name), removed: remove });
      const put = this.#putOf(idOf(owner, name), environment, known?.version ?? 0);
      if (await this.#commit(put, { ...audit, action: "environment.set", details })) return environment;
    }
  }

  /** Needs no key. @throws NotFoundError */
  async delete(
    owner: EnvironmentOwner,
    name: string,
    audit: Pick<Audit, "actor" | "requestId">,
  ): Promise<void> {
    const id = idOf(owner, name);
    if ((await this.#storage.reader.document(COLLECTION, id)) === undefined) throw noEnvironment(owner, name);
    await this.#commit(
      { type: "remove_document", collection: COLLECTION, id },
      { ...audit, action: "environment.delete" },
    );
  }

  /** Encrypts all environments with the first key. @throws HoldfastError `secret_key` */
  async rotate(
    audit: Pick<Audit, "actor" | "requestId">,
  ): Promise<{ readonly rotated: number; readonly environments: number }> {
    let [rotated, environments] = [0, 0];
    for await (const { id, version, body } of this.#documents("")) {
      environments++;
      if (this.#sealing.isNewest(body.sealed)) continue;
      const put = this.#putOf(id, this.#opened(id, body), version);
      // Another request may have changed it meanwhile, with the first key.
      if (await this.#commit(put, { ...audit, action: "environment.rotate" })) rotated++;
    }
    return { rotated, environments };
  }

  async #named(owner: EnvironmentOwner, names: readonly string[]): Promise<Environments> {
    const found = await Promise.all(names.map((name) => this.#read(owner, name)));
    return Object.fromEntries(
      found.flatMap((one) => (one === undefined ? [] : [[one.environment.name, one.environment.keys]])),
    );
  }

  async #refuseTooMany(owner: EnvironmentOwner): Promise<void> {
    const { environments: most } = ENVIRONMENT_LIMITS;
    let count = 0;
    for await (const _ of this.#documents(prefixOf(owner))) count++;
    if (count < most) return;
    throw new LimitError("environments", `the ${owner.kind} ${owner.name} already has ${most} environments`, {
      expected: `at most ${most}`,
    });
  }

  async #read(
    owner: EnvironmentOwner,
    name: string,
  ): Promise<{ readonly environment: StoredEnvironment; readonly version: number } | undefined> {
    const id = idOf(owner, name);
    const document = await this.#storage.reader.document(COLLECTION, id);
    if (document === undefined) return undefined;
    return { environment: this.#opened(id, bodyOf(document)), version: document.version };
  }

  #opened(id: string, { sealed, changedAt, changedBy }: Body): StoredEnvironment {
    const keys = JSON.parse(this.#sealing.open(sealed, id)) as EnvironmentKeys;
    return { name: id.slice(id.lastIndexOf("/") + 1), keys, changedAt, changedBy };
  }

  #putOf(id: string, { keys, changedAt, changedBy }: StoredEnvironment, expected: number): Documents {
    const body: Body = { sealed: this.#sealing.seal(JSON.stringify(keys), id), changedAt, changedBy };
    return { type: "put_document", collection: COLLECTION, id, body: JSON.stringify(body), expected };
  }

  /** @returns whether the change was made: another request may have changed the environment meanwhile. */
  async #commit(change: Documents, audit: Omit<Audit, "object">): Promise<boolean> {
    const audited: Change = {
      type: "audited",
      change,
      audit: { ...audit, object: `environment:${change.id}` },
    };
    const [result] = await this.#storage.commit([audited], this.#clock.now());
    if (result?.status === "done") return true;
    if (result?.status === "conflict" || result?.status === "not_found") return false;
    throw new HoldfastError("internal", `storing an environment: storage answered "${result?.status}"`);
  }

  /** The documents whose ids begin so, in the order of their ids. */
  async *#documents(
    prefix: string,
  ): AsyncGenerator<{ readonly id: string; readonly version: number; readonly body: Body }> {
    for (let after: string | undefined = prefix === "" ? undefined : prefix; ;) {
      const page: readonly StoredDocument[] = await this.#storage.reader.documents({
        collection: COLLECTION,
        limit: PAGE,
        ...defined({ after }),
      });
      for (const document of page) {
        if (!document.id.startsWith(prefix)) return;
        yield { id: document.id, version: document.version, body: bodyOf(document) };
      }
      after = page.at(-1)?.id;
      if (page.length < PAGE) return;
    }
  }
}

type Documents = Extract<Change, { type: "put_document" | "remove_document" }>;

function prefixOf({ kind, name }: EnvironmentOwner): string {
  return `${kind}/${name}/`;
}

/** The identity of an environment in its document, in its encryption and in the audit. */
function idOf(owner: EnvironmentOwner, name: string): string {
  return `${prefixOf(owner)}${name}`;
}

function bodyOf({ body }: StoredDocument): Body {
  return JSON.parse(body) as Body;
}

function changed(
  before: EnvironmentKeys,
  keys: readonly ChangedKey[],
  remove: readonly string[],
  name: string,
): EnvironmentKeys {
  const made = new Map<string, EnvironmentKey>(Object.entries(before));
  for (const key of remove) if (!made.delete(key)) throw noKeyOf(name, key, before);
  for (const key of keys) made.set(key.name, changedKey(made.get(key.name), key));
  const after = Object.fromEntries(made);
  checkEnvironment(name, after);
  if (Buffer.byteLength(JSON.stringify(after)) > BYTES_MAX)
    throw new LimitError("environment", `the environment ${name} would be too large`, {
      expected: `at most ${BYTES_MAX} bytes for all its keys and values`,
    });
  return after;
}

function changedKey(
  before: EnvironmentKey | undefined,
  { name, value, secret, required }: ChangedKey,
): EnvironmentKey {
  if (secret === true && value === undefined)
    throw new UsageError(`the secret ${name} has no value`, {
      at: "keys",
      expected: "a value with `secret`",
    });
  if (value !== undefined && secret !== true && before?.secret === true)
    throw new UsageError(`${name} is a secret, and it would become a value that can be read`, {
      at: "keys",
      fix: "set it as a secret, or remove the key first",
    });
  if (value === undefined && required !== true)
    throw new UsageError(`the key ${name} has no value`, {
      at: "keys",
      expected: "a value, or `required`",
    });
  const isRequired = required === true || before?.required === true;
  return {
    ...(value === undefined ? before : { value, ...(secret === true ? { secret } : {}) }),
    ...(isRequired ? { required: true } : {}),
  };
}

function noKeyOf(name: string, key: string, keys: EnvironmentKeys): NotFoundError {
  const names = Object.keys(keys);
  return new NotFoundError("not_found", `the environment ${name} has no key ${key}`, {
    at: "remove",
    expected: names.length === 0 ? "no key: it has none" : `one of ${names.slice(0, 20).join(", ")}`,
  });
}

function noEnvironment({ kind, name: owner }: EnvironmentOwner, name: string): NotFoundError {
  const whose = kind === "project" ? ` of the project ${owner}` : "";
  return new NotFoundError("not_found", `the coordinator has no environment ${name}${whose}`, {
    fix: `see what there is: \`holdfast env list --url URL${kind === "project" ? ` --project ${owner}` : ""}\``,
  });
}
