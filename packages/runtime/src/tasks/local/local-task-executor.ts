// `LocalTaskExecutor`: runs tasks in this process, by their defined handlers or by the closures of `ctx.run`.
//
//   - Handlers see values decoded from recorded text, also in the process that made them (json-1).
//   - At most `concurrency` attempts run at once in the process, and two for each core in threads; the others
//     wait in the order they came.
//   local-task-executor-3. An attempt ends exactly once: by its handler, its time-out, or its abort,
//       whichever comes first. A handler that still runs afterwards is ignored, and its slot is free. The
//       next attempt of its task waits for it, but no longer than the grace of a cancel. Then it begins
//       beside it, and is told so.
//   local-task-executor-4. Closing waits for handlers that have read their abort signal, as they may have
//       processes to end, but never longer than its grace. It answers which of them still run, so that
//       nothing starts beside them.
//   - A process that was suspended past its lease aborts its attempts before it starts one, reports one, or
//     returns an abort signal. The reason is that handlers may resume before the timer of the lease does.
//   local-task-executor-6. Values of declared secrets are replaced in outputs, errors, tokens and progress
//       before they leave the attempt.

import { availableParallelism } from "node:os";
import {
  type AttemptOutcome,
  ChurnMap,
  type Clock,
  ConflictError,
  decodeJson,
  Fifo,
  LIMITS,
  type LostAttempt,
  type RunningAttempt,
  type TaskAttempt,
  type TaskExecutor,
  type TaskTraits,
  type UnsettledTask,
} from "@holdfast/core";
import type { Agent, SessionLeft, TaskDefinition } from "../../agents/define.ts";
import type { StepObserver } from "../../loop/step-observer.ts";
import { DeclaredSecrets, type SecretSource } from "@holdfast/system";
import { LocalAttempt, type AttemptHost } from "./local-attempt.ts";
import { StoppingHandlers } from "./stopping-handlers.ts";
import { traitsOf, type SessionCalls } from "./task-call.ts";

export interface LocalTaskExecutorOptions extends SessionCalls {
  readonly tasks?: readonly TaskDefinition[];
  /** Attempts running at once. */
  readonly concurrency?: number;
  readonly payloadChars?: number;
  readonly clock: Clock;
  /** Aborts every attempt when the lease could have passed on. Must not throw. */
  readonly checkLease?: () => void;
  readonly steps?: StepObserver | undefined;
  /** How long the next attempt of a task waits for a handler that was told to stop (local-task-executor-3). */
  readonly overlapMs?: number;
  /** Called when an attempt has to wait for a slot. */
  readonly onCrowded?: () => void;
  /** Values of declared secrets; none by default. */
  readonly secrets?: SecretSource;
  /** Values that nobody declares, and that are replaced in everything that is recorded all the same. */
  readonly knownKeys?: readonly string[];
}

/**
 * local-task-executor-4, without a given grace. A command that ignores SIGTERM is killed after two seconds,
 * and then the processes it left behind are searched.
 */
const HANDLERS_END_MS = 10_000;

/** A thread waits for something now and then, as most steps do. Each takes some 10 MB. */
const THREADS_PER_CORE = 2;

interface Lane {
  readonly max: number;
  running: number;
  readonly waiting: Fifo<LocalAttempt>;
}

export class LocalTaskExecutor implements TaskExecutor {
  readonly #tasks = new Map<string, TaskDefinition>();
  readonly #secrets: DeclaredSecrets;
  readonly #clock: Clock;
  readonly #host: AttemptHost;
  readonly #onCrowded: () => void;
  readonly #here: Lane;
  readonly #inThreads: Lane;
  readonly #running = new ChurnMap<number, LocalAttempt>();
  /** Handlers at work that heed their signal, also after their attempt's end (local-task-executor-4). */
  readonly #heeding = new Set<UnsettledTask>();
  readonly #stopping: StoppingHandlers<LocalAttempt>;
  /** Tasks that hold something for a session. Most processes have none. */
  readonly #holding = new Set<NonNullable<TaskDefinition["sessionLeft"]>>();
  /** Calls of `sessionLeft` that have not settled. */
  readonly #ending = new Set<Promise<void>>();
  /** How many attempts began. */
  #begun = 0;
  #onIdle: (() => void) | undefined;

  constructor({
    tasks = [],
    concurrency = LIMITS.tasksRunning,
    payloadChars = LIMITS.payloadChars,
    clock,
    checkLease = () => {},
    steps,
    overlapMs = LIMITS.cancelGraceMs,
    onCrowded = () => {},
    secrets = new Map(),
    knownKeys = [],
    read,
    signal,
  }: LocalTaskExecutorOptions) {
    this.#secrets = new DeclaredSecrets(secrets, knownKeys);
    this.#clock = clock;
    this.#onCrowded = onCrowded;
    this.#here = { max: concurrency, running: 0, waiting: new Fifo() };
    const threads = Math.min(concurrency, THREADS_PER_CORE * availableParallelism());
    this.#inThreads = { max: threads, running: 0, waiting: new Fifo() };
    this.#stopping = new StoppingHandlers({ clock, overlapMs, begin: (attempt) => this.#admit(attempt) });
    this.#host = {
      clock,
      payloadChars,
      checkLease,
      steps,
      read,
      signal,
      heeding: this.#heeding,
      overlapMs,
      secrets: this.#secrets,
      stopping: (taskId, settled) => this.#stopping.note(taskId, settled),
      ended: (attempt, outcome) => {
        checkLease();
        if (this.#running.delete(attempt.number)) this.#startWaiting(attempt);
        attempt.onEnd(outcome);
        if (this.#running.size === 0) this.#onIdle?.();
      },
    };
    for (const task of tasks) this.register(task);
  }

  /** @throws ConflictError when another task has this name. */
  register(task: TaskDefinition): void {
    const known = this.#tasks.get(task.name);
    if (known !== undefined && known !== task) {
      throw new ConflictError("usage", `two different tasks are named "${task.name}"`, {
        fix:
          "rename one of them. If a development server has loaded an edited file again, make the runtime by " +
          "createRuntime({ replaceAgents: true })",
      });
    }
    this.#register(task);
  }

  #register(task: TaskDefinition): void {
    this.#tasks.set(task.name, task);
    this.#secrets.declare(task);
    if (task.sessionLeft !== undefined) this.#holding.add(task.sessionLeft);
  }

  /**
   * The tasks of an agent, and the secrets of its functions. They may replace known tasks of these names.
   * Attempts that have begun keep the function that they began with.
   *
   * @throws as `register` does.
   */
  registerAgent(agent: Pick<Agent, "tasks" | "secrets" | "optionalSecrets">, mayReplace = false): void {
    const own = new Set(agent.tasks);
    const hasTwins = own.size > new Set([...own].map(({ name }) => name)).size;
    for (const task of own)
      if (mayReplace && !hasTwins) this.#register(task);
      else this.register(task);
    this.#secrets.declareAgent(agent);
  }

  describe(kind: string): TaskTraits | undefined {
    const task = this.#tasks.get(kind);
    return task === undefined ? undefined : traitsOf(task);
  }

  kinds(): readonly string[] {
    return [...this.#tasks.keys()];
  }

  start(request: TaskAttempt, onEnd: (outcome: AttemptOutcome) => void): RunningAttempt {
    const attempt = new LocalAttempt(this.#host, request, this.#tasks.get(request.kind), onEnd);
    if (!this.#stopping.holdBack(attempt)) this.#admit(attempt);
    return attempt;
  }

  #admit(attempt: LocalAttempt): void {
    const lane = this.#laneOf(attempt);
    if (lane.running < lane.max) return this.#begin(attempt, lane);
    lane.waiting.push(attempt);
    this.#onCrowded();
  }

  /** How many attempts run outside of threads, if others wait for a slot there; else 0. */
  get crowd(): number {
    return this.#here.waiting.size === 0 ? 0 : this.#here.running;
  }

  #laneOf(attempt: LocalAttempt): Lane {
    return attempt.place === "thread" ? this.#inThreads : this.#here;
  }

  endLost({ kind, input, idempotencyKey }: LostAttempt): Promise<void> | undefined {
    const endLost = this.#tasks.get(kind)?.endLost;
    if (endLost === undefined) return undefined;
    // `async`, because an author's function may throw at once, whatever its type says.
    return (async () => endLost(decodeJson(input), idempotencyKey))();
  }

  /** The session is not in the memory of this process any more. Never throws. */
  sessionLeft(sessionId: string, how: SessionLeft): void {
    for (const leave of this.#holding) {
      const ending = (async () => leave(sessionId, how))().catch(() => {});
      this.#ending.add(ending);
      void ending.then(() => this.#ending.delete(ending));
    }
  }

  async close(graceMs = HANDLERS_END_MS): Promise<readonly UnsettledTask[]> {
    for (const attempt of [
      ...this.#here.waiting.drain(),
      ...this.#inThreads.waiting.drain(),
      ...this.#stopping.behind,
    ])
      attempt.abort("the runtime is closing");
    for (const [, attempt] of this.#running) attempt.abort("the runtime is closing");
    if (this.#running.size > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    if (this.#heeding.size + this.#ending.size === 0) return [];
    const late = Promise.withResolvers<void>();
    const cancel = this.#clock.setTimer(late.resolve, graceMs);
    const ends = [...Array.from(this.#heeding, ({ settled }) => settled), ...this.#ending];
    await Promise.race([Promise.all(ends), late.promise]);
    cancel();
    return [...this.#heeding];
  }

  #begin(attempt: LocalAttempt, lane: Lane): void {
    lane.running++;
    const number = this.#begun++;
    this.#running.set(number, attempt);
    attempt.begin(number);
  }

  /** @param ended leaves its place to the next one. */
  #startWaiting(ended: LocalAttempt): void {
    const lane = this.#laneOf(ended);
    lane.running--;
    while (lane.running < lane.max) {
      const next = lane.waiting.shift();
      if (next === undefined) return;
      if (!next.isOver) this.#begin(next, lane);
    }
  }
}
