// `Kernel`: replays and drives one agent. Outcomes go in, commands come out.
//
// Pure: it knows no clock, storage, process or timer. It has two doors. `deliver` takes one outcome inside a
// slice, and `seal` returns everything that was asked for since the last seal. The runtime opens and closes
// slices and decides what to deliver. `asks.ts` has the asks of agents, and `turn.ts` says what an agent may
// still ask for. `journal-cursor.ts` has the places in the journal (K1, K3), and `segment.ts` the contents of
// a segment. `kernel-ending.ts` ends the turn. This file decides when each is used.
//
//   K2.  Outcomes are delivered one at a time, each in a slice of its own; a command outside a slice is a fault.
//   K4.  An unanswered wait never settles. A fault is remembered: `seal` refuses even if the agent caught it.
//   K5.  An outcome or an end that is not the recorded one is a divergence, with both sides.
//   H11. The agent's present is that of the last delivery, and what arrives in a slice is seen from the next
//       on.
//   K14. Repeats of a call with the same result are first warned about, and later held for a person.

import { Asks } from "../asks/asks.ts";
import { ChildAsks } from "../asks/child-asks.ts";
import { SessionRelations } from "../asks/session-relations.ts";
import { WaitAsks } from "../asks/wait-asks.ts";
import { CancelledError, HoldfastError, invariant, WaitTimeoutError } from "../errors/errors.ts";
import {
  isEvent,
  isNote,
  noticeOf,
  type ChildRequest,
  type EventRecord,
  type NoteRecord,
} from "../journal/record.ts";
import { isPatchMark } from "../journal/patch-mark.ts";
import { requestingChild } from "../journal/signal-names.ts";
import { decodeJson } from "../json/json.ts";
import { ConversationTip } from "../replay/conversation-tip.ts";
import { FaultMemory } from "../replay/fault-memory.ts";
import { strayFault } from "../replay/faults.ts";
import type { DurableFuture } from "../replay/future.ts";
import { JournalCursor, type Draft } from "../replay/journal-cursor.ts";
import type { KernelOptions } from "../replay/kernel-options.ts";
import { OpenItems, type OpenItem } from "../replay/open-items.ts";
import { PendingSignals } from "../replay/pending-signals.ts";
import { Segment, type SealedSegment } from "../replay/segment.ts";
import { Turn, type Standstill } from "../replay/turn.ts";
import type { StoredSignal } from "../session/changes.ts";
import { KernelEnding } from "./kernel-ending.ts";
import { RepeatGuard, taskFailure, type TaskOutcome } from "./repeat-guard.ts";

export class Kernel {
  /** The asks of the agent, for its context. */
  readonly asks: Asks;
  /** The asks of the agent that concern other sessions. */
  readonly children: ChildAsks;
  /** K14. */
  readonly repeats: RepeatGuard;
  readonly #options: KernelOptions;
  readonly #faults = new FaultMemory();
  readonly #segment: Segment;
  readonly #cursor: JournalCursor;
  readonly #tip: ConversationTip;
  readonly #open = new OpenItems();
  readonly #pending = new PendingSignals({
    onFirst: (name) => this.#open.noteArrived(name),
  });
  readonly #turn: Turn;
  readonly #ending: KernelEnding;
  /** Signals that arrived while a slice is open. A probe must answer the same until its end (H11). */
  readonly #offered: StoredSignal[] = [];
  #cancelledWaits = 0;

  constructor(options: KernelOptions) {
    this.#options = options;
    const [faults, open, pending] = [this.#faults, this.#open, this.#pending];
    open.isCancelled = options.cancel !== undefined;
    const segment = (this.#segment = new Segment(options.baseSeq + options.recorded.length));
    const cursor = (this.#cursor = new JournalCursor(options, segment, faults));
    const tip = (this.#tip = new ConversationTip(options));
    const turn = (this.#turn = new Turn({ options, faults, segment, cursor, open }));
    const parts = { options, faults, segment, cursor, open, tip, pending, turn };
    const relations = new SessionRelations(parts);
    const waits = new WaitAsks(parts, relations);
    const children = (this.children = new ChildAsks(parts, relations, waits));
    const asks = (this.asks = new Asks(parts, waits));
    const repeats = (this.repeats = new RepeatGuard(options));
    this.#ending = new KernelEnding({ ...parts, asks, children, repeats });
    pending.begin(options.signals);
  }

  // ---- views, which are not to be changed
  // --------------------------------------------------------------------------

  get fault(): HoldfastError | undefined {
    return this.#faults.first;
  }

  /** The place in the journal. */
  get cursor(): Pick<JournalCursor, "id" | "replaying" | "seq" | "takeDrift"> {
    return this.#cursor;
  }

  /** Everything since the last seal. */
  get segment(): Pick<Segment, "chars" | "isEmpty" | "opensTasks" | "salvage"> {
    return this.#segment;
  }

  /** The end of the conversation. */
  get tip(): Pick<ConversationTip, "count" | "leaf"> {
    return this.#tip;
  }

  get turn(): Readonly<Pick<Turn, "cancel" | "closed" | "fail" | "number" | "withdraw">> {
    return this.#turn;
  }

  /** The open items, for starting tasks, arming timers and showing waits. */
  get open(): Pick<OpenItems, "get" | "tasks" | "taskCount" | "unanswered" | "waits" | "wakeAt"> {
    return this.#open;
  }

  /** Signals that are not consumed yet. After a checkpoint they are the next kernel's. */
  get pending(): PendingSignals {
    return this.#pending;
  }

  /** The agent's present (H11): the time of the last delivery or, before one, of the last checkpoint. */
  get now(): number {
    return Math.max(this.#cursor.now, this.#options.notBefore ?? 0);
  }

  // ---- for the runtime: replay, slices, delivery
  // -------------------------------------------------------------------

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
      } else if (isPatchMark(record)) {
        this.#cursor.passCommand(); // journal-cursor-1.
      } else {
        // mutant: missing-command-unseen
        this.#faults.remember(this.#cursor.divergence(record, "nothing more, or to wait for an outcome"));
        return undefined;
      }
    }
  }

  /** Begin a slice: until `closeSlice`, and only then, the agent may ask. */
  openSlice(): void {
    invariant(
      this.#cursor.slice === "none",
      `session ${this.#options.sessionId}: a slice was opened inside a slice`,
    );
    this.#cursor.openSlice();
  }

  /**
   * Deliver one outcome, recorded (as `nextRecorded` gave it) or new. Only in a slice.
   *
   * @param start calls the agent's function; used by the `started` event.
   */
  deliver(event: Draft<EventRecord> | EventRecord, start?: () => Promise<unknown>): void {
    invariant(this.#cursor.slice !== "none", `session ${this.#options.sessionId}: delivery outside a slice`);
    this.#cursor.passEvent(event);
    switch (event.type) {
      case "started":
        invariant(start !== undefined, "started without an agent to start");
        return this.#ending.startAgent(start);
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
        return this.#ending.failsUnobserved(future, error);
      }
      case "timer_fired":
        this.#close(event.timer, "timer")?.future.fulfil(undefined);
        return;
      case "signal_received": {
        // mutant: signal-not-consumed
        if (this.#cursor.slice === "live") this.#segment.consume(event.signalId);
        const item = this.#close(event.wait, "signal", "input");
        const payload = decodeJson(event.payload);
        if (item?.name !== undefined) this.children.ends.received(item.name, payload);
        item?.future.fulfil(payload);
        return;
      }
      case "request_received":
        if (this.#cursor.slice === "live") this.#segment.consume(event.signalId);
        this.children.handle(decodeJson(event.payload) as ChildRequest, this.asks.tasks);
        return;
      case "forked":
        return this.#ending.leaveOrigin(event.seed, event.tasks);
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
        item?.future.reject(new CancelledError(item.future.label, this.#turn.cancel?.reason));
        return;
      }
      case "cancel_requested":
        return this.#ending.requestCancel(noticeOf(event));
    }
  }

  /** End the slice: the agent is at a standstill. Returns which one. */
  closeSlice(): Standstill {
    invariant(this.#cursor.slice !== "none", `session ${this.#options.sessionId}: no slice to close`);
    try {
      if (this.#faults.first === undefined) this.#ending.settle();
      if (this.#faults.first === undefined) this.#cursor.refuseIfLarge();
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      this.#faults.remember(error);
    }
    const replayed = this.#cursor.slice === "replay";
    this.#cursor.closeSlice();
    if (this.#offered.length > 0) for (const signal of this.#offered.splice(0)) this.#pending.add(signal);
    if (replayed && this.#faults.first === undefined && !this.#cursor.replaying)
      this.#cursor.checkReplayEnd();
    const fault = this.#faults.first;
    const turn = this.#turn;
    if (fault !== undefined) {
      turn.closed = true;
      return { type: "faulted", fault };
    }
    if (!turn.closed) return this.#open.size === 0 ? { type: "nothing" } : { type: "open" };
    const { checkpoint, ending, number } = turn;
    if (checkpoint !== undefined)
      return { type: "checkpointed", state: this.#options.state.after(this.#cursor.seq - 1), turn: number };
    invariant(ending !== undefined, "closed without a checkpoint or an end");
    return { type: "ended", ending };
  }

  /**
   * Everything since the last seal, to be committed. Call at a standstill.
   *
   * @throws the fault, if there is one.
   */
  seal(): SealedSegment {
    invariant(this.#cursor.slice === "none", `session ${this.#options.sessionId}: sealed inside a slice`);
    if (this.#faults.first !== undefined) throw this.#faults.first; // K4.
    return this.#segment.seal(this.#cursor.seq);
  }

  /** Add a fact that is not delivered. Only at a standstill, when nothing is left to replay. */
  note(note: Draft<NoteRecord>): void {
    const isStill = this.#cursor.slice === "none" && !this.#cursor.replaying;
    invariant(isStill, `session ${this.#options.sessionId}: a note inside a slice or replay`);
    this.#open.readNote(this.#cursor.addNote(note));
  }

  /** Fault the session from outside: it was blocked on nothing durable for too long. */
  faultBlockedOnNothing(): void {
    const what = `the agent of session ${this.#options.sessionId} awaits something that is not durable, and nothing else`;
    this.#faults.remember(strayFault(what, this.#options.whereabouts?.().outsideCall));
    this.#turn.closed = true;
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
    if (!this.#pending.hasRequest || this.#turn.checkpoint !== undefined) return false;
    // mutant: waited-child-unanswered
    return this.#turn.ending === undefined || this.children.ends.isAwaited;
  }

  #nextRequest(at: number): Draft<EventRecord> | undefined {
    const signal = this.#hasRequest() ? this.#pending.takeRequest() : undefined;
    if (signal === undefined) return undefined;
    const { signalId, payload } = signal;
    return { type: "request_received", child: requestingChild(signal.name), signalId, at, payload };
  }

  /** `undefined` once a checkpoint was asked for, which leaves the signals of waits to the next turn. */
  #answeredWait(): OpenItem | undefined {
    if (this.#open.waitCount === 0 || this.#turn.checkpoint !== undefined) return undefined;
    return this.#open.firstAnswered((item) => this.#isToBeCancelled(item), this.#pending);
  }

  #isToBeCancelled(item: OpenItem): boolean {
    if (this.#turn.cancel === undefined || item.task !== undefined || item.sheltered === true) return false;
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

  /** K14. Whether a person is asked before this outcome is delivered. */
  #isHeldBack(item: OpenItem, outcome: TaskOutcome, handOver: () => void): boolean {
    // An agent that is ending or being cancelled does not loop any more.
    const { ending, checkpoint, cancel } = this.#turn;
    const isEnding = ending ?? checkpoint ?? cancel ?? this.#faults.first;
    const asks = isEnding === undefined ? this.asks.waits : undefined;
    const isLive = this.#cursor.slice === "live";
    try {
      return this.repeats.holdsBack({ item, outcome, handOver, asks, isLive, self: this.#cursor.self });
    } catch (error) {
      if (this.#faults.first === undefined) throw error;
      return true; // K4. The recorded run asked nothing here: the fault is reported at the standstill.
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
}
