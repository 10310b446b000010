// `LocalRuntime`: a process that runs sessions, as its users call it. `runtime-parts.ts` makes and closes its
// parts.
//
// `start`, `signal` and `cancel` answer after what they asked for is durable.
//
// `live-sessions.ts` drives the sessions; `due-sessions.ts` runs and releases them by time (due-sessions-3).

import type { Budget, InputArguments, Per, Schedule, SessionStatus, SignalReceipt } from "@holdfast/core";
import type { Agent } from "./agents/define.ts";
import { checkRuntimeOptions, withCheckedCalls } from "./api/runtime-arguments.ts";
import type {
  AnswerOptions,
  CancelOptions,
  CancelReceipt,
  CloseOptions,
  ExportOptions,
  ForkOptions,
  GivenClaim,
  ImportOptions,
  ResumeOptions,
  Runtime,
  RuntimeOptions,
  ScheduleRequest,
  SessionHandle,
  SignalOptions,
  StartOptions,
} from "./api/runtime-api.ts";
import { sessionHandle } from "./api/session-handle.ts";
import type { Stored } from "./requests/run-requests.ts";
import { RuntimeParts } from "./runtime-parts.ts";
import { refuseInTaskThread } from "./tasks/local/task-thread.ts";
export type { Runtime, RuntimeOptions } from "./api/runtime-api.ts";

/** Make a runtime over the given storage. Options not given are those of a Node process. */
export function createRuntime(options: RuntimeOptions): Runtime {
  refuseInTaskThread();
  return withCheckedCalls(new LocalRuntime(new RuntimeParts(checkRuntimeOptions(options))));
}

/** @internal End a runtime as the death of its process would. Its storage must be dead already. */
export function vanishRuntime(runtime: Runtime): void {
  if (runtime instanceof LocalRuntime) runtime.vanish();
}

class LocalRuntime implements Runtime {
  readonly #parts: RuntimeParts;
  #closing: Promise<void> | undefined;
  readonly #graceOver = Promise.withResolvers<void>();

  constructor(parts: RuntimeParts) {
    this.#parts = parts;
  }

  drive(claim: GivenClaim): void {
    this.#parts.given.drive(claim);
  }

  abandon(sessionId: string): void {
    this.#parts.sessions.abandon(sessionId);
  }

  releaseWaiting({ atCheckpoints = false }: { readonly atCheckpoints?: boolean } = {}): void {
    this.#parts.sessions.due.releaseWaiting(atCheckpoints);
  }

  get live(): number {
    return this.#parts.sessions.drivers.length;
  }

  get running(): number {
    return this.#parts.sessions.drivers.reduce((sum, { running }) => sum + running, 0);
  }

  async start<Input, Output, Given = Input>(
    agent: Agent<Input, Output, Given>,
    ...[input, options = {}]: InputArguments<Given, StartOptions>
  ): Promise<SessionHandle<Output>> {
    return this.#handle(await this.#parts.runs.start(agent as unknown as Agent, input, options));
  }

  async fork(sessionId: string, options: ForkOptions = {}): Promise<SessionHandle> {
    return this.#handle(await this.#parts.runs.fork(sessionId, options));
  }

  export(sessionId: string, options: ExportOptions = {}): AsyncIterable<string> {
    return this.#parts.runs.export(sessionId, options);
  }

  async import(file: AsyncIterable<Uint8Array>, options: ImportOptions = {}): Promise<SessionHandle> {
    return this.#handle(await this.#parts.runs.import(file, options));
  }

  async resume(sessionId: string, options: ResumeOptions = {}): Promise<SessionHandle> {
    return this.#handle(await this.#parts.runs.resume(sessionId, options));
  }

  async recover(): Promise<readonly string[]> {
    this.#parts.runs.refuseIfClosed();
    return this.#parts.sessions.due.runDue();
  }

  handle(sessionId: string): SessionHandle {
    return this.#handle({ sessionId, created: false });
  }

  signal(
    sessionId: string,
    name: string,
    payload?: unknown,
    options: SignalOptions = {},
  ): Promise<SignalReceipt> {
    return this.#parts.requests.signal(sessionId, name, payload, options);
  }

  answer(sessionId: string, answer: unknown, options: AnswerOptions = {}): Promise<SignalReceipt> {
    return this.#parts.requests.answer(sessionId, answer, options);
  }

  cancel(sessionId: string, options: CancelOptions = {}): Promise<CancelReceipt> {
    return this.#parts.requests.cancel(sessionId, options);
  }

  pause(sessionId: string): Promise<SessionStatus> {
    return this.#parts.requests.pause(sessionId);
  }

  async unpause(sessionId: string): Promise<SessionStatus> {
    const { requests, sessions, runs } = this.#parts;
    const status = await requests.unpause(sessionId);
    const { agent } = await sessions.find(sessionId);
    if (sessions.agents.latest(agent.name) !== undefined) await runs.runExisting(sessionId);
    return status;
  }

  setBudget(sessionId: string, limits: Budget): Promise<SessionStatus> {
    return this.#parts.requests.setBudget(sessionId, limits);
  }

  grantWindow(sessionId: string, per: Per): Promise<SessionStatus> {
    return this.#parts.requests.grantWindow(sessionId, per);
  }

  releaseLost(sessionId: string): Promise<SessionStatus> {
    return this.#parts.requests.releaseLost(sessionId);
  }

  async schedule<Input, Output>(request: ScheduleRequest<Input, Output>): Promise<Schedule> {
    const { id, cron, timeZone } = request;
    const action = await this.#parts.runs.actionOf(request);
    return this.#parts.schedules.put({ id, cron, timeZone, action });
  }

  schedules(): Promise<readonly Schedule[]> {
    return this.#parts.schedules.list();
  }

  unschedule(scheduleId: string): Promise<boolean> {
    return this.#parts.schedules.remove(scheduleId);
  }

  close({ graceMs }: CloseOptions = {}): Promise<void> {
    const { sessions, clock } = this.#parts;
    this.#closing ??= sessions.closed
      ? Promise.resolve()
      : this.#parts.close(this.#graceOver.promise, graceMs !== undefined);
    // A second call may end the grace sooner.
    if (graceMs === undefined || graceMs === 0) this.#graceOver.resolve();
    else void this.#closing.then(clock.setTimer(this.#graceOver.resolve, graceMs));
    return this.#closing;
  }

  /** @internal Vanish as a killed process would. For crash tests. */
  vanish(): void {
    this.#parts.vanish();
  }

  #handle<Output>({ sessionId, created }: Stored): SessionHandle<Output> {
    const { sessions, requests, aliveness } = this.#parts;
    const host = {
      runtime: this,
      setTitle: (id: string, title: string) => requests.setTitle(id, title),
      find: (id: string) => sessions.find(id),
      settledOf: (id: string) => sessions.settledOf(id),
      aliveness,
    };
    return sessionHandle(host, sessionId, created);
  }
}
