// The agent kernel: outcomes in, commands out.
//
// Pure. It knows no clock, storage, process or timer. It has two doors: `deliver` pushes one outcome in, inside a slice;
// `seal` takes out what was asked for since the last seal. The runtime opens and closes slices and decides what to deliver.
//
//   K1.  A command's number (`id`) is claimed when the agent asks, before anything can interleave. Commands are numbered apart
//        from the journal's positions (`seq`), which events and notes take too: what a crash adds moves no id.
//   K2.  Outcomes are delivered one at a time, each in a slice of its own; a command outside a slice is a fault.
//   K3.  Replay and first execution run the same lines: they differ only in whether the journal already holds a record.
//   K4.  An unanswered wait never settles. A fault is remembered: `seal` refuses even if the agent caught it.
//   K5.  A command, an outcome or an end that is not the recorded one is a divergence, with both sides.
//   K7.  A checkpoint or an end closes the kernel; what comes after is another kernel.
//   K9a. Conditional probes record only a changed answer.

import {
  CancelledError,
  HoldfastError,
  InvariantError,
  invariant,
  LimitError,
  NondeterminismError,
  recordError,
  TaskFailedError,
  WaitTimeoutError,
  type RecordedError,
} from "../errors.ts";
import { positionId } from "../ids.ts";
import { decodeJson, encodeJson, type JsonText } from "../json.ts";
import {
  answerSignalName,
  isCommand,
  isEvent,
  isNote,
  type CancelNotice,
  type CommandRecord,
  type EventRecord,
  type JournalRecord,
  type NoteRecord,
  type RetryPolicy,
} from "../journal/record.ts";
import { FORMAT_LIMITS, type Limits } from "../limits.ts";
import type { Hash } from "../ports/clock.ts";
import type { NewEntry, StoredSignal } from "../ports/storage.ts";
import { callerLine } from "./caller.ts";
import { checkRetry, checkTimeout, momentOf } from "./checks.ts";
import {
  askedTooLate,
  checkpointNotAwaited,
  checkpointWithoutProgress,
  foreignEntry,
  keyOfAnother,
  limitReached,
  nonDurableAwait,
  openTasksRefuseCheckpoint,
  signalIsSpokenFor,
  timerWithoutTime,
  unknownTaskKind,
} from "./faults.ts";
import { DurableFuture, type FutureOwner } from "./future.ts";
import { describeRecord, identityOf, sortOf } from "./identity.ts";
import { OpenItems, type OpenItem, type OpenTask } from "./open-items.ts";
import { PendingSignals, signalPattern } from "./pending-signals.ts";
import { seededRandom } from "./random.ts";

export interface KernelOptions {
  readonly sessionId: string;
  /** `seq` of the first record of this kernel's life: 0, or one past the checkpoint's. */
  readonly baseSeq: number;
  /** Number of the first command of this kernel's life. */
  readonly baseId: number;
  /** The journal from `baseSeq` on. */
  readonly recorded: readonly JournalRecord[];
  readonly signals: readonly StoredSignal[];
  readonly seed: number;
  readonly turn: number;
  readonly entryCount: number;
  readonly leaf: number | undefined;
  readonly cancel: CancelNotice | undefined;
  /** The state this kernel starts on, to see that a checkpoint makes progress; `undefined` before the first. */
  readonly stateText: JsonText | undefined;
  readonly hash: Hash;
  readonly limits: Limits;
  /** Traits of a task kind; `undefined` when nobody here can do it. */
  readonly describeTask: (
    kind: string,
  ) => { readonly retry?: RetryPolicy; readonly timeoutMs?: number } | undefined;
  readonly taskKinds: () => readonly string[];
  /** Let recorded results stand for changed inputs of the same kind (K5). */
  readonly acceptDrift: boolean;
  /** Called once when a fault arises outside a slice, where nobody is looking. Must not throw. */
  readonly onStrayFault: () => void;
}

/** What one segment leaves behind. */
export interface SealedSegment {
  readonly firstSeq: number;
  readonly records: readonly JournalRecord[];
  readonly entries: readonly NewEntry[];
  readonly consumed: readonly string[];
  /** Tasks to start once this is committed, and positions whose attempts are to be aborted. */
  readonly newTasks: readonly OpenTask[];
  readonly withdrawnTasks: readonly number[];
}

export type Ending =
  | { readonly type: "returned"; readonly output: JsonText | undefined }
  | { readonly type: "threw"; readonly error: RecordedError };

/** Where the agent stands after a slice. */
export type Standstill =
  | { readonly type: "open" }
  /** It awaits nothing that is durable and has not ended. */
  | { readonly type: "nothing" }
  | { readonly type: "faulted"; readonly fault: HoldfastError }
  | { readonly type: "checkpointed"; readonly state: JsonText; readonly turn: number }
  | { readonly type: "ended"; readonly ending: Ending };

type Draft<R> = R extends unknown ? Omit<R, "seq" | "id"> : never;

export class Kernel implements FutureOwner {
  readonly #options: KernelOptions;
  readonly #sessionId: string;
  readonly #recorded: readonly JournalRecord[];
  readonly #open = new OpenItems();
  readonly #keyed = new Map<string, { readonly future: DurableFuture<unknown>; readonly asked: string }>();
  readonly #entryIds = new Set<number>();
  readonly #pending = new PendingSignals();
  /** Arrived while a slice is open: a probe must answer the same until its end (K9a). */
  readonly #offered: StoredSignal[] = [];
  readonly #probes = new Map<string, boolean | number>();
  readonly #drifted: number[] = [];
  /** Positions at which a person has accepted drift before. */
  readonly #accepted: ReadonlySet<number>;
  readonly #random: () => number;

  /** Position of the next record in the journal. */
  #seq: number;
  /** Number of the next command. */
  #id: number;
  #sealedSeq: number;
  #fresh: JournalRecord[] = [];
  #freshEntries: NewEntry[] = [];
  #freshConsumed: string[] = [];
  #freshTasks: OpenTask[] = [];
  #freshWithdrawn: number[] = [];

  #slice: "none" | "replay" | "live" = "none";
  #sliceCommands = 0;
  #closed = false;
  #fault: HoldfastError | undefined;
  #ending: Ending | undefined;
  #checkpoint:
    | { readonly state: JsonText; readonly cancelTasks: boolean; readonly schemaVersion: number | undefined }
    | undefined;
  #cancel: CancelNotice | undefined;
  #cancelledWaits = 0;
  #turn: number;
  #entryCount: number;
  #entriesAsked = 0;
  #leaf: number | undefined;
  #now = 0;
  #deliveries = 0;
  #tookSignals = false;
  #checkpointLine: string | undefined;

  constructor(options: KernelOptions) {
    this.#options = options;
    this.#sessionId = options.sessionId;
    this.#recorded = options.recorded;
    this.#seq = options.baseSeq;
    this.#id = options.baseId;
    this.#sealedSeq = options.baseSeq + options.recorded.length;
    this.#random = seededRandom(options.seed, options.baseId);
    this.#cancel = options.cancel;
    this.#turn = options.turn;
    this.#entryCount = options.entryCount;
    this.#leaf = options.leaf;
    this.#accepted = new Set(
      options.recorded.flatMap((record) => (record.type === "drift_accepted" ? record.positions : [])),
    );
    for (const signal of options.signals) this.#pending.add(signal);
  }

  // ---- for the runtime: replay, slices, delivery -------------------------------------------------------------------

  /** Whether recorded outcomes are left to deliver. */
  get replaying(): boolean {
    return this.#seq - this.#options.baseSeq < this.#recorded.length;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get fault(): HoldfastError | undefined {
    return this.#fault;
  }

  get turn(): number {
    return this.#turn;
  }

  get entryCount(): number {
    return this.#entryCount;
  }

  get leaf(): number | undefined {
    return this.#leaf;
  }

  get cancelNotice(): CancelNotice | undefined {
    return this.#cancel;
  }

  get nextSeq(): number {
    return this.#seq;
  }

  get nextId(): number {
    return this.#id;
  }

  /** Whether there is anything to commit. */
  get dirty(): boolean {
    return this.#fresh.length > 0;
  }

  /** Epoch milliseconds of the last delivery: what the agent takes for the present (K9a). */
  get now(): number {
    return this.#now;
  }

  /**
   * The next recorded outcome, passing over notes; `undefined` when the journal is used up, or when the agent asked for
   * fewer commands than it holds (then `fault` is set).
   */
  nextRecorded(): EventRecord | undefined {
    for (;;) {
      const record = this.#recorded[this.#seq - this.#options.baseSeq];
      if (record === undefined) return undefined;
      if (isNote(record)) {
        this.#readNote(record);
        this.#seq++;
      } else if (isEvent(record)) {
        return record;
      } else {
        this.#remember(this.#divergence(record, "nothing more, or to wait for an outcome"));
        return undefined;
      }
    }
  }

  /** Begin a slice: until `closeSlice`, and only then, the agent may ask. */
  openSlice(): void {
    invariant(this.#slice === "none", `session ${this.#sessionId}: a slice was opened inside a slice`);
    this.#slice = this.replaying ? "replay" : "live";
    this.#sliceCommands = 0;
  }

  /**
   * Deliver one outcome, recorded (as `nextRecorded` gave it) or new. Only in a slice.
   *
   * @param start calls the agent's function; used by the `started` event.
   */
  deliver(event: Draft<EventRecord> | EventRecord, start?: () => Promise<unknown>): void {
    invariant(this.#slice !== "none", `session ${this.#sessionId}: delivery outside a slice`);
    if (this.#slice === "live") this.#fresh.push({ ...event, seq: this.#seq });
    this.#seq++;
    this.#now = Math.max(this.#now, event.at); // The wall clock may go back; what the agent sees of it does not.
    this.#deliveries++;
    switch (event.type) {
      case "started":
        invariant(start !== undefined, "started without an agent to start");
        this.#startAgent(start);
        return;
      case "task_completed":
        this.#close(event.task, "task")?.future.fulfil(decodeJson(event.payload));
        return;
      case "task_failed": {
        const item = this.#close(event.task, "task");
        if (item?.task === undefined) return;
        const taskId = positionId(this.#sessionId, event.task);
        const error = new TaskFailedError(
          { taskId, kind: item.task.kind, attempts: event.attempt },
          decodeJson(event.payload) as RecordedError,
        );
        item.future.reject(error);
        // K13: after the agent returned, a task nobody observed decides the session.
        if (this.#ending?.type === "returned" && !item.future.observed) {
          this.#ending = { type: "threw", error: recordError(error) };
        }
        return;
      }
      case "timer_fired":
        this.#close(event.timer, "timer")?.future.fulfil(undefined);
        return;
      case "signal_received":
        if (this.#slice === "live") this.#freshConsumed.push(event.signalId);
        this.#close(event.wait, "signal", "input")?.future.fulfil(decodeJson(event.payload));
        return;
      case "signal_ready":
        this.#close(event.wait, "signal_ready")?.future.fulfil(undefined);
        return;
      case "wait_timed_out": {
        const item = this.#close(event.wait, "signal", "signal_ready", "input");
        item?.future.reject(new WaitTimeoutError(item.future.label));
        return;
      }
      case "wait_cancelled": {
        if (++this.#cancelledWaits >= this.#options.limits.cancelledWaits) this.#open.onlySheltered = true;
        const item = this.#close(event.wait, "signal", "signal_ready", "input", "timer");
        item?.future.reject(new CancelledError(item.future.label, this.#cancel?.reason));
        return;
      }
      case "cancel_requested":
        this.#requestCancel({
          deadlineAt: event.deadlineAt,
          ...(event.reason === undefined ? {} : { reason: event.reason }),
        });
        return;
    }
  }

  /** End the slice: the agent stands still. Tells where. */
  closeSlice(): Standstill {
    invariant(this.#slice !== "none", `session ${this.#sessionId}: no slice to close`);
    try {
      if (this.#fault === undefined) this.#settleSegment();
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      this.#remember(error);
    }
    const replayed = this.#slice === "replay";
    this.#slice = "none";
    if (this.#offered.length > 0) for (const signal of this.#offered.splice(0)) this.#pending.add(signal);
    if (replayed && this.#fault === undefined && !this.replaying) this.#checkReplayEnd();
    if (this.#fault !== undefined) {
      this.#closed = true;
      return { type: "faulted", fault: this.#fault };
    }
    if (this.#closed) {
      if (this.#checkpoint !== undefined)
        return { type: "checkpointed", state: this.#checkpoint.state, turn: this.#turn };
      invariant(this.#ending !== undefined, "closed without a checkpoint or an end");
      return { type: "ended", ending: this.#ending };
    }
    return this.#open.size === 0 ? { type: "nothing" } : { type: "open" };
  }

  /**
   * Everything since the last seal: what to commit. Call at a standstill.
   *
   * @throws the fault, if there is one.
   */
  seal(): SealedSegment {
    invariant(this.#slice === "none", `session ${this.#sessionId}: sealed inside a slice`);
    if (this.#fault !== undefined) throw this.#fault; // K4.
    const segment: SealedSegment = {
      firstSeq: this.#sealedSeq,
      records: this.#fresh,
      entries: this.#freshEntries,
      consumed: this.#freshConsumed,
      newTasks: this.#freshTasks,
      withdrawnTasks: this.#freshWithdrawn,
    };
    this.#sealedSeq = this.#seq;
    this.#fresh = [];
    this.#freshEntries = [];
    this.#freshConsumed = [];
    this.#freshTasks = [];
    this.#freshWithdrawn = [];
    return segment;
  }

  /** After a fault: the task outcomes delivered since the last seal, as notes, and the notes themselves, so that no effect is
   * lost (K6). */
  salvage(at: number): SealedSegment {
    const notes: NoteRecord[] = [];
    for (const record of this.#fresh) {
      if (isNote(record) && record.type !== "drift_accepted")
        notes.push({ ...record, seq: this.#sealedSeq + notes.length });
      if (record.type !== "task_completed" && record.type !== "task_failed") continue;
      notes.push({
        type: "outcome_kept",
        seq: this.#sealedSeq + notes.length,
        at,
        outcome: record.type,
        task: record.task,
        attempt: record.attempt,
        payload: record.payload,
      });
    }
    return {
      firstSeq: this.#sealedSeq,
      records: notes,
      entries: [],
      consumed: [],
      newTasks: [],
      withdrawnTasks: [],
    };
  }

  /** Add a fact that is not delivered. Only at a standstill, when nothing is left to replay. */
  note(note: Draft<NoteRecord>): void {
    invariant(
      this.#slice === "none" && !this.replaying,
      `session ${this.#sessionId}: a note inside a slice or replay`,
    );
    const record = { ...note, seq: this.#seq++ } as NoteRecord;
    this.#fresh.push(record);
    this.#readNote(record);
  }

  /** Fault the session from outside: it stood on nothing durable for too long. */
  faultStandingOnNothing(): void {
    this.#remember(
      nonDurableAwait(
        `the agent of session ${this.#sessionId} awaits something that is not durable, and nothing else`,
        undefined,
      ),
    );
    this.#closed = true;
  }

  /** A signal arrived. It is seen by the agent from its next slice on. */
  offer(signal: StoredSignal): void {
    if (this.#slice === "none") this.#pending.add(signal);
    else this.#offered.push(signal);
  }

  /**
   * The next outcome that is known without asking anybody: an open wait whose signal is pending, or one asked after a
   * graceful cancel. In the order the waits were asked.
   */
  nextOwn(at: number): Draft<EventRecord> | undefined {
    const item = this.#answeredWait();
    if (item === undefined) return undefined;
    const wait = item.future.id;
    if (this.#isToBeCancelled(item)) return { type: "wait_cancelled", wait, at };
    if (item.future.type === "signal_ready") return { type: "signal_ready", wait, at };
    const signal = item.name === undefined ? undefined : this.#pending.take(item.name);
    invariant(signal !== undefined, "a pending signal vanished");
    return { type: "signal_received", wait, signalId: signal.signalId, at, payload: signal.payload };
  }

  /** Whether `nextOwn` would give something. */
  get hasOwn(): boolean {
    return this.#answeredWait() !== undefined;
  }

  #answeredWait(): OpenItem | undefined {
    if (this.#open.waitCount === 0) return undefined;
    for (const item of this.#open.values()) {
      if (this.#isToBeCancelled(item)) return item;
      if (this.#open.hangs(item)) continue;
      if (item.name !== undefined && this.#pending.has(item.name)) return item;
    }
    return undefined;
  }

  #isToBeCancelled(item: OpenItem): boolean {
    if (this.#cancel === undefined || item.task !== undefined || item.sheltered === true) return false;
    return this.#cancelledWaits < this.#options.limits.cancelledWaits;
  }

  /** The timer or wait that is due by `now`, if any; the earliest first. */
  nextDue(now: number): Draft<EventRecord> | undefined {
    const item = this.#open.due(now);
    if (item === undefined) return undefined;
    const { id } = item.future;
    return item.future.type === "timer"
      ? { type: "timer_fired", timer: id, at: now }
      : { type: "wait_timed_out", wait: id, at: now };
  }

  /** What is open, for those who start tasks, arm timers and tell people. Not to be changed. */
  get open(): Pick<OpenItems, "get" | "tasks" | "taskCount" | "waits" | "wakeAt"> {
    return this.#open;
  }

  /** Signals nobody has consumed yet: the next kernel's, after a checkpoint. */
  pendingSignals(): readonly StoredSignal[] {
    return this.#pending.all();
  }

  // ---- for the context: what agents ask ----------------------------------------------------------------------------

  scheduleTask(request: {
    kind: string;
    input: unknown;
    closure?: (task: unknown) => unknown;
    key?: string | undefined;
    timeoutMs?: number | undefined;
    retry?: RetryPolicy | undefined;
  }): DurableFuture<unknown> {
    const { kind, key, closure } = request;
    this.#guard();
    const traits = closure === undefined ? this.#options.describeTask(kind) : {};
    if (traits === undefined)
      throw this.#fail(unknownTaskKind(kind, this.#options.taskKinds(), callerLine()));
    const input = this.#encode(request.input, `input of task "${kind}"`);
    const hash = this.#options.hash(input ?? "");
    const asked = `${kind} ${hash}`;
    const known = key === undefined ? undefined : this.#keyed.get(key);
    if (known !== undefined) {
      if (known.asked !== asked)
        throw this.#fail(keyOfAnother(key ?? "", known.future.label, kind, callerLine()));
      return known.future;
    }
    const retry = this.#checked(() => checkRetry(request.retry ?? traits.retry));
    const timeoutMs = this.#checked(() => checkTimeout(request.timeoutMs ?? traits.timeoutMs));
    const { id } = this.#ask({
      type: "schedule_task",
      kind,
      hash,
      ...(key === undefined ? {} : { key }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(retry === undefined ? {} : { retry }),
      ...(input === undefined || input.length > FORMAT_LIMITS.inputKeptChars ? {} : { payload: input }),
    });
    const future = new DurableFuture<unknown>(this, "task", id, `task "${kind}"`);
    const task: OpenTask = {
      id,
      kind,
      input,
      key,
      retry,
      timeoutMs,
      closure,
      attempt: 1,
      retryAt: undefined,
      lost: false,
      kept: undefined,
    };
    this.#open.add({ future, task });
    if (key !== undefined) this.#keyed.set(key, { future, asked });
    if (this.#slice === "live") this.#freshTasks.push(task);
    return future;
  }

  startTimer(fireAt: number, sheltered: boolean): DurableFuture<void> {
    this.#guard();
    const at = this.#moment(fireAt);
    const { id } = this.#ask({ type: "start_timer", fireAt: at });
    const future = new DurableFuture<void>(this, "timer", id, "the timer");
    this.#open.add({ future, at, sheltered });
    return future;
  }

  waitSignal(
    name: string,
    mode: "consume" | "ready",
    timeoutMs: number | undefined,
    sheltered: boolean,
  ): DurableFuture<unknown> {
    this.#guard();
    const line = callerLine();
    this.#refuseIfConsuming(name, line);
    const timeoutAt = this.#momentAfter(timeoutMs);
    const { id } = this.#ask({
      type: "wait_signal",
      name,
      mode,
      ...(timeoutAt === undefined ? {} : { timeoutAt }),
    });
    const type = mode === "consume" ? "signal" : "signal_ready";
    const future = new DurableFuture<unknown>(this, type, id, `the wait for signal "${name}"`);
    this.#open.add({ future, name, at: timeoutAt, sheltered, line });
    return future;
  }

  requestInput(
    question: { prompt: string; details?: unknown },
    timeoutMs: number | undefined,
    sheltered: boolean,
  ): DurableFuture<unknown> {
    this.#guard();
    const payload = this.#encode(question, "question");
    const expiresAt = this.#momentAfter(timeoutMs);
    const { id } = this.#ask({
      type: "request_input",
      hash: this.#options.hash(payload ?? ""),
      ...(expiresAt === undefined ? {} : { expiresAt }),
      payload,
    });
    const future = new DurableFuture<unknown>(this, "input", id, `the question "${question.prompt}"`);
    this.#open.add({ future, name: answerSignalName(id), at: expiresAt, prompt: question.prompt, sheltered });
    return future;
  }

  /** Consume signals that are pending, without waiting; at most one for a plain name, all for `drain`. */
  takeSignals(pattern: string, how: "one" | "all"): { name: string; payload: unknown }[] {
    this.#guard();
    this.#refuseIfConsuming(pattern);
    if (this.#slice === "replay") {
      const recorded = this.#recordedHere();
      if (recorded?.type !== "take_signals" || recorded.pattern !== pattern) return [];
      this.#countCommand();
      this.#advance();
      this.#tookSignals = true;
      const payloads = decodeJson(recorded.payload) as unknown[];
      return recorded.names.map((name, i) => ({ name, payload: payloads[i] }));
    }
    const one = how === "one" ? this.#pending.take(pattern) : undefined;
    const taken = how === "all" ? this.#pending.drain(pattern) : one === undefined ? [] : [one];
    if (taken.length === 0) return [];
    this.#tookSignals = true;
    this.#ask({
      type: "take_signals",
      pattern,
      signalIds: taken.map((signal) => signal.signalId),
      names: taken.map((signal) => signal.name),
      payload: `[${taken.map((signal) => signal.payload ?? "null").join(",")}]`,
    });
    for (const { signalId } of taken) this.#freshConsumed.push(signalId);
    return taken.map(({ name, payload }) => ({ name, payload: decodeJson(payload ?? "null") }));
  }

  /** K9a: the answer of the first execution, also when more has arrived since. */
  hasSignal(name: string): boolean {
    this.#guard();
    this.#refuseIfConsuming(name);
    return this.#probe(`has_signal ${name}`, false, () => this.#pending.has(name));
  }

  appendEntry(entry: { role: string; content: unknown; parentId?: string | undefined }): string {
    this.#guard();
    const content = this.#encode(entry.content, `content of an entry of role "${entry.role}"`) ?? "null";
    const parent = entry.parentId === undefined ? this.#leaf : this.#entryNumber(entry.parentId);
    if (++this.#entriesAsked > this.#options.limits.entriesPerCheckpoint && this.#slice === "live") {
      throw this.#fail(
        limitReached(
          "entriesPerCheckpoint",
          this.#options.limits.entriesPerCheckpoint,
          "use ctx.checkpoint()",
        ),
      );
    }
    const { id } = this.#ask({
      type: "append_entry",
      role: entry.role,
      hash: this.#options.hash(`${parent ?? ""} ${content}`),
    });
    this.#entryIds.add(id);
    const index = this.#entryCount++;
    this.#leaf = id;
    if (this.#slice === "live") {
      const under = parent === undefined ? {} : { parent };
      this.#freshEntries.push({ seq: id, index, ...under, role: entry.role, turn: this.#turn, content });
    }
    return positionId(this.#sessionId, id);
  }

  /** Close the segment and store the state. The caller is suspended for ever: the agent is called anew on the state. */
  checkpoint(
    state: unknown,
    openTasks: "refuse" | "cancel" | "wait",
    schemaVersion?: number,
  ): Promise<never> {
    this.#guard();
    const tasks = this.#open.tasks();
    if (openTasks === "refuse" && tasks.length > 0) {
      throw this.#fail(openTasksRefuseCheckpoint(this.#sessionId, tasks, callerLine()));
    }
    if (this.#deliveries === 1 && this.#options.stateText !== undefined) this.#checkpointLine = callerLine();
    this.#checkpoint = {
      state: this.#encode(state, "state") ?? "null",
      cancelTasks: openTasks === "cancel",
      schemaVersion,
    };
    return new Promise<never>(() => {});
  }

  get cancelRequested(): boolean {
    this.#guard();
    return this.#cancel !== undefined;
  }

  /** K9a: fixed from one delivery to the next. */
  probeNow(): number {
    this.#guard();
    return this.#now;
  }

  /** An integer in [0, 2^32), the same on every replay. */
  probeRandom(): number {
    this.#guard();
    return this.#random();
  }

  withdraw(targets: readonly DurableFuture<unknown>[]): void {
    const open = targets.filter((future) => this.#open.get(future.id)?.future === future);
    if (open.length === 0) return;
    this.#ask({ type: "withdraw", targets: open.map((future) => future.id) });
    for (const future of open) {
      this.#drop(future.id);
      future.rejectWithdrawn();
    }
  }

  /** For `ctx.conversation()`. */
  conversationLeaf(): number | undefined {
    this.#guard();
    return this.#leaf;
  }

  // ---- inside ------------------------------------------------------------------------------------------------------

  #startAgent(start: () => Promise<unknown>): void {
    const settle = (ending: () => Ending) => {
      if (this.#closed || this.#ending !== undefined) return;
      if (this.#slice === "none") {
        this.#strayFault("the agent ended after awaiting something that is not durable", undefined);
        return;
      }
      this.#ending = ending();
    };
    start().then(
      (output) =>
        settle(() => {
          try {
            return { type: "returned", output: this.#encodeQuietly(output, "the agent's output") };
          } catch (error) {
            return { type: "threw", error: recordError(error) };
          }
        }),
      (error: unknown) => settle(() => ({ type: "threw", error: recordError(error) })),
    );
  }

  /** Apply what the agent has done as a whole in this slice: a checkpoint or its end. */
  #settleSegment(): void {
    if (this.#checkpoint !== undefined && this.#ending === undefined) {
      if (this.#open.taskCount > 0 && !this.#checkpoint.cancelTasks) return; // "wait".
      if (
        this.#deliveries === 1 &&
        !this.#tookSignals &&
        this.#checkpoint.state === this.#options.stateText
      ) {
        throw checkpointWithoutProgress(this.#checkpointLine);
      }
      this.#withdrawAll();
      this.#turn++;
      this.#append({
        type: "checkpoint",
        at: this.#now,
        turn: this.#turn,
        entryCount: this.#entryCount,
        ...(this.#leaf === undefined ? {} : { leaf: this.#leaf }),
        ...(this.#checkpoint.schemaVersion === undefined
          ? {}
          : { schemaVersion: this.#checkpoint.schemaVersion }),
        ...(this.#cancel === undefined ? {} : { cancel: this.#cancel }),
        payload: this.#checkpoint.state,
      });
      this.#closed = true;
      return;
    }
    if (this.#ending === undefined) return;
    if (this.#checkpoint !== undefined && this.#ending.type === "returned") throw checkpointNotAwaited();
    // K13: after a return, tasks nobody ever observed are awaited; everything else is withdrawn.
    if (this.#ending.type === "returned") {
      const awaited = (item: OpenItem) => item.task !== undefined && !item.future.observed;
      const rest = [...this.#open.values()].filter((item) => !awaited(item)).map((item) => item.future);
      this.#withdrawQuietly(rest);
      if (this.#open.size > 0) return;
    } else {
      this.#withdrawAll();
    }
    this.#checkpoint = undefined;
    if (this.#ending.type === "returned") this.#append({ type: "complete", payload: this.#ending.output });
    else this.#append({ type: "fail", payload: JSON.stringify(this.#ending.error) });
    this.#closed = true;
  }

  #withdrawAll(): void {
    this.#withdrawQuietly([...this.#open.values()].map((item) => item.future));
  }

  /** Withdraw without answering anybody: what awaits them hangs with the closed segment. */
  #withdrawQuietly(futures: readonly DurableFuture<unknown>[]): void {
    if (futures.length === 0) return;
    this.#append({ type: "withdraw", targets: futures.map((future) => future.id) });
    for (const future of futures) this.#drop(future.id);
  }

  #requestCancel(notice: CancelNotice): void {
    this.#cancel ??= notice;
    for (const item of this.#open.values()) {
      if (item.task !== undefined || item.sheltered === true) continue;
      this.#drop(item.future.id);
      item.future.reject(new CancelledError(item.future.label, notice.reason));
    }
  }

  /** Claim the next position for a command; in replay, check that it is the recorded one (K1, K5). */
  #ask(draft: Draft<CommandRecord>): { readonly id: number } {
    this.#guard();
    return this.#append(draft, callerLine);
  }

  /** @param lineOf finds the agent's line for a divergence; absent when the agent is not what asks. */
  #append(draft: Draft<CommandRecord>, lineOf?: () => string | undefined): { readonly id: number } {
    this.#countCommand();
    const id = this.#id;
    if (this.#slice === "replay") {
      const recorded = this.#recordedHere();
      if (recorded === undefined || !isCommand(recorded) || identityOf(recorded) !== identityOf(draft)) {
        this.#acceptDriftOrDiverge(recorded, draft, lineOf);
      }
    } else {
      if (this.#seq - this.#options.baseSeq >= this.#options.limits.recordsPerCheckpoint) {
        throw this.#fail(
          limitReached(
            "recordsPerCheckpoint",
            this.#options.limits.recordsPerCheckpoint,
            "use ctx.checkpoint()",
          ),
        );
      }
      this.#fresh.push({ ...draft, seq: this.#seq, id });
    }
    this.#advance();
    return { id };
  }

  /** Past one command. */
  #advance(): void {
    this.#seq++;
    this.#id++;
  }

  #acceptDriftOrDiverge(
    recorded: JournalRecord | undefined,
    draft: Draft<CommandRecord>,
    lineOf: (() => string | undefined) | undefined,
  ): void {
    const sameSort = recorded !== undefined && isCommand(recorded) && sortOf(recorded) === sortOf(draft);
    if (sameSort && this.#accepted.has(this.#seq)) return;
    if (!sameSort || !this.#options.acceptDrift)
      throw this.#fail(this.#divergence(recorded, identityOf(draft).trim(), lineOf?.()));
    this.#drifted.push(this.#seq);
  }

  /** Positions whose recorded results stand for changed inputs; noted once, when the replay is over. */
  takeDrift(): readonly number[] {
    return this.#drifted.splice(0);
  }

  #recordedHere(): JournalRecord | undefined {
    return this.#recorded[this.#seq - this.#options.baseSeq];
  }

  /** A batch ends at a standstill, so the journal does too: more commands than it holds would have been in it (K5). */
  #checkReplayEnd(): void {
    // Replay slices only advance over recorded positions, so there is nothing beyond; what is left is checked by
    // `nextRecorded`. Kept as an assertion of that reasoning.
    const length = this.#options.baseSeq + this.#recorded.length;
    if (this.#seq !== length)
      this.#remember(
        new InvariantError(`session ${this.#sessionId}: replay ended at ${this.#seq}, not ${length}`),
      );
  }

  #probe(key: string, initial: boolean, answerNow: () => boolean): boolean {
    const last = (this.#probes.get(key) ?? initial) as boolean;
    if (this.#slice === "replay") {
      const recorded = this.#recordedHere();
      if (recorded?.type !== "record_probe" || recorded.probe !== key) return last;
      this.#countCommand();
      this.#advance();
      this.#probes.set(key, recorded.answer);
      return recorded.answer as boolean;
    }
    const answer = answerNow();
    if (answer !== last) {
      this.#ask({ type: "record_probe", probe: key, answer });
      this.#probes.set(key, answer);
    }
    return answer;
  }

  #readNote(note: NoteRecord): void {
    if (note.type !== "attempt_failed" && note.type !== "attempt_lost" && note.type !== "outcome_kept")
      return;
    const task = this.#open.get(note.task)?.task;
    if (task === undefined) return;
    if (note.type === "outcome_kept") {
      task.attempt = note.attempt;
      task.kept = { outcome: note.outcome, payload: note.payload };
      return;
    }
    task.attempt = note.attempt + 1;
    task.lost ||= note.type === "attempt_lost";
    task.retryAt = note.type === "attempt_failed" ? note.retryAt : undefined;
  }

  /** Take an open item out because its answer is here. Without one it is a divergence: an outcome nobody asked for. */
  #close(id: number, ...types: readonly DurableFuture<unknown>["type"][]): OpenItem | undefined {
    const item = this.#open.get(id);
    if (item === undefined || !types.includes(item.future.type)) {
      this.#remember(
        this.#divergence(
          this.#recorded[this.#seq - 1 - this.#options.baseSeq],
          `nothing open with number ${id}`,
        ),
      );
      return undefined;
    }
    this.#open.remove(id);
    return item;
  }

  #drop(id: number): void {
    const task = this.#open.remove(id)?.task;
    if (task === undefined) return;
    const fresh = this.#freshTasks.indexOf(task);
    if (fresh !== -1) this.#freshTasks.splice(fresh, 1);
    else this.#freshWithdrawn.push(id);
  }

  /** K2a: a name with an open consuming wait is spoken for. */
  #refuseIfConsuming(pattern: string, line?: string): void {
    if (this.#open.waitCount === 0) return;
    const matches = signalPattern(pattern);
    for (const item of this.#open.values()) {
      // Answers to questions have names that nobody can ask for.
      if (item.future.type !== "signal" || item.name === undefined || !matches(item.name)) continue;
      throw this.#fail(signalIsSpokenFor(pattern, item, line ?? callerLine()));
    }
  }

  #entryNumber(entryId: string): number {
    const prefix = `${this.#sessionId}-`;
    const digits = entryId.startsWith(prefix) ? entryId.slice(prefix.length) : "";
    const id = /^\d{1,15}$/.test(digits) ? Number(digits) : Number.NaN;
    // Those of before the checkpoint are not in memory: storage knows them.
    if (id < this.#options.baseId || this.#entryIds.has(id)) return id;
    throw this.#fail(foreignEntry(entryId, this.#sessionId, callerLine()));
  }

  #moment(time: number): number {
    const at = momentOf(time);
    if (at === undefined) throw this.#fail(timerWithoutTime(time, callerLine()));
    return at;
  }

  /** When a wait gives up; `Infinity` is never. */
  #momentAfter(ms: number | undefined): number | undefined {
    return ms === undefined || ms === Infinity ? undefined : this.#moment(this.#now + ms);
  }

  #encode(value: unknown, what: string): JsonText | undefined {
    return this.#checked(() => this.#encodeQuietly(value, what));
  }

  /** The result of a check, whose error is remembered. */
  #checked<T>(check: () => T): T {
    try {
      return check();
    } catch (error) {
      throw this.#fail(error as HoldfastError);
    }
  }

  #encodeQuietly(value: unknown, what: string): JsonText | undefined {
    const text = encodeJson(value, what);
    const max = this.#options.limits.payloadChars;
    if (text !== undefined && text.length > max && this.#slice === "live") {
      throw new LimitError(
        "payloadChars",
        `${what} is ${text.length} characters of JSON, and at most ${max} are kept`,
        {
          got: `${text.length} characters`,
          fix: "keep large content in a file and record its path, or raise the limit",
        },
      );
    }
    return text;
  }

  /** K2, K4: nobody may ask outside a slice, nor go on after a fault, a checkpoint or the end. */
  #guard(): void {
    if (this.#fault !== undefined) throw this.#fault;
    if (this.#slice === "none")
      throw this.#strayFault(
        "the agent asked for something after awaiting what is not durable",
        callerLine(),
      );
    if (this.#closed || this.#checkpoint !== undefined || this.#ending !== undefined) {
      throw this.#fail(
        askedTooLate(this.#checkpoint === undefined ? "the end" : "ctx.checkpoint()", callerLine()),
      );
    }
  }

  /** Limits are for new commands only: what is recorded replays under any (K5). */
  #countCommand(): void {
    if (this.#slice === "live" && ++this.#sliceCommands > this.#options.limits.commandsPerSlice) {
      const { commandsPerSlice } = this.#options.limits;
      throw this.#fail(
        limitReached(
          "commandsPerSlice",
          commandsPerSlice,
          "await what was asked for, in portions",
          callerLine(),
        ),
      );
    }
  }

  #divergence(recorded: JournalRecord | undefined, attempted: string, line?: string): NondeterminismError {
    const where = { sessionId: this.#sessionId, seq: this.#seq, line };
    return new NondeterminismError(where, describeRecord(recorded), attempted);
  }

  #strayFault(what: string, line: string | undefined): HoldfastError {
    const first = this.#fault === undefined && !this.#closed;
    const fault = nonDurableAwait(`${what} (session ${this.#sessionId})`, line);
    if (first) {
      this.#remember(fault);
      this.#options.onStrayFault();
    }
    return fault;
  }

  /** Remember an error of ours, so that an agent that swallows it cannot commit (K4), and give it back to be thrown. */
  #fail<E extends HoldfastError>(fault: E): E {
    this.#remember(fault);
    return fault;
  }

  #remember(fault: HoldfastError): void {
    this.#fault ??= fault;
  }
}
