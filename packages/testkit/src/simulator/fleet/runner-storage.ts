// The storage port as a runner has it: requests to a coordinator over the network, and the claims its polls were given.
//
//   R1. A claim is only ever one that a poll was given: it is announced as an arrival, and the claim, the row and the load that
//       follow are answered from what came along.
//       One that was under way for longer than a claim is kept for is not taken: its lease may be another's by now. One that is given
//       while an older claim of its session is still driven here ends that: who asks what arrived for it is told so.
//   R2. What time it is is what a coordinator said last, and how long that is ago: never later than by storage's clock, however far
//       this machine's is from it. So what is planned here is due there at that time.
//   R3. A poll that was not answered is asked again under its id, here or at another coordinator. One that waits with fewer slots than
//       there are by now makes way for another; what it is answered all the same is not taken, and so given back.

import type { PollAnswer, PollRequest } from "@holdfast/coordinator/dispatch";
import {
  ConflictError,
  type AgentStorage,
  type Arrival,
  type Arrivals,
  type Change,
  type ChangeResult,
  type ClaimResult,
  type SessionSnapshot,
  type StorageReader,
} from "@holdfast/core";
import type { Dice } from "../dice.ts";
import type { EventLog } from "../event-log.ts";
import type { ProcessLife } from "../process-life.ts";
import type { Calls, Server } from "./calls.ts";
import type { Coordinator } from "./coordinator-node.ts";

/** A connection that is cut without a word is noticed after so long. */
const TIMEOUT_MS = 15_000;
/** Then it was given back (`ACK_MS` of dispatch), and what a runtime takes its lease to be is longer than it is. */
const TAKEN_MS_MAX = 2_000;
const POLL_WAIT_MS = 30_000;
/** What was heard longer ago is worth less than what is heard now, as clocks go at different rates. */
const HEARD_MS_MAX = 10_000;
const BACK_OFF_MS = [100, 500, 2_000, 5_000] as const;

export interface RunnerStorageHost {
  readonly runnerId: string;
  readonly life: ProcessLife;
  readonly calls: Calls;
  readonly coordinators: readonly [Server<Coordinator>, ...Server<Coordinator>[]];
  readonly dice: Dice;
  readonly log: EventLog;
  readonly agents: readonly string[];
  readonly maxRuns: number;
  /** Sessions that are driven here. */
  live(): number;
}

interface Given {
  /** When it was given, by the coordinator's clock. */
  readonly at: number;
  readonly token: number;
  readonly snapshot: SessionSnapshot;
}

/** An answer, and what time it was where it was given. */
interface Timed<T> {
  readonly value: T;
  readonly now: number;
}

export class RunnerStorage implements AgentStorage {
  readonly name = "remote";
  readonly durable = true;
  readonly reader: StorageReader;
  readonly #host: RunnerStorageHost;
  readonly #listeners = new Set<(arrival: Arrival) => void>();
  /** Claims that nobody here has taken yet. */
  readonly #given = new Map<string, Given>();
  /** Of claims that were taken and not loaded. */
  readonly #snapshots = new Map<string, SessionSnapshot>();
  /** What time it was, as last heard. */
  #heard: { readonly time: number; readonly monotonic: number } | undefined;
  #coordinator = 0;
  #polls = 0;
  /** The poll that is wanted, and what ends the wait for it (R3). */
  #request: PollRequest | undefined;
  #freed = Promise.withResolvers<undefined>();
  #isPolling = true;

  constructor(host: RunnerStorageHost) {
    this.#host = host;
    const read = <T>(what: string, ask: (reader: StorageReader) => Promise<T>): Promise<T> =>
      this.#call(what, ({ storage }) => ask(storage.reader));
    this.reader = {
      session: async (sessionId) =>
        this.#given.get(sessionId)?.snapshot.session ??
        read(`row ${sessionId}`, (reader) => reader.session(sessionId)),
      sessions: (query) => read("list sessions", (reader) => reader.sessions(query)),
      journal: (sessionId, fromSeq, limit) =>
        read(`journal ${sessionId}`, (reader) => reader.journal(sessionId, fromSeq, limit)),
      entries: (sessionId, from, limit) =>
        read(`entries ${sessionId}`, (reader) => reader.entries(sessionId, from, limit)),
      pendingSignals: (sessionId) =>
        read(`signals ${sessionId}`, (reader) => reader.pendingSignals(sessionId)),
      schedules: async () => [],
      document: async () => undefined,
      documents: async () => [],
      audit: async () => [],
    };
  }

  /** R2. */
  now(): number {
    const { clock } = this.#host.life;
    if (this.#heard === undefined) return clock.now();
    return this.#heard.time + Math.floor(clock.monotonic() - this.#heard.monotonic);
  }

  /** Register, and poll from then on, until the end. */
  async run(): Promise<void> {
    const { runnerId, agents, maxRuns } = this.#host;
    const runner = {
      runnerId,
      tokenId: runnerId,
      hostname: runnerId,
      project: "",
      labels: {},
      agents: agents.map((name) => ({ name })),
      taskKinds: [],
      maxRuns,
      registeredAt: 0,
      seenAt: 0,
    };
    await this.#insist(() => this.#call("register", (coordinator) => coordinator.register(runner)));
    let ackPollId: string | undefined;
    while (this.#isPolling) {
      const request = this.#nextPoll(ackPollId);
      this.#freed = Promise.withResolvers<undefined>();
      this.#request = request;
      const answer = await Promise.race([
        this.#insist(() => this.#poll(request), request),
        this.#freed.promise,
      ]);
      if (answer === undefined) continue;
      ackPollId = answer.value.pollId;
      this.#take(answer.value, answer.now);
    }
  }

  /** Take nothing more. */
  stopPolling(): void {
    this.#isPolling = false;
  }

  /** It goes, and holds nothing any more. */
  async deregister(): Promise<void> {
    await this.#call("deregister", (coordinator) => coordinator.deregister(this.#host.runnerId));
  }

  async commit(changes: readonly Change[]): Promise<readonly ChangeResult[]> {
    const results = await this.#call("commit", (coordinator) =>
      coordinator.commit(this.#host.runnerId, changes),
    );
    this.#host.life.after(0, () => {
      if (this.#free > (this.#request?.free ?? 0)) this.#freed.resolve(undefined);
    });
    return results;
  }

  async claim({ sessionId }: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    const given = this.#given.get(sessionId);
    this.#given.delete(sessionId);
    if (given === undefined || this.now() > given.at + TAKEN_MS_MAX)
      return { status: "busy", owner: "another" };
    this.#snapshots.set(sessionId, given.snapshot);
    return { status: "claimed", token: given.token, losses: 0 };
  }

  renew({ sessionIds = [] }: Parameters<AgentStorage["renew"]>[0]): Promise<{ readonly sessions: number }> {
    const { runnerId } = this.#host;
    return this.#call("renew", (coordinator) =>
      coordinator.renew(runnerId, [...sessionIds, ...this.#given.keys()]),
    );
  }

  async load(sessionId: string): Promise<SessionSnapshot | undefined> {
    const snapshot = this.#snapshots.get(sessionId);
    this.#snapshots.delete(sessionId);
    return snapshot ?? this.#call(`load ${sessionId}`, ({ storage }) => storage.load(sessionId));
  }

  async arrivals(sessionId: string, after: number): Promise<Arrivals> {
    if (this.#given.has(sessionId)) {
      this.#host.life.after(0, () => this.#tell({ sessionId, awaited: true }));
      throw new ConflictError("session_claimed", `session ${sessionId} was claimed anew for this runner`);
    }
    return this.#call(`arrivals ${sessionId}`, ({ storage }) => storage.arrivals(sessionId, after));
  }

  conversation: AgentStorage["conversation"] = (sessionId, leaf) =>
    this.#insistent(() =>
      this.#call(`conversation ${sessionId}`, ({ storage }) => storage.conversation(sessionId, leaf)),
    );

  /** Nothing that is not given is to be done here (R1). */
  async due(): ReturnType<AgentStorage["due"]> {
    return { sessionIds: [], schedules: [] };
  }

  subscribe(listener: (arrival: Arrival) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
  }

  // ---- polls -------------------------------------------------------------------------------------------------------

  #nextPoll(ackPollId: string | undefined): PollRequest {
    const { runnerId, life, agents } = this.#host;
    return {
      runnerId,
      pollId: `${life.name}-${++this.#polls}`,
      ...(ackPollId === undefined ? {} : { ackPollId }),
      ackCommandIds: [],
      free: this.#free,
      agents: agents.map((name) => ({ name })),
      taskKinds: [],
      waitMs: POLL_WAIT_MS,
    };
  }

  get #free(): number {
    const { maxRuns, live } = this.#host;
    return Math.max(0, maxRuns - live() - this.#given.size);
  }

  #poll(request: PollRequest): Promise<Timed<PollAnswer>> {
    return this.#callTimed("poll", (coordinator) => coordinator.poll(request), POLL_WAIT_MS + TIMEOUT_MS);
  }

  /** R1. */
  #take({ claims, arrivals }: PollAnswer, at: number): void {
    for (const { sessionId, token, snapshot } of claims) {
      this.#given.set(sessionId, { at, token, snapshot: JSON.parse(snapshot) as SessionSnapshot });
      this.#tell({ sessionId, awaited: true });
    }
    for (const arrival of arrivals) this.#tell(arrival);
  }

  #tell(arrival: Arrival): void {
    for (const listener of this.#listeners) listener(arrival);
  }

  /** Again and again, while it is wanted (R3). */
  async #insist<T>(ask: () => Promise<T>, request = this.#request): Promise<T | undefined> {
    const { life, dice } = this.#host;
    for (let failures = 0; this.#isPolling && this.#request === request; failures++) {
      try {
        return await ask();
      } catch {
        const most = BACK_OFF_MS[Math.min(failures, BACK_OFF_MS.length - 1)]!;
        await life.sleep(dice.between(most / 2, most));
      }
    }
    return undefined;
  }

  /** As leaky as a connection may be: an attempt that cannot read its conversation has failed, and uses up one of its task's three. */
  async #insistent<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask();
      } catch {
        await this.#host.life.sleep(BACK_OFF_MS[0]);
      }
    }
  }

  // ---- requests ----------------------------------------------------------------------------------------------------

  async #call<T>(what: string, ask: (coordinator: Coordinator) => Promise<T>): Promise<T> {
    return (await this.#callTimed(what, ask)).value;
  }

  /** Of the coordinator that answered last; after no answer, of the next. */
  async #callTimed<T>(
    what: string,
    ask: (coordinator: Coordinator) => Promise<T>,
    timeoutMs = TIMEOUT_MS,
  ): Promise<Timed<T>> {
    const { calls, coordinators, life, runnerId, log } = this.#host;
    const index = this.#coordinator;
    log.add(life.name, what);
    try {
      const answer = await calls.call({
        from: runnerId,
        life,
        to: coordinators[index % coordinators.length] ?? coordinators[0],
        what,
        timeoutMs,
        ask: async (coordinator: Coordinator) => ({ value: await ask(coordinator), now: coordinator.now() }),
      });
      this.#noteTime(answer.now);
      return answer;
    } catch (error) {
      if (index === this.#coordinator) this.#coordinator++;
      throw error;
    }
  }

  /** R2. */
  #noteTime(time: number): void {
    const monotonic = this.#host.life.clock.monotonic();
    const isOld = this.#heard === undefined || monotonic - this.#heard.monotonic > HEARD_MS_MAX;
    if (isOld || time > this.now()) this.#heard = { time, monotonic };
  }
}
