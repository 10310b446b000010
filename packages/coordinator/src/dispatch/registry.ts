// Who the runners are: a document each, so that every coordinator of a storage knows them, and knows them again after its end.
//
//   Y1. When a runner was last heard of is written at most every `SEEN_EVERY_MS`, by whichever coordinator it polls.
//   Y2. One of which nothing new was written for `SILENT_MS`, as this coordinator saw it, is removed: so no clock that is set removes
//       anybody. What it held runs out by its lease long before.
//   Y3. What is known of the others is at most `KNOWN_MS` old.
//
// It knows no polls and no sessions.

import { HoldfastError, type AgentStorage, type Audit, type Change, type Clock } from "@holdfast/core";
import type { Fitness } from "./rules.ts";

/** A runner as it is stored. Times in epoch milliseconds. */
export interface StoredRunner {
  readonly runnerId: string;
  /** What its token is called. */
  readonly tokenId: string;
  /** Whose sessions alone it takes. */
  readonly owner?: string;
  readonly hostname: string;
  readonly project: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly agents: readonly OfferedAgent[];
  readonly taskKinds: readonly string[];
  readonly maxRuns: number;
  readonly registeredAt: number;
  readonly seenAt: number;
  /** Which process is this runner now: the hash of what that one calls itself, and since when. */
  readonly process?: string;
  readonly processSince?: number;
  /** It is given nothing new. */
  readonly draining?: boolean;
}

export interface OfferedAgent {
  readonly name: string;
  readonly version?: string;
}

export interface RegistryHost {
  readonly storage: AgentStorage;
  readonly clock: Clock;
}

const COLLECTION = "runner";
const PAGE = 500;
const SEEN_EVERY_MS = 60_000;
const SILENT_MS = 10 * 60_000;
const KNOWN_MS = 5_000;
/** It is told as silent long before it is removed: it polls twice a minute at least. */
export const QUIET_MS = 90_000;

export class Registry {
  readonly #host: RegistryHost;
  #known = new Map<string, Known>();
  /** Y2. What was written of each when it was last looked at, and since when, by a clock that does not jump. */
  #silence = new Map<string, Silence>();
  #readAt = -Infinity;
  #reading: Promise<void> | undefined;

  constructor(host: RegistryHost) {
    this.#host = host;
  }

  /** All that are registered. */
  async all(): Promise<readonly StoredRunner[]> {
    await this.#refresh();
    return [...this.#known.values()].map(({ runner }) => runner);
  }

  async find(runnerId: string): Promise<StoredRunner | undefined> {
    const known = this.#known.get(runnerId) ?? (await this.#read(runnerId));
    return known?.runner;
  }

  /** As it is stored now, whatever is known of it here. */
  async findAnew(runnerId: string): Promise<StoredRunner | undefined> {
    return (await this.#read(runnerId))?.runner;
  }

  /** Whether somebody who claims is a runner, as far as is known: others claim, too. */
  knows(owner: string): boolean {
    return this.#known.has(owner);
  }

  /** Store what a change makes of a runner; `undefined` in and out stands for none. Tried again when somebody else changed it. */
  async change(
    runnerId: string,
    audit: Audit | undefined,
    make: (runner: StoredRunner | undefined) => StoredRunner | undefined,
  ): Promise<StoredRunner | undefined> {
    for (;;) {
      const known = await this.#read(runnerId);
      const made = make(known?.runner);
      if (made === undefined && known === undefined) return undefined;
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
      if (made === undefined) this.#known.delete(runnerId);
      else this.#known.set(runnerId, { runner: made, version: result.version ?? 0 });
      return made;
    }
  }

  /** Y1. It polls, and offers this now. Nobody waits for it to be written. */
  seen(runner: StoredRunner, offers: Pick<StoredRunner, "agents" | "taskKinds">): StoredRunner {
    const now = this.#host.clock.now();
    const isNews =
      JSON.stringify([runner.agents, runner.taskKinds]) !== JSON.stringify([offers.agents, offers.taskKinds]);
    if (!isNews && now - runner.seenAt < SEEN_EVERY_MS) return runner;
    const seen = { ...runner, ...offers, seenAt: now };
    const known = this.#known.get(runner.runnerId);
    if (known !== undefined) this.#known.set(runner.runnerId, { ...known, runner: seen });
    this.change(
      runner.runnerId,
      undefined,
      (stored) => stored && { ...stored, ...offers, seenAt: now },
    ).catch(() => {});
    return seen;
  }

  /** Y2. Remove who was silent for too long. @returns their ids. */
  async sweep(): Promise<readonly string[]> {
    const now = this.#host.clock.monotonic();
    const [before, silence] = [this.#silence, new Map<string, Silence>()];
    const removed: string[] = [];
    for (const { runnerId, seenAt } of await this.all()) {
      const known = before.get(runnerId);
      const since = known?.seenAt === seenAt ? known.since : now;
      silence.set(runnerId, { seenAt, since });
      if (now - since < SILENT_MS) continue;
      const audit: Audit = { actor: "coordinator", action: "runner.remove", object: `runner:${runnerId}` };
      const left = await this.change(runnerId, audit, (runner) =>
        runner?.seenAt === seenAt ? undefined : runner,
      );
      if (left === undefined) removed.push(runnerId);
    }
    this.#silence = silence;
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
        ...(after === undefined ? {} : { after }),
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

interface Silence {
  readonly seenAt: number;
  readonly since: number;
}

interface Known {
  readonly runner: StoredRunner;
  readonly version: number;
}

/** What sessions can ask of a runner: three labels it has whatever it says. */
export function fitnessOf(runner: StoredRunner): Fitness {
  const { runnerId, hostname, labels, owner, agents, taskKinds } = runner;
  const offered = new Map<string, Set<string>>();
  for (const { name, version } of agents) {
    const versions = offered.get(name);
    if (version === undefined || versions?.size === 0) offered.set(name, new Set());
    else offered.set(name, new Set([...(versions ?? []), version]));
  }
  for (const kind of taskKinds) offered.set(taskAgent(kind), new Set());
  return {
    labels: { machine: hostname, ...labels, hostname, runner: runnerId },
    agents: offered,
    ...(owner === undefined ? {} : { owner }),
  };
}

/** The built-in agent whose sessions are queued tasks of a kind. */
export function taskAgent(kind: string): string {
  return `task:${kind}`;
}
