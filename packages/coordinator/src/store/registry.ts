// `Registry` stores each runner as a document, so that every coordinator of a storage knows all runners, also
// after a restart.
//
//   - The coordinator that a runner polls writes at most every `SEEN_EVERY_MS` when the runner was last seen.
//     A coordinator that has not heard of the runner for a lease writes at once. The previous coordinator
//     then learns that it cannot judge whether the runner is alive.
//   registry-2. A runner of which nothing new was written for `SILENT_MS` is removed. Its claims run out by
//       their leases long before. Each coordinator counts this time by a clock that does not jump, so no
//       clock that is set removes a runner. The count is stored about once a minute, and the largest one
//       counts, so that a restarted coordinator continues it. Time without any coordinator does not count.
//   - A list of all runners is at most `KNOWN_MS` old. Knowledge of a single runner is as old as the last
//     list, which each `sweep` reads. Changes that this coordinator stores are known at once.
//   - A name is for people, and several runners may share it. A name stands for a runner only if no other
//     runner has it.
//
// This class knows no polls and no sessions.

import {
  defined,
  HoldfastError,
  MINUTE_MS,
  queuedTaskAgent,
  UsageError,
  type AgentStorage,
  type Audit,
  type Budget,
  type Change,
  type Clock,
  type JsonText,
} from "@holdfast/core";

/** The properties that decide which sessions a runner may get: its owner, labels, agents and behaviour flags. */
export interface Fitness {
  /** The only user whose sessions the runner takes; absent for all users. */
  readonly owner?: string;
  /** Includes `machine`, `hostname` and `runner`. */
  readonly labels: Readonly<Record<string, string>>;
  /** The versions by agent name; an empty set stands for all versions. */
  readonly agents: ReadonlyMap<string, ReadonlySet<string>>;
  /** The behaviour flags that the runner knows. Absent for a runner that does not say. */
  readonly behaviourFlags?: number;
}

/** A runner as it is stored. Times are epoch milliseconds. */
export interface StoredRunner {
  readonly runnerId: string;
  /** The id of its token. */
  readonly tokenId: string;
  /** The only user whose sessions the runner takes. */
  readonly owner?: string;
  /** The host's name when absent. */
  readonly name?: string;
  readonly hostname: string;
  readonly project: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly agents: readonly OfferedAgent[];
  readonly taskKinds: readonly string[];
  readonly maxRuns: number;
  readonly behaviourFlags?: number;
  /** The version of Holdfast that it runs. Absent for a runner that does not say. */
  readonly version?: string;
  /** Absent for a runner that refuses none, or does not say. */
  readonly refusedAgents?: readonly RefusedAgent[];
  /**
   * The lease that the runner was told when it registered. It trusts that lease until it registers again.
   */
  readonly leaseMs?: number;
  readonly registeredAt: number;
  readonly seenAt: number;
  /** How long the runner has been silent since this `seenAt` (registry-2); zero for any other `seenAt`. */
  readonly silence?: { readonly seenAt: number; readonly ms: number };
  /** The process that is this runner: the hash of its secret name, and since when. */
  readonly process?: string;
  readonly processSince?: number;
  /** Whether the runner gets no new sessions. */
  readonly draining?: boolean;
  /** Whether a runner with newer code has replaced it (rules-8). */
  readonly superseded?: true;
  /** The runner that started it for trials; it takes suspects alone (rules-6). */
  readonly trialsOf?: string;
}

/** An agent of the catalogue that a runner does not offer in its current version. */
interface RefusedAgent {
  readonly name: string;
  /** The reason, for people. */
  readonly problem: string;
}

export interface OfferedAgent {
  readonly name: string;
  readonly version?: string;
  /** The JSON Schema of its input, where its runner announced one when it registered. */
  readonly inputSchema?: JsonText;
  /** Its sessions can be started without an input. */
  readonly isInputOptional?: true;
  /** The purpose of the agent, announced as the schema is. */
  readonly description?: string;
  /** Words by which a list of agents is filtered, announced as the schema is. */
  readonly tags?: readonly string[];
  /** The budget of each session that is started of it without one, announced as the schema is. */
  readonly budget?: Budget;
  /** Names of the variables that each start gives, announced as the schema is. */
  readonly requiredVariables?: readonly string[];
  /** The environments that it gets from the coordinator, announced as the schema is; absent where it gets none. */
  readonly environments?: readonly string[];
}

export interface RegistryHost {
  readonly storage: AgentStorage;
  readonly clock: Clock;
}

const COLLECTION = "runner";
const PAGE = 500;
const SEEN_EVERY_MS = 60_000;
const SILENT_MS = 10 * MINUTE_MS;
const COUNT_EVERY_MS = 60_000;
const KNOWN_MS = 5_000;
/** Longer than the interval between two writes of `seenAt`, as a runner polls at least twice a minute. */
export const QUIET_MS = 90_000;

export class Registry {
  readonly #host: RegistryHost;
  /** Since when this coordinator hears of runners, in epoch milliseconds. */
  readonly beganAt: number;
  #known = new Map<string, Known>();
  /** registry-2. By runner; the moments are monotonic milliseconds. */
  #silence = new Map<string, Silence>();
  /** The last `seenAt` of each runner that this coordinator wrote. */
  readonly #written = new Map<string, number>();
  #readAt = -Infinity;
  #reading: Promise<void> | undefined;

  constructor(host: RegistryHost) {
    this.#host = host;
    this.beganAt = host.clock.now();
  }

  /** All registered runners. */
  async all(): Promise<readonly StoredRunner[]> {
    await this.#refresh();
    return [...this.#known.values()].map(({ runner }) => runner);
  }

  async find(runnerId: string): Promise<StoredRunner | undefined> {
    const known = this.#known.get(runnerId) ?? (await this.#read(runnerId));
    return known?.runner;
  }

  /** The runner of this id, or the only one of this name. @throws UsageError when there are several. */
  async named(text: string): Promise<StoredRunner | undefined> {
    const runner = await this.find(text);
    if (runner !== undefined) return runner;
    const called = (await this.all()).filter((one) => nameOf(one) === text);
    if (called.length < 2) return called[0];
    throw new UsageError(`${called.length} runners are called ${text}`, {
      got: called.map(({ runnerId }) => runnerId).join(", "),
      expected: "an id, or the name of one alone",
      fix: "give the id",
    });
  }

  /** Whether this coordinator heard of the runner last, as far as it knows. */
  isSeenHere({ runnerId, seenAt }: StoredRunner): boolean {
    return this.#written.get(runnerId) === seenAt;
  }

  /** The runner as it is stored now. */
  async findFresh(runnerId: string): Promise<StoredRunner | undefined> {
    return (await this.#read(runnerId))?.runner;
  }

  /** Whether the owner of a claim is a known runner; other processes claim as well. */
  knows(owner: string): boolean {
    return this.#known.has(owner);
  }

  /** The name of a runner, if known. */
  nameOf(owner: string): string | undefined {
    const known = this.#known.get(owner);
    return known && nameOf(known.runner);
  }

  /**
   * Changes a stored runner; `undefined` stands for no runner, before and after. A conflict is tried again.
   * Nothing is written when `make` answers the runner that it was given.
   */
  async change(
    runnerId: string,
    audit: Audit | undefined,
    make: (runner: StoredRunner | undefined) => StoredRunner | undefined,
  ): Promise<StoredRunner | undefined> {
    for (;;) {
      const known = await this.#read(runnerId);
      const made = make(known?.runner);
      if (made === known?.runner) return made;
      const change: Exclude<Change, { type: "audited" }> =
        made === undefined
          ? { type: "remove_document", collection: COLLECTION, id: runnerId, expected: known?.version ?? 0 }
          : {
              type: "put_document",
              collection: COLLECTION,
              id: runnerId,
              body: JSON.stringify(made),
              expected: known?.version ?? 0,
            };
      const [result] = await this.#host.storage.commit(
        [audit === undefined ? change : { type: "audited", change, audit }],
        this.#host.clock.now(),
      );
      if (result?.status === "conflict" || result?.status === "not_found") continue;
      if (result?.status !== "done")
        throw new HoldfastError("internal", `storing a runner: storage answered "${result?.status}"`);
      if (made === undefined) {
        this.#known.delete(runnerId);
        this.#written.delete(runnerId);
      } else {
        this.#known.set(runnerId, { runner: made, version: result.version ?? 0 });
        if (made.seenAt !== known?.runner.seenAt) this.#written.set(runnerId, made.seenAt);
      }
      return made;
    }
  }

  /**
   * Notes a poll and its offers. The write runs in the background. @param isBack whether the runner was
   * silent here for a lease.
   */
  seen(
    runner: StoredRunner,
    offers: Pick<StoredRunner, "agents" | "taskKinds" | "superseded">,
    isBack: boolean,
  ): StoredRunner {
    const now = this.#host.clock.now();
    const isNews = textOf(runner) !== textOf(offers);
    // mutant: moved-runner-silent
    if (!isNews && !isBack && now - runner.seenAt < SEEN_EVERY_MS) return runner;
    const seenOf = (before: StoredRunner): StoredRunner => ({
      ...before,
      ...offers,
      agents: withSchemas(offers.agents, before.agents),
      seenAt: now,
    });
    const seen = seenOf(runner);
    const known = this.#known.get(runner.runnerId);
    if (known !== undefined) this.#known.set(runner.runnerId, { ...known, runner: seen });
    this.change(runner.runnerId, undefined, (stored) => stored && seenOf(stored)).catch(() => {});
    return seen;
  }

  /** registry-2. Remove the runners that were silent for too long. @returns their ids. */
  async sweep(): Promise<readonly string[]> {
    const now = this.#host.clock.monotonic();
    const [before, silence] = [this.#silence, new Map<string, Silence>()];
    const removed: string[] = [];
    for (const { runnerId, seenAt, silence: stored } of await this.all()) {
      const known = before.get(runnerId);
      const storedMs = stored?.seenAt === seenAt ? stored.ms : 0;
      const since = Math.min(known?.seenAt === seenAt ? known.since : now, now - storedMs);
      silence.set(runnerId, { seenAt, since });
      const ms = now - since;
      if (ms >= SILENT_MS) {
        const audit: Audit = { actor: "coordinator", action: "runner.remove", object: `runner:${runnerId}` };
        const left = await this.change(runnerId, audit, (runner) =>
          runner?.seenAt === seenAt ? undefined : runner,
        );
        if (left === undefined) removed.push(runnerId);
      } else if (ms - storedMs >= COUNT_EVERY_MS) {
        await this.change(runnerId, undefined, (runner) =>
          runner?.seenAt === seenAt ? { ...runner, silence: { seenAt, ms } } : runner,
        );
      }
    }
    this.#silence = silence;
    for (const runnerId of this.#written.keys()) if (!this.knows(runnerId)) this.#written.delete(runnerId);
    return removed;
  }

  async #refresh(): Promise<void> {
    if (this.#host.clock.monotonic() - this.#readAt < KNOWN_MS) return;
    this.#reading ??= this.#readAll().finally(() => (this.#reading = undefined));
    await this.#reading;
  }

  async #readAll(): Promise<void> {
    const known = new Map<string, Known>();
    for (let after: string | undefined; ;) {
      const page = await this.#host.storage.reader.documents({
        collection: COLLECTION,
        limit: PAGE,
        ...defined({ after }),
      });
      for (const { id, body, version } of page)
        known.set(id, { runner: JSON.parse(body) as StoredRunner, version });
      after = page.at(-1)?.id;
      if (page.length < PAGE) break;
    }
    this.#known = known;
    this.#readAt = this.#host.clock.monotonic();
  }

  async #read(runnerId: string): Promise<Known | undefined> {
    const document = await this.#host.storage.reader.document(COLLECTION, runnerId);
    if (document === undefined) {
      this.#known.delete(runnerId);
      return undefined;
    }
    const known = { runner: JSON.parse(document.body) as StoredRunner, version: document.version };
    this.#known.set(runnerId, known);
    return known;
  }
}

function textOf({
  agents,
  taskKinds,
  superseded,
}: Pick<StoredRunner, "agents" | "taskKinds" | "superseded">): string {
  const offered = agents.map(({ name, version }) => [name, version]);
  return JSON.stringify([offered, taskKinds, superseded === true]);
}

/** The agents of a poll, which announces no schemas, with those that were announced before. */
function withSchemas(
  offered: readonly OfferedAgent[],
  announced: readonly OfferedAgent[],
): readonly OfferedAgent[] {
  return offered.map(
    (agent) =>
      announced.find(({ name, version }) => name === agent.name && version === agent.version) ?? agent,
  );
}

interface Silence {
  readonly seenAt: number;
  readonly since: number;
}

interface Known {
  readonly runner: StoredRunner;
  readonly version: number;
}

export function nameOf({ name, hostname }: Pick<StoredRunner, "name" | "hostname">): string {
  return name ?? hostname;
}

const FITNESS = new WeakMap<StoredRunner, Fitness>();

/** The fitness of a runner, with the three labels that every runner has. It is made once: each poll asks. */
export function fitnessOf(runner: StoredRunner): Fitness {
  let fitness = FITNESS.get(runner);
  if (fitness === undefined) FITNESS.set(runner, (fitness = makeFitness(runner)));
  return fitness;
}

function makeFitness(runner: StoredRunner): Fitness {
  const { hostname, labels, owner, agents, taskKinds, behaviourFlags } = runner;
  const runnerId = runner.trialsOf ?? runner.runnerId; // A session that demands a runner is tried beside it.
  const offered = new Map<string, Set<string>>();
  for (const { name, version } of agents) {
    const versions = offered.get(name);
    if (version === undefined || versions?.size === 0) offered.set(name, new Set());
    else offered.set(name, new Set([...(versions ?? []), version]));
  }
  for (const kind of taskKinds) offered.set(queuedTaskAgent(kind), new Set());
  return {
    labels: { machine: hostname, ...labels, hostname, runner: runnerId },
    agents: offered,
    ...defined({ owner, behaviourFlags }),
  };
}
