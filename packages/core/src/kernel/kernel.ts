// `Kernel`: replays and drives one agent. Outcomes go in, commands come out.
//
// Pure: it knows no clock, storage, process or timer. It has two doors. `deliver` takes one outcome inside a
// slice, and `seal` returns everything that was asked for since the last seal. The runtime opens and closes
// slices and decides what to deliver. `asks.ts` has the asks of agents, `journal-cursor.ts` their places in
// the journal (K1, K3), `segment.ts` the contents of a segment. This file decides when each is used.
//
//   K2.  Outcomes are delivered one at a time, each in a slice of its own; a command outside a slice is a fault.
//   K4.  An unanswered wait never settles. A fault is remembered: `seal` refuses even if the agent caught it.
//   K5.  An outcome or an end that is not the recorded one is a divergence, with both sides.
//   K7.  A checkpoint or an end closes the kernel; what comes after is another kernel.
//   H11. The agent's present is that of the last delivery, and what arrives in a slice is seen from the next on.
//   K14. Repeats of a call with the same result are first warned about, and later held for a person.
//   K13. After a return, unobserved tasks are awaited until a cancel; everything else is withdrawn.

import { CancelledError, HoldfastError, invariant, recordError, WaitTimeoutError } from "../errors/errors.ts";
import { decodeJson, type JsonText } from "../json/json.ts";
import {
  isEvent,
  isNote,
  noticeOf,
  type CancelNotice,
  type ChildRequest,
  type EventRecord,
  type NoteRecord,
} from "../journal/record.ts";
import { requestingChild } from "../journal/signal-names.ts";
import type { StoredSignal } from "../session/changes.ts";
import { BEHAVIOUR } from "../session/session.ts";
import { Asks, type AskDoor } from "../asks/asks.ts";
import { callerLine } from "../errors/author-line.ts";
import { ChildAsks } from "../asks/child-asks.ts";
import { encodeWithin } from "../asks/checks.ts";
import { ConversationTip } from "../replay/conversation-tip.ts";
import { FaultMemory } from "../replay/fault-memory.ts";
import {
  askedTooLate,
  checkpointNotAwaited,
  checkpointWithoutProgress,
  ENDED_ASTRAY,
  isMistake,
  mistakeOf,
  strayFault,
} from "../replay/faults.ts";
import type { DurableFuture } from "../replay/future.ts";
import { JournalCursor, type Draft } from "../replay/journal-cursor.ts";
import type { KernelOptions } from "../replay/kernel-options.ts";
import { OpenItems, type OpenItem } from "../replay/open-items.ts";
import { PendingSignals } from "../replay/pending-signals.ts";
import { RepeatGuard, taskFailure, type TaskOutcome } from "./repeat-guard.ts";
import { Segment, type SealedSegment } from "../replay/segment.ts";
import type { CheckpointRequest, Ending, Standstill } from "../replay/standstill.ts";

export class Kernel {
  /** The asks of the agent, for its context. */
  readonly asks: Asks;
  /** The asks of the agent that concern other sessions. */
  readonly children: ChildAsks;
  /** K14. */
  readonly repeats: RepeatGuard;
  readonly #options: KernelOptions;
  readonly #sessionId: string;
  readonly #faults = new FaultMemory();
  readonly #segment: Segment;
  readonly #cursor: JournalCursor;
  readonly #tip: ConversationTip;
  readonly #open = new OpenItems();
  readonly #pending = new PendingSignals({
    onFirst: (name) => this.#open.noteArrived(name),
  });
  /** Signals that arrived while a slice is open. A probe must answer the same until its end (H11). */
  readonly #offered: StoredSignal[] = [];

  #closed = false;
  #ending: Ending | undefined;
  #checkpoint: CheckpointRequest | undefined;
  #cancel: CancelNotice | undefined;
  #cancelledWaits = 0;
  #turn: number;
  #now = 0;
  #deliveries = 0;

  constructor(options: KernelOptions) {
    this.#options = options;
    this.#sessionId = options.sessionId;
    this.#segment = new Segment(options.baseSeq + options.recorded.length);
    this.#cursor = new JournalCursor(options, this.#segment, this.#faults);
    this.#tip = new ConversationTip(options);
    this.#cancel = options.cancel;
    this.#open.isCancelled = options.cancel !== undefined;
    this.#turn = options.turn;
    this.repeats = new RepeatGuard(options);
    const door: AskDoor = {
      options,
      cursor: this.#cursor,
      segment: this.#segment,
      open: this.#open,
      pending: this.#pending,
      tip: this.#tip,
      faults: this.#faults,
      guard: () => this.#guard(),
      isClosed: () => this.#closed,
      isLeaving: () => this.#isLeaving,
      listening: () => this.children.listening(),
      isCancelRequested: () => this.#cancel !== undefined,
      now: () => this.#now,
      turn: () => this.#turn,
      drop: (id) => this.#drop(id),
      encode: (value, what) => this.#encode(value, what),
      encodeFor: (value, what) => this.#encodeFor(value, what),
      mustProgress: () => this.#deliveries === 1 && options.turn > 0,
      checkpoint: (request) => void (this.#checkpoint = request),
      endByHandOver: () => {
        this.#ending ??= { type: "returned", output: undefined };
      },
    };
    this.asks = new Asks(door);
    this.children = new ChildAsks(door);
    this.#pending.begin(options.signals);
  }

  // ---- for the runtime: replay, slices, delivery -------------------------------------------------------------------

  /** Whether recorded outcomes are left to deliver. */
  get replaying(): boolean {
    return this.#cursor.replaying;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get fault(): HoldfastError | undefined {
    return this.#faults.first;
  }

  get turn(): number {
    return this.#turn;
  }

  get entryCount(): number {
    return this.#tip.count;
  }

  get leaf(): number | undefined {
    return this.#tip.leaf;
  }

  get cancelNotice(): CancelNotice | undefined {
    return this.#cancel;
  }

  get nextSeq(): number {
    return this.#cursor.seq;
  }

  get nextId(): number {
    return this.#cursor.id;
  }

  get dirty(): boolean {
    return !this.#segment.isEmpty;
  }

  /** The length of all texts that a seal would take. */
  get segmentChars(): number {
    return this.#segment.chars;
  }

  /** The agent's present (H11): the time of the last delivery or, before one, of the last checkpoint. */
  get now(): number {
    return Math.max(this.#now, this.#options.notBefore ?? 0);
  }

  /**
   * The next recorded outcome; notes are applied on the way. `undefined` at the journal's end, or when the
   * agent asked for fewer commands than recorded (then `fault` is set).
   */
  nextRecorded(): EventRecord | undefined {
    for (;;) {
      const record = this.#cursor.here;
      if (record === undefined) return undefined;
      if (isNote(record)) {
        this.#open.readNote(record);
        this.#cursor.passNote();
      } else if (isEvent(record)) {
        return record;
      } else {
        // mutant: missing-command-unseen
        this.#faults.remember(this.#cursor.divergence(record, "nothing more, or to wait for an outcome"));
        return undefined;
      }
    }
  }

  /** Begin a slice: until `closeSlice`, and only then, the agent may ask. */
  openSlice(): void {
    invariant(this.#cursor.slice === "none", `session ${this.#sessionId}: a slice was opened inside a slice`);
    this.#cursor.openSlice();
  }

  /**
   * Deliver one outcome, recorded (as `nextRecorded` gave it) or new. Only in a slice.
   *
   * @param start calls the agent's function; used by the `started` event.
   */
  deliver(event: Draft<EventRecord> | EventRecord, start?: () => Promise<unknown>): void {
    invariant(this.#cursor.slice !== "none", `session ${this.#sessionId}: delivery outside a slice`);
    this.#cursor.passEvent(event);
    // mutant: clock-goes-back
    this.#now = Math.max(this.#now, event.at); // The wall clock may go back; the agent's present does not.
    this.#deliveries++;
    switch (event.type) {
      case "started":
        invariant(start !== undefined, "started without an agent to start");
        this.#startAgent(start);
        return;
      case "task_completed": {
        const item = this.#close(event.task, "task");
        const handOver = (): void => item?.future.fulfil(decodeJson(event.payload));
        if (item?.task?.request !== undefined)
          this.children.reply(item.task.request, `{"output":${event.payload ?? "null"}}`);
        else if (item === undefined || !this.#isHeldBack(item, event, handOver)) handOver();
        return;
      }
      case "task_failed": {
        const item = this.#close(event.task, "task");
        if (item?.task === undefined) return;
        const { task, future } = item;
        if (task.request !== undefined)
          return this.children.reply(task.request, `{"error":${event.payload ?? "null"}}`);
        const error = taskFailure(this.#cursor.self, task, event.attempt, decodeJson(event.payload));
        if (this.#isHeldBack(item, event, () => future.reject(error))) return;
        future.reject(error);
        // K13: after the agent returned, a task nobody observed decides the session.
        if (this.#ending?.type === "returned" && !future.observed) {
          this.#ending = { type: "threw", error: recordError(error) };
        }
        return;
      }
      case "timer_fired":
        this.#close(event.timer, "timer")?.future.fulfil(undefined);
        return;
      case "signal_received": {
        // mutant: signal-not-consumed
        if (this.#cursor.slice === "live") this.#segment.consume(event.signalId);
        const item = this.#close(event.wait, "signal", "input");
        const payload = decodeJson(event.payload);
        if (item?.name !== undefined) this.children.heard(item.name, payload);
        item?.future.fulfil(payload);
        return;
      }
      case "request_received":
        if (this.#cursor.slice === "live") this.#segment.consume(event.signalId);
        this.children.handle(decodeJson(event.payload) as ChildRequest, this.asks);
        return;
      case "forked":
        return this.#goOnAlone(event.seed, event.tasks);
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
        return this.#requestCancel(noticeOf(event));
    }
  }

  /** End the slice: the agent is at a standstill. Returns which one. */
  closeSlice(): Standstill {
    invariant(this.#cursor.slice !== "none", `session ${this.#sessionId}: no slice to close`);
    try {
      if (this.#faults.first === undefined) this.#settleSegment();
      if (this.#faults.first === undefined) this.#cursor.refuseIfLarge();
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      this.#faults.remember(error);
    }
    const replayed = this.#cursor.slice === "replay";
    this.#cursor.closeSlice();
    if (this.#offered.length > 0) for (const signal of this.#offered.splice(0)) this.#pending.add(signal);
    if (replayed && this.#faults.first === undefined && !this.replaying) this.#cursor.checkReplayEnd();
    const fault = this.#faults.first;
    if (fault !== undefined) {
      this.#closed = true;
      return { type: "faulted", fault };
    }
    if (this.#closed) {
      if (this.#checkpoint !== undefined)
        return {
          type: "checkpointed",
          state: this.#options.state.after(this.#cursor.seq - 1),
          turn: this.#turn,
        };
      invariant(this.#ending !== undefined, "closed without a checkpoint or an end");
      return { type: "ended", ending: this.#ending };
    }
    return this.#open.size === 0 ? { type: "nothing" } : { type: "open" };
  }

  /**
   * Everything since the last seal, to be committed. Call at a standstill.
   *
   * @throws the fault, if there is one.
   */
  seal(): SealedSegment {
    invariant(this.#cursor.slice === "none", `session ${this.#sessionId}: sealed inside a slice`);
    if (this.#faults.first !== undefined) throw this.#faults.first; // K4.
    return this.#segment.seal(this.#cursor.seq);
  }

  /** The part of the segment that is kept after a fault (K6). */
  salvage(at: number): SealedSegment {
    return this.#segment.salvage(at);
  }

  /** Add a fact that is not delivered. Only at a standstill, when nothing is left to replay. */
  note(note: Draft<NoteRecord>): void {
    const isStill = this.#cursor.slice === "none" && !this.replaying;
    invariant(isStill, `session ${this.#sessionId}: a note inside a slice or replay`);
    this.#open.readNote(this.#cursor.addNote(note));
  }

  /** Positions whose recorded results are used for changed inputs. Each is returned once. */
  takeDrift(): readonly number[] {
    return this.#cursor.takeDrift();
  }

  /** Fault the session from outside: it was blocked on nothing durable for too long. */
  faultStandingOnNothing(): void {
    const what = `the agent of session ${this.#sessionId} awaits something that is not durable, and nothing else`;
    this.#faults.remember(strayFault(what, this.#options.whereabouts?.().outsideCall));
    this.#closed = true;
  }

  /** A signal arrived. It is seen by the agent from its next slice on. */
  offer(signal: StoredSignal): void {
    // mutant: probe-sees-new-signal
    if (this.#cursor.slice === "none") this.#pending.add(signal);
    else this.#offered.push(signal);
  }

  /**
   * The next outcome that the kernel itself knows: of an open wait whose signal is pending, or of a wait
   * after a graceful cancel. In the order in which the waits were asked for.
   */
  nextOwn(at: number): Draft<EventRecord> | undefined {
    const item = this.#answeredWait();
    if (item === undefined) return this.#nextRequest(at);
    const wait = item.future.id;
    if (this.#isToBeCancelled(item)) return { type: "wait_cancelled", wait, at };
    if (item.future.type === "signal_ready") return { type: "signal_ready", wait, at };
    const signal = item.name === undefined ? undefined : this.#pending.take(item.name);
    invariant(signal !== undefined, "a pending signal vanished");
    return { type: "signal_received", wait, signalId: signal.signalId, at, payload: signal.payload };
  }

  /** Whether `nextOwn` would return an outcome. */
  get hasOwn(): boolean {
    return this.#answeredWait() !== undefined || this.#hasRequest();
  }

  /** No request is handled after an asked checkpoint, or after an end that awaits no children. */
  #hasRequest(): boolean {
    if (!this.#pending.hasRequest || this.#checkpoint !== undefined) return false;
    // mutant: waited-child-unanswered
    return this.#ending === undefined || this.children.awaitsEnd;
  }

  #nextRequest(at: number): Draft<EventRecord> | undefined {
    const signal = this.#hasRequest() ? this.#pending.takeRequest() : undefined;
    if (signal === undefined) return undefined;
    const { signalId, payload } = signal;
    return { type: "request_received", child: requestingChild(signal.name), signalId, at, payload };
  }

  /** `undefined` once a checkpoint was asked for, which leaves the signals of waits to the next turn. */
  #answeredWait(): OpenItem | undefined {
    if (this.#open.waitCount === 0 || this.#checkpoint !== undefined) return undefined;
    return this.#open.firstAnswered((item) => this.#isToBeCancelled(item), this.#pending);
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

  /** The open items, for starting tasks, arming timers and showing waits. Not to be changed. */
  get open(): Pick<OpenItems, "get" | "tasks" | "taskCount" | "unanswered" | "waits" | "wakeAt"> {
    return this.#open;
  }

  /** Signals that are not consumed yet. After a checkpoint they are the next kernel's. */
  get pending(): PendingSignals {
    return this.#pending;
  }

  // ---- inside ------------------------------------------------------------------------------------------------------

  #startAgent(start: () => Promise<unknown>): void {
    const settle = (ending: () => Ending, thrown?: unknown) => {
      if (this.#closed || this.#ending !== undefined) return;
      if (this.#cursor.slice === "none") return void this.#strayFault(ENDED_ASTRAY, undefined, thrown);
      this.#ending = ending();
    };
    start().then(
      (output) =>
        settle(() => {
          try {
            return { type: "returned", output: this.#encode(output, "the agent's output") };
          } catch (error) {
            return this.#threw(error);
          }
        }),
      (error: unknown) => settle(() => this.#threw(error), error),
    );
  }

  /**
   * K4. A mistake in the agent's code is a fault and not its end. Nothing of the segment is committed and the
   * session parks, until the code is fixed. A session that is being cancelled ends instead.
   */
  #threw(error: unknown): Ending {
    if (this.#cancel === undefined && isMistake(error))
      this.#faults.remember(mistakeOf(error, this.#options));
    return { type: "threw", error: recordError(error) };
  }

  /** K14. Whether a person is asked before this outcome is delivered. */
  #isHeldBack(item: OpenItem, outcome: TaskOutcome, handOver: () => void): boolean {
    // An agent that is ending or being cancelled does not loop any more.
    const isEnding = this.#ending ?? this.#checkpoint ?? this.#cancel ?? this.#faults.first;
    const asks = isEnding === undefined ? this.asks : undefined;
    const isLive = this.#cursor.slice === "live";
    try {
      return this.repeats.holdsBack({ item, outcome, handOver, asks, isLive, self: this.#cursor.self });
    } catch (error) {
      if (this.#faults.first === undefined) throw error;
      return true; // K4. The recorded run asked nothing here: the fault is reported at the standstill.
    }
  }

  /** Apply what the agent did to its session in this slice: a checkpoint or its end. */
  #settleSegment(): void {
    if (this.#checkpoint !== undefined && this.#ending === undefined) {
      const { taskCount, requestCount } = this.#open;
      if ((this.#checkpoint.cancelTasks ? requestCount : taskCount) > 0) return;
      const { state } = this.#options;
      if (this.#deliveries === 1 && this.#options.turn > 0 && !this.asks.tookSignals && !state.hasChanged)
        throw checkpointWithoutProgress(this.#checkpoint.line);
      const { payload, base, version } = this.#checkpoint.state;
      // mutant: checkpoint-leaves-tasks
      this.#withdrawAll();
      this.#turn++;
      this.#cursor.append({
        type: "checkpoint",
        at: this.#now,
        turn: this.#turn,
        entryCount: this.#tip.count,
        ...(this.#tip.leaf === undefined ? {} : { leaf: this.#tip.leaf }),
        ...(base === undefined ? {} : { base }),
        ...(version === undefined ? {} : { schemaVersion: version }),
        ...(this.#cancel === undefined ? {} : { cancel: this.#cancel }),
        ...(this.children.awaited.length === 0 ? {} : { awaited: this.children.awaited }),
        ...(this.repeats.seen.length === 0 ? {} : { repeats: this.repeats.seen }),
        payload,
      });
      this.#closed = true;
      return;
    }
    if (this.#ending === undefined) return;
    if (this.#checkpoint !== undefined && this.#ending.type === "returned") throw checkpointNotAwaited();
    if (this.#ending.type === "returned") {
      const rest = this.#open.besideReturn(this.children.awaitsEnd);
      this.#withdrawQuietly(rest.filter((future) => !this.children.isEndWait(future)));
      this.children.awaitEnds(this.asks);
      if (this.#open.size > 0) return;
      const handedOffTo = this.#cancel === undefined ? this.children.handOver() : undefined;
      if (handedOffTo !== undefined)
        this.#ending = { type: "returned", output: JSON.stringify({ handedOffTo }), handedOffTo };
    } else {
      this.#withdrawAll();
    }
    this.#checkpoint = undefined;
    if (this.#ending.type === "returned")
      this.#cursor.append({ type: "complete", payload: this.#ending.output });
    else this.#cursor.append({ type: "fail", payload: JSON.stringify(this.#ending.error) });
    this.#closed = true;
  }

  /** Separate a fork from its origin: waits on others reject, and open tasks run again or are cancelled. */
  #goOnAlone(seed: number, tasks: "rerun" | "cancel"): void {
    this.asks.reseed(seed);
    this.children.goOnAlone(seed);
    for (const { future } of this.#open.ofOthers(tasks === "cancel")) {
      this.#drop(future.id);
      future.reject(new CancelledError(future.label, "the session was forked"));
    }
    for (const task of this.#open.startOver(this.#now))
      if (this.#cursor.slice === "live") this.#segment.addTask(task);
  }

  #withdrawAll(): void {
    this.#withdrawQuietly([...this.#open.values()].map((item) => item.future));
  }

  /** Withdraw without settling the futures. Code that awaits them hangs with the closed segment. */
  #withdrawQuietly(futures: readonly DurableFuture<unknown>[]): void {
    if (futures.length === 0) return;
    this.#cursor.append({ type: "withdraw", targets: futures.map((future) => future.id) });
    for (const future of futures) this.#drop(future.id);
  }

  #requestCancel(notice: CancelNotice): void {
    this.#cancel ??= notice;
    const mayEnd = (this.#options.relations.flags & BEHAVIOUR.endsWhenCancelled) !== 0;
    this.#open.requestCancel(mayEnd && this.#ending !== undefined);
    for (const item of this.#open.values()) {
      if (item.task !== undefined || item.sheltered === true) continue;
      this.#drop(item.future.id);
      item.future.reject(new CancelledError(item.future.label, notice.reason));
    }
  }

  /** Take an open item out because its answer is here. An outcome without an open item is a divergence. */
  #close(id: number, ...types: readonly DurableFuture<unknown>["type"][]): OpenItem | undefined {
    const item = this.#open.get(id);
    if (item === undefined || !types.includes(item.future.type)) {
      this.#faults.remember(this.#cursor.divergence(this.#cursor.passed, `nothing open with number ${id}`));
      return undefined;
    }
    this.#open.remove(id);
    return item;
  }

  #drop(id: number): void {
    const task = this.#open.remove(id)?.task;
    if (task !== undefined) this.#segment.withdrawTask(task);
  }

  #encodeFor(value: unknown, what: string): JsonText | undefined {
    try {
      return this.#encode(value, what);
    } catch (error) {
      throw this.#faults.failWith(error);
    }
  }

  #encode(value: unknown, what: string): JsonText | undefined {
    // Records replay under any limit (K5).
    return encodeWithin(
      value,
      what,
      this.#cursor.slice === "live" ? this.#options.limits.payloadChars : Infinity,
    );
  }

  /** K2, K4. Refuse asks outside a slice, and after a fault, a checkpoint or the end. */
  #guard(): void {
    if (this.#faults.first !== undefined) throw this.#faults.first;
    // mutant: stray-ask-allowed
    if (this.#cursor.slice === "none")
      throw this.#strayFault(
        "the agent asked for something after awaiting what is not durable",
        callerLine(),
      );
    if (!this.#isLeaving) return;
    const after = this.#checkpoint === undefined ? "the end" : "ctx.checkpoint()";
    throw this.#faults.fail(askedTooLate(after, callerLine()));
  }

  /** Whether the agent asked for a checkpoint or has ended. It may then ask for nothing more. */
  get #isLeaving(): boolean {
    return this.#closed || this.#checkpoint !== undefined || this.#ending !== undefined;
  }

  #strayFault(what: string, line: string | undefined, why?: unknown): HoldfastError {
    const first = this.#faults.first === undefined && !this.#closed;
    const fault = strayFault(`${what} (session ${this.#sessionId})`, line, this.#options, why);
    if (first) {
      this.#faults.remember(fault);
      this.#options.onStrayFault();
    }
    return fault;
  }
}
