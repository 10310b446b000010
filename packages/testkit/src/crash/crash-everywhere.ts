// Run an agent once, then once for every commit and every task boundary with a fault there, and compare (H9).
//
//   - Points are counted in an undisturbed run: each `commit` of the storage, each start and each end of an
//     attempt.
//   - A run with a fault continues until the session and all sessions that it started have ended. After a
//     death a new runtime continues it over the same storage. Outcomes, entries and the scenario's effects
//     must be those of the undisturbed run.
//   - A task whose outcome storage has acknowledged is never started again (H7).
//   - The death of a process is played in this one: its storage answers nothing more, its tasks are aborted,
//     and nothing of it is awaited. A handler that ignores its abort signal lives on, as no real one would.
//   - When all sessions have ended, no account has reservations, and no limit was exceeded (B1).
//   - A sample takes every n-th point, from a given one on: samples of all n beginnings together are all
//     points.
// Real kills of processes are a different test; this one reaches every point, in milliseconds for each.

import { PassThrough } from "node:stream";
import { clearTimeout, setTimeout } from "node:timers";
import { isDeepStrictEqual } from "node:util";
import {
  type AgentStorage,
  type AttemptOutcome,
  type Change,
  type ChangeResult,
  type ClaimResult,
  type CommitBatch,
  defined,
  isEnded,
  type Persistence,
  type RunningAttempt,
  type Session,
  type SignalSource,
  storageWith,
  type TaskAttempt,
  type TaskExecutor,
  toError,
  UsageError,
} from "@holdfast/core";
import {
  type Agent,
  channelSignals,
  createRuntime,
  LocalTaskExecutor,
  MemoryStorage,
  requestsOver,
  type Runtime,
  type Settled,
  type StartOptions,
  stdinSignals,
  systemClock,
  type TaskDefinition,
} from "@holdfast/runtime";
import { vanishRuntime } from "@holdfast/runtime/internal";
import { faultyStorage, type FaultKind, type FaultyStorage } from "../faulty-storage.ts";
import type { CrashFailure, CrashKind, CrashPoint, CrashReport } from "./crash-report.ts";

/** The storage scenarios run on. */
export interface CrashSubject {
  readonly name: string;
  open(): Promise<AgentStorage>;
  /** Opens the storage of a dead process. Without it the same storage is used again, with its claims released. */
  reopen?(storage: AgentStorage): Promise<AgentStorage>;
  /** Damage the tail of what was written last, as a power cut would. */
  tear?(storage: AgentStorage): Promise<void>;
}

/** The storage in memory, for `crashEverywhere`. */
export const memorySubject: CrashSubject = { name: "memory", open: async () => new MemoryStorage() };

/** A run, as seen by the code that plays the outside world. */
export interface CrashWorld {
  /** The runtime of this life of the process. */
  readonly runtime: Runtime;
  readonly sessionId: string;
  readonly storage: Pick<AgentStorage, "reader">;
  /**
   * Resolves once the row of the session, or of the session with this id, satisfies this. `world` need not
   * give up, because a dead process drops it.
   */
  until(holds: (session: Awaited<ReturnType<SessionRow>>) => boolean, sessionId?: string): Promise<void>;
}

type SessionRow = AgentStorage["reader"]["session"];

/** An agent for `crashEverywhere`, with its input and the world around it. */
export interface CrashScenario<Input = unknown, Output = unknown, Given = Input> {
  readonly name: string;
  readonly agent: Agent<Input, Output, Given>;
  /** The input of the session. */
  readonly input?: NoInfer<Given>;
  readonly options?: Pick<StartOptions, "budget" | "persistence" | "timeoutMs">;
  /**
   * Its world reads the journal and signals sessions of its own making: only over storage that has one, and
   * not over a source.
   */
  readonly isDirect?: boolean;
  /** Sessions it asks for may be lost with their process and be asked for again: which there were is not compared. */
  readonly loses?: boolean;
  /** It parks on the way, and its world mends that: only an end is the end. */
  readonly parks?: boolean;
  /** Signals, answers, cancels: played in every life of the process, so it must be safe to repeat (dedup keys). */
  readonly world?: (world: CrashWorld) => Promise<void>;
  /** Other results that must be equal: files, rows, mails. Read after the session has ended. */
  readonly effects?: () => unknown;
  /** Puts the outside world back before each run. */
  readonly reset?: () => void | Promise<void>;
}

/** Every n-th point alone, where a run takes long. */
export interface CrashSample {
  /** 1 takes all points. */
  readonly every: number;
  /** The number of the first point; scenarios that begin at different ones meet different kinds. 0 by default. */
  readonly from?: number;
}

const COMMIT_FAULTS: readonly FaultKind[] = ["before", "crash_before", "crash_after", "reply_lost", "torn"];
const SESSION_ID = "crash-scenario";
const RUN_LIMIT_MS = 10_000;
const LIVES_MAX = 5;
const SESSIONS_MAX = 1_000;
/** The draws of one incarnation: far more than a scenario needs, and far less than 2^32 / `LIVES_MAX`. */
const DRAWS_MAX = 2 ** 24;
const PLAY_WORLD =
  "Send the signals and answers that the agent waits for in the scenario's `world`, and keep timers short";

/** Runs an agent undisturbed, then with a fault at each point. Throws if the undisturbed run does not end. */
export async function crashEverywhere<Input, Output, Given = Input>(
  scenario: CrashScenario<Input, Output, Given>,
  subject: CrashSubject = memorySubject,
  { every, from = 0 }: CrashSample = { every: 1 },
): Promise<CrashReport> {
  const undisturbed = await new Run(scenario, subject, undefined).play();
  if (undisturbed.hung) {
    const hung = describeHung(undisturbed.unfinished); // In the message, since reporters of tests show nothing else.
    throw new UsageError(`scenario "${scenario.name}" does not end even undisturbed: ${hung}. ${PLAY_WORLD}`);
  }
  const points = [
    ...COMMIT_FAULTS.flatMap((kind) => numbered(kind, undisturbed.commits)),
    ...numbered("task_start", undisturbed.starts),
    ...numbered("task_end", undisturbed.ends),
  ].filter((_, i) => i % every === from % every);
  const failures: CrashFailure[] = [];
  for (const point of points) {
    const run = await new Run(scenario, subject, point).play();
    if (!isDeepStrictEqual(run.snapshot, undisturbed.snapshot)) {
      failures.push({
        point,
        what: run.hung
          ? `it does not end: ${describeHung(run.unfinished)}`
          : "another outcome than without the fault",
        expected: undisturbed.snapshot,
        got: run.snapshot,
      });
    }
    for (const what of run.violations) failures.push({ point, what, expected: undefined, got: undefined });
  }
  return {
    scenario: scenario.name,
    storage: subject.name,
    commits: undisturbed.commits,
    attempts: undisturbed.starts,
    runs: points.length + 1,
    points,
    outcome: undisturbed.snapshot.outcome,
    failures,
  };
}

/** A text about the waits of a session that does not end. */
function describeHung(session: Session | undefined): string {
  if (session === undefined) return "no session was stored";
  const waits = session.waits.map((wait) => {
    if (wait.type === "timer") return `a timer due ${new Date(wait.at).toISOString()}`;
    return wait.type === "signal" ? `signal "${wait.name}"` : `an answer to "${wait.prompt}"`;
  });
  const why =
    waits.length > 0
      ? `waits for ${waits.join(" and ")}`
      : (session.error?.message ?? "waits for nothing named: a task may hang");
  return `it is ${session.status}, and ${why}`;
}

/** One life of the process, as its world knows it. */
interface Play {
  isOver: boolean;
}

/** The ports a scenario is run over, besides its storage. */
export interface Composition {
  readonly signals: "direct" | "channel" | "stdin";
  readonly persistence?: Persistence;
  /** The queue that does the tasks in place of this process, beside the storage of the run. */
  readonly queue?: (storage: AgentStorage, tasks: readonly TaskDefinition[]) => Promise<TaskQueuePort>;
}

export interface TaskQueuePort {
  readonly executor: TaskExecutor;
  close(): Promise<void>;
}

/** The result of one undisturbed run: its end, and the state that it left. */
export interface Snapshot {
  readonly outcome: unknown;
  readonly entries: unknown;
  /** The sessions it asked for. */
  readonly others: unknown;
  readonly effects: unknown;
}

/** Run a scenario once, undisturbed, over these ports. */
export async function playScenario<Input, Output, Given = Input>(
  scenario: CrashScenario<Input, Output, Given>,
  subject: CrashSubject,
  composition: Composition,
): Promise<Snapshot> {
  return (await new Run(scenario, subject, undefined, composition).play()).snapshot;
}

function numbered(kind: CrashKind, count: number): CrashPoint[] {
  return Array.from({ length: count }, (_, i) => ({ kind, number: i + 1 }));
}

interface Played {
  readonly snapshot: Snapshot;
  readonly hung: boolean;
  /** The session's row when the run was over. */
  readonly unfinished: Session | undefined;
  readonly commits: number;
  readonly starts: number;
  readonly ends: number;
  readonly violations: readonly string[];
}

/** One run from an empty storage to the end of the session, over as many lives of the process as it takes. */
class Run<Input, Output, Given> {
  readonly #scenario: CrashScenario<Input, Output, Given>;
  readonly #subject: CrashSubject;
  readonly #point: CrashPoint | undefined;
  readonly #composition: Composition;
  readonly #channel = channelSignals();
  readonly #stdin = new PassThrough();
  readonly #violations: string[] = [];
  readonly #acknowledged = new Set<string>();
  readonly #claims = new Map<string, number>();
  #commits = 0;
  #starts = 0;
  #ends = 0;

  constructor(
    scenario: CrashScenario<Input, Output, Given>,
    subject: CrashSubject,
    point: CrashPoint | undefined,
    composition: Composition = { signals: "direct" },
  ) {
    this.#composition = composition;
    this.#scenario = scenario;
    this.#subject = subject;
    this.#point = point;
  }

  async play(): Promise<Played> {
    await this.#scenario.reset?.();
    let inner = await this.#subject.open();
    for (let life = 1; ; life++) {
      const storage = this.#faulty(inner, life);
      const queue = await this.#composition.queue?.(inner, tasksOf(this.#scenario.agent as Agent));
      const runtime: Runtime = createRuntime({
        storage,
        ...(queue === undefined ? {} : { queue: queue.executor }),
        tasks: this.#countingExecutor(storage, life),
        owner: `incarnation ${life}`, // Given, so that the runtime's first draw is the seed of the session.
        random: incarnationRandom(life),
        signals: this.#sources(),
        development: false,
        warmMs: Infinity,
      });
      const settled = await this.#live(runtime, storage, life);
      if (settled === "died" && life < LIVES_MAX) {
        vanishRuntime(runtime);
        inner = await this.#afterDeath(inner);
        continue;
      }
      const snapshot = await this.#snapshot(inner, settled);
      const unfinished = await inner.reader.session(SESSION_ID);
      // The point may lie in a commit with which it closes, or in one of the world's that comes late: then it
      // never closes.
      const dies = storage.died.then(() => vanishRuntime(runtime));
      if (settled === "hung" || settled === "died") vanishRuntime(runtime);
      else await Promise.race([runtime.close(), dies]);
      await queue?.close();
      await inner.close();
      return {
        snapshot,
        hung: typeof settled === "string",
        unfinished,
        commits: this.#commits,
        starts: this.#starts,
        ends: this.#ends,
        violations: this.#violations,
      };
    }
  }

  /** One life of the process: until the session has ended, the process has died, or nothing happens any more. */
  async #live(
    runtime: Runtime,
    storage: FaultyStorage,
    life: number,
  ): Promise<Settled<Output> | "died" | "hung"> {
    const { agent, input, options, world, parks } = this.#scenario;
    const play: Play = { isOver: false };
    const outside = this.#world(runtime, storage, play);
    const work = async (): Promise<Settled<Output>> => {
      const { persistence } = this.#composition;
      const handle = await runtime.start<Input, Output, Given | undefined>(agent, input, {
        sessionId: SESSION_ID,
        ...options,
        ...defined({ persistence }),
      });
      if (!handle.created && parks !== true) await runtime.resume(SESSION_ID);
      if (life > 1) await runtime.recover();
      world?.(outside).catch((error: unknown) => {
        // The world of an incarnation that is over may find the storage closed.
        if (!play.isOver) this.#violations.push(`the world threw: ${toError(error).message}`);
      });
      let settled = await handle.settled();
      const isParked = (): boolean =>
        parks === true && (settled.status === "paused" || settled.status === "released");
      while (isParked()) {
        await outside.until((session) => session?.status !== "paused");
        settled = await handle.settled();
      }
      await this.#untilAllEnded(storage, play);
      return settled;
    };
    const { promise: late, resolve: giveUp } = Promise.withResolvers<"hung">();
    const timer = setTimeout(() => giveUp("hung"), RUN_LIMIT_MS);
    try {
      return await Promise.race([work(), storage.died.then(() => "died" as const), late]);
    } finally {
      clearTimeout(timer);
      play.isOver = true;
    }
  }

  #world(runtime: Runtime, storage: FaultyStorage, play: Play): CrashWorld {
    return {
      runtime: this.#signalling(runtime),
      sessionId: SESSION_ID,
      storage,
      until: (holds, sessionId = SESSION_ID) =>
        this.#until(async () => holds(await storage.reader.session(sessionId)), play),
    };
  }

  #sources(): readonly SignalSource[] {
    switch (this.#composition.signals) {
      case "direct":
        return [];
      case "channel":
        return [this.#channel];
      case "stdin":
        return [stdinSignals({ input: this.#stdin, sessionId: SESSION_ID })];
    }
  }

  /** Signals take the way of the composition; everything else is asked of the runtime itself. */
  #signalling(runtime: Runtime): Runtime {
    const { signals } = this.#composition;
    if (signals === "direct") return runtime;
    const send: Runtime["signal"] = async (sessionId, name, payload, { dedupKey } = {}) => {
      const signal = { name, payload, ...defined({ dedupKey }) };
      if (signals === "channel") return this.#channel.send({ sessionId, ...signal });
      this.#stdin.write(`${JSON.stringify(signal)}\n`);
      return { status: "stored" };
    };
    return new Proxy(runtime, {
      get: (target, property) => {
        if (property === "signal") return send;
        const value: unknown = Reflect.get(target, property, target);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
  }

  /** Waits for the ends of the sessions that were started; the session itself may have parked. */
  #untilAllEnded(storage: FaultyStorage, play: Play): Promise<void> {
    return this.#until(async () => {
      const sessions = await storage.reader.sessions({ limit: SESSIONS_MAX });
      return sessions.every((session) => !isOther(session) || isEnded(session.status));
    }, play);
  }

  /** A state that passed before this incarnation is never seen; its `world` is dropped with the incarnation. */
  async #until(isSo: () => Promise<boolean>, play: Play): Promise<void> {
    for (;;) {
      if (play.isOver) return new Promise<never>(() => {});
      if (await isSo()) return;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  /** The storage after the death of a process: its claims are free, its rows unchanged. */
  async #afterDeath(inner: AgentStorage): Promise<AgentStorage> {
    if (this.#subject.reopen !== undefined) {
      this.#claims.clear();
      return this.#subject.reopen(inner);
    }
    const releases: Change[] = [...this.#claims].map(([sessionId, token]) => ({
      type: "release_claim",
      sessionId,
      token,
    }));
    this.#claims.clear();
    await inner.commit(releases, systemClock.now());
    return inner;
  }

  async #snapshot(inner: AgentStorage, settled: Settled<Output> | "died" | "hung"): Promise<Snapshot> {
    const entries = await inner.reader.entries(SESSION_ID, 0, 100_000);
    const sessions = await inner.reader.sessions({ limit: SESSIONS_MAX });
    for (const session of sessions) this.#checkAccount(session);
    return {
      outcome: typeof settled === "string" ? settled : plain(settled),
      entries: entries.map(({ index, role, turn, content }) => ({ index, role, turn, content })),
      others: (this.#scenario.loses === true ? [] : sessions)
        .filter(isOther)
        .map(({ sessionId, status, output, parent }) => ({ sessionId, status, output, parent }))
        .sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1)),
      effects: await this.#scenario.effects?.(),
    };
  }

  #checkAccount({ sessionId, account }: Session): void {
    if (account === undefined) return;
    const { limits, spent, reserved } = account;
    if (reserved.tokens + reserved.costMicroUsd > 0)
      this.#violations.push(`${sessionId} has ended, and holds ${JSON.stringify(reserved)}`);
    if (spent.tokens > (limits.maxTokens ?? Infinity))
      this.#violations.push(`${sessionId} has spent ${spent.tokens} of ${limits.maxTokens} tokens`);
  }

  // ---- faults ------------------------------------------------------------------------------------------------------

  #faulty(inner: AgentStorage, life: number): FaultyStorage {
    const point = life === 1 ? this.#point : undefined;
    const tear = this.#subject.tear;
    return faultyStorage(this.#recording(inner), {
      fault: () => {
        if (life === 1) this.#commits++;
        const { kind, number } = point ?? {};
        return number === this.#commits && kind !== "task_start" && kind !== "task_end" ? kind : undefined;
      },
      ...(tear === undefined ? {} : { tear: () => tear(inner) }),
    });
  }

  /** Notes what storage has acknowledged, and the claims a death would free. */
  #recording(inner: AgentStorage): AgentStorage {
    const granted = (sessionId: string, result: ChangeResult | ClaimResult | undefined): void => {
      if (result !== undefined && "token" in result && result.token !== undefined)
        this.#claims.set(sessionId, result.token);
    };
    return storageWith(inner, {
      commit: async (changes, now) => {
        const results = await inner.commit(changes, now);
        changes.forEach((change, i) => {
          if (change.type === "create_session") granted(change.sessionId, results[i]);
          if (change.type === "commit_batch" && results[i]?.status === "committed") this.#acknowledge(change);
        });
        return results;
      },
      claim: async (claim) => {
        const result = await inner.claim(claim);
        granted(claim.sessionId, result);
        return result;
      },
    });
  }

  #acknowledge({ sessionId, records }: CommitBatch): void {
    for (const record of records) {
      if (
        record.type === "task_completed" ||
        record.type === "task_failed" ||
        record.type === "outcome_kept"
      ) {
        this.#acknowledged.add(`${sessionId}-${record.task}`);
      }
    }
  }

  #countingExecutor(storage: FaultyStorage, life: number): TaskExecutor {
    const local = new LocalTaskExecutor({
      tasks: this.#composition.queue === undefined ? tasksOf(this.#scenario.agent as Agent) : [],
      clock: systemClock,
      signal: (...asked) => requestsOver(storage).taskSignal(...asked),
    });
    const dies = (kind: CrashKind, number: number): boolean =>
      life === 1 && this.#point?.kind === kind && this.#point.number === number;
    return {
      describe: (kind) => local.describe(kind),
      kinds: () => local.kinds(),
      close: () => local.close(),
      start: (attempt: TaskAttempt, onEnd: (outcome: AttemptOutcome) => void): RunningAttempt => {
        if (storage.isDead) return { abort() {} };
        // Torn acknowledgements were never given: only a commit answered to a living process counts.
        if (this.#acknowledged.has(attempt.taskId) && this.#point?.kind !== "torn") {
          this.#violations.push(
            `task ${attempt.taskId} was started again after its outcome was acknowledged`,
          );
        }
        if (life === 1) this.#starts++;
        if (dies("task_start", this.#starts)) {
          storage.kill();
          return { abort() {} };
        }
        return local.start(attempt, (outcome) => {
          if (storage.isDead) return;
          if (life === 1) this.#ends++;
          if (dies("task_end", this.#ends)) storage.kill();
          else onEnd(outcome);
        });
      },
    };
  }
}

/** A session that another one started. Queued tasks do not count, because they only do tasks and are soon removed. */
function isOther({ sessionId, agent }: Session): boolean {
  return sessionId !== SESSION_ID && !agent.name.startsWith("task:");
}

/** Its own, and those of the agents it asks for. */
function tasksOf(agent: Agent, seen = new Set<Agent>()): readonly TaskDefinition[] {
  if (seen.has(agent)) return [];
  seen.add(agent);
  return [...agent.tasks, ...agent.agents.flatMap((child) => tasksOf(child, seen))];
}

/**
 * The first draw is the seed of the scenario's session. It is equal in every run and incarnation, so that a
 * lost creation is repeated with the same seed. Later draws become ids, which no two incarnations share.
 * Storage takes a second signal of an id for a repeat of the first, and drops it.
 */
function incarnationRandom(incarnation: number): { u32(): number } {
  let draws = 0;
  return { u32: () => (draws++ === 0 ? 1 : incarnation * DRAWS_MAX + draws) };
}

function plain(settled: Settled): unknown {
  if (settled.status === "paused") return { status: "paused", fault: settled.fault.message };
  return settled.status === "released" ? { status: "released", error: settled.error?.message } : settled;
}
