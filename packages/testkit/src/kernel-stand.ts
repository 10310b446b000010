// A kernel on a test stand: one agent, one kernel, no runtime, no storage, no time.
//
// The stand opens and closes slices as the runtime does, between two immediates queued together, and keeps
// what is sealed. Everything delivered is decided by the test. The journal it keeps has gone through the
// codec, so that what is replayed is what a storage would give back.

import { setImmediate } from "node:timers";
import {
  AgentContext,
  answerSignalName,
  decodeJson,
  decodeRecords,
  defined,
  encodeJson,
  encodeRecords,
  Kernel,
  type KernelOptions,
  LIMITS,
  NO_RELATIONS,
  recordError,
  SessionState,
  type CancelNotice,
  type EventRecord,
  type Hash,
  type JournalRecord,
  type JsonText,
  type Limits,
  type Relations,
  type RemainingBudget,
  type RetryPolicy,
  type SealedSegment,
  type StateDefinition,
  type Standstill,
  type StoredSignal,
} from "@holdfast/core";

export type StandAgent = (ctx: AgentContext, input: unknown) => Promise<unknown>;

export interface StandOptions {
  readonly sessionId?: string;
  readonly input?: unknown;
  readonly seed?: number;
  /** The journal from the beginning of this kernel's life; what stands before it is `baseSeq`. */
  readonly recorded?: readonly JournalRecord[];
  readonly baseSeq?: number;
  readonly baseId?: number;
  readonly signals?: KernelOptions["signals"];
  readonly state?: unknown;
  readonly turn?: number;
  readonly entryCount?: number;
  readonly leaf?: number;
  readonly cancel?: CancelNotice;
  readonly limits?: Partial<Limits>;
  readonly acceptDrift?: boolean;
  readonly development?: boolean;
  /** Another hash than the stand's own, for journals recorded elsewhere. */
  readonly hash?: Hash;
  /** Task kinds that are known besides closures, with their traits. */
  readonly define?: StateDefinition;
  readonly relations?: Partial<Relations>;
  /** Agents that may be asked for. */
  readonly agents?: readonly string[];
  /** Kinds of tasks that answer children's requests, by the request's name. */
  readonly handlers?: { readonly [request: string]: string };
  readonly remaining?: RemainingBudget;
  readonly kinds?: { readonly [kind: string]: KindTraits };
}

interface KindTraits {
  readonly retry?: RetryPolicy;
  readonly timeoutMs?: number;
  readonly guardRepeats?: boolean;
}

type Draft<R> = R extends unknown ? Omit<R, "seq" | "id"> : never;

const DEFAULT_KINDS: NonNullable<StandOptions["kinds"]> = { work: {}, other: {}, test: {}, edit: {} };

export class KernelStand {
  readonly kernel: Kernel;
  readonly ctx: AgentContext;
  /** The given records, then those of each sealed segment. */
  readonly journal: JournalRecord[];
  readonly segments: SealedSegment[] = [];
  /** How often the kernel reported a fault outside a slice. */
  strayFaults = 0;
  /** Epoch milliseconds of the next delivery. */
  time = 1_000;
  readonly #agent: StandAgent;
  #order = 0;
  #signalCount = 0;

  constructor(agent: StandAgent, options: StandOptions = {}) {
    const {
      sessionId = "ses_test",
      baseSeq = 0,
      baseId = 0,
      recorded = [],
      signals = [],
      kinds = DEFAULT_KINDS,
    } = options;
    const stateText: JsonText | undefined = encodeJson(options.state, "state");
    this.#agent = agent;
    this.journal = throughCodec(recorded);
    const known = "all" in signals ? signals.all() : signals;
    this.#order = known.reduce((last, { order }) => Math.max(last, order), 0);
    this.kernel = new Kernel({
      sessionId,
      baseSeq,
      baseId,
      recorded: this.journal.slice(),
      signals,
      seed: options.seed ?? 42,
      turn: options.turn ?? (stateText === undefined ? 0 : 1),
      entryCount: options.entryCount ?? 0,
      leaf: options.leaf,
      cancel: options.cancel,
      state: new SessionState(
        options.define,
        stateText === undefined ? undefined : { value: decodeJson(stateText), text: stateText },
      ),
      relations: { ...NO_RELATIONS, ...options.relations },
      repeats: [],
      describeAgent: (name) => (options.agents?.includes(name) === true ? { name, version: "1" } : undefined),
      agentNames: () => options.agents ?? [],
      handlerOf: (request) => options.handlers?.[request],
      remaining: () => options.remaining,
      hash: options.hash ?? testHash,
      limits: { ...LIMITS, ...options.limits },
      describeTask: (kind) => kinds[kind],
      bindClosure: (_, closure) => closure,
      taskKinds: () => Object.keys(kinds),
      development: options.development ?? true,
      acceptDrift: options.acceptDrift ?? false,
      onStrayFault: () => void this.strayFaults++,
    });
    this.ctx = new AgentContext(this.kernel, {
      agentName: "test",
      input: decodeJson(encodeJson(options.input, "input")),
    });
  }

  /** Deliver one outcome in a slice of its own, and say where the agent stands. */
  slice(event: Draft<EventRecord> | EventRecord): Promise<Standstill> {
    const { promise, resolve, reject } = Promise.withResolvers<Standstill>();
    const guarded = (step: () => void) => () => {
      try {
        step();
      } catch (error) {
        reject(error);
      }
    };
    setImmediate(
      guarded(() => {
        this.kernel.openSlice();
        this.kernel.deliver(event, async () => this.#agent(this.ctx, this.ctx.input));
      }),
    );
    setImmediate(guarded(() => resolve(this.kernel.closeSlice())));
    return promise;
  }

  start(): Promise<Standstill> {
    return this.slice({ type: "started", at: this.time });
  }

  completeTask(task: number, output?: unknown, attempt = 1): Promise<Standstill> {
    return this.slice({
      type: "task_completed",
      task,
      attempt,
      at: ++this.time,
      payload: encodeJson(output, "output"),
    });
  }

  failTask(task: number, error: unknown = new Error("it failed"), attempt = 1): Promise<Standstill> {
    return this.slice({
      type: "task_failed",
      task,
      attempt,
      at: ++this.time,
      payload: JSON.stringify(recordError(error)),
    });
  }

  fireTimer(timer: number): Promise<Standstill> {
    return this.slice({ type: "timer_fired", timer, at: ++this.time });
  }

  timeOut(wait: number): Promise<Standstill> {
    return this.slice({ type: "wait_timed_out", wait, at: ++this.time });
  }

  cancel(reason?: string, deadlineAt = this.time + 10_000): Promise<Standstill> {
    return this.slice({
      type: "cancel_requested",
      at: ++this.time,
      deadlineAt,
      ...defined({ reason }),
    });
  }

  /** A signal arrives. It is delivered by `deliverOwn`, if a wait wants it. */
  send(name: string, payload?: unknown): StoredSignal {
    const signal: StoredSignal = {
      signalId: `sig_${++this.#signalCount}`,
      name,
      payload: encodeJson(payload, "payload"),
      order: ++this.#order,
      sentAt: this.time,
    };
    this.kernel.offer(signal);
    return signal;
  }

  answer(question: number, payload: unknown): StoredSignal {
    return this.send(answerSignalName(question), payload);
  }

  /** Delivers the next event of the kernel's own state: a pending signal for an open wait, a wait to be cancelled. */
  deliverOwn(): Promise<Standstill | undefined> {
    const event = this.kernel.nextOwn(++this.time);
    return event === undefined ? Promise.resolve(undefined) : this.slice(event);
  }

  /** Delivers all events of the kernel's own state, one after the other. */
  async deliverAllOwn(): Promise<Standstill | undefined> {
    let last: Standstill | undefined;
    while (this.kernel.fault === undefined && !this.kernel.turn.closed) {
      const standstill = await this.deliverOwn();
      if (standstill === undefined) return last;
      last = standstill;
    }
    return last;
  }

  /** Deliver the timer or wait that is due at `time`, moving there. */
  deliverDue(time: number): Promise<Standstill | undefined> {
    this.time = time;
    const event = this.kernel.nextDue(time);
    return event === undefined ? Promise.resolve(undefined) : this.slice(event);
  }

  /** Deliver everything recorded. Answers where it stands, or that it faulted. */
  async replay(): Promise<Standstill | undefined> {
    let last: Standstill | undefined;
    for (;;) {
      const event = this.kernel.nextRecorded();
      const fault = this.kernel.fault;
      if (fault !== undefined) return { type: "faulted", fault };
      if (event === undefined) return last;
      last = await this.slice(event);
      this.time = Math.max(this.time, event.at);
      if (last.type === "faulted" || this.kernel.turn.closed) return last;
    }
  }

  /** Commit: take the segment out and add it to the journal. */
  seal(): SealedSegment {
    const segment = this.kernel.seal();
    this.segments.push(segment);
    this.journal.push(...throughCodec(segment.records));
    return segment;
  }

  /** Records of one type, in order. */
  recorded<T extends JournalRecord["type"]>(type: T): Extract<JournalRecord, { type: T }>[] {
    return this.journal.filter(
      (record): record is Extract<JournalRecord, { type: T }> => record.type === type,
    );
  }
}

/** The records as a storage would return them. */
export function throughCodec(records: readonly JournalRecord[]): JournalRecord[] {
  if (records.length === 0) return [];
  const blobs = new Map<string, string>();
  const body = encodeRecords(records, {
    put(text) {
      blobs.set(testHash(text), text);
      return testHash(text);
    },
  });
  return decodeRecords(body, { get: (address) => blobs.get(address) ?? "" }, "test journal");
}

/** FNV-1a: the kernel takes any pure hash. */
export function testHash(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}
