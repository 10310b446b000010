// One live session: its kernel between the ports, from claim to release.
//
// States. *replaying*: recorded outcomes are delivered, nothing is committed. *live*: new outcomes are delivered, and at
// each standstill with nothing more to deliver the segment is sealed and submitted. *in flight*: a batch is submitted;
// nothing is delivered until it is answered (K2). *over*: ended, parked or abandoned; whatever still arrives is ignored.
//
//   D1. Tasks start, and aborts fire, only after the batch that asked for them is committed (K3, K6).
//   D2. Notes are added, and segments sealed, only at a standstill.
//   D4. When the driver is over, every attempt it started has been told to stop.
//
// It knows no storage and no other session: it submits changes and is told their results. What arrives is fetched by `inbox.ts`
// (D3), the attempts of tasks are in `attempts.ts`, what the row says in `session-row.ts`, and under what it commits in
// `session-claim.ts`.

import {
  decodeJson,
  HoldfastError,
  Kernel,
  positionId,
  toHoldfastError,
  validate,
  AgentContext,
  isEnded,
  isNote,
  type AgentContext as CoreAgentContext,
  type Arrivals,
  type ChangeResult,
  type Clock,
  type ConversationEntry,
  type Ending,
  type EventRecord,
  type Hash,
  type JsonText,
  type Limits,
  type PauseReason,
  type RecordedError,
  type SealedSegment,
  type Session,
  type SessionPatch,
  type SessionSnapshot,
  type TaskExecutor,
  type TraceBody,
  type TraceEvent,
} from "@holdfast/core";
import { Attempts, type AttemptsHost, type EventDraft, type NoteDraft } from "./attempts.ts";
import type { Agent } from "./define.ts";
import { Inbox, type InboxHost } from "./inbox.ts";
import { nextLife, storedLife, type KernelLife } from "./kernel-life.ts";
import { refusalOf, SessionClaim, type Creator, type Submit } from "./session-claim.ts";
import { endPatch, faultPatch, SessionRow } from "./session-row.ts";
import type { SliceLoop, SliceMember } from "./slice-loop.ts";
import { alarm, type Timers } from "./timers.ts";

/** How a session left this process. */
export type Departure =
  | {
      readonly type: "ended";
      readonly status: "completed" | "failed" | "cancelled";
      readonly output: JsonText | undefined;
      readonly error: RecordedError | undefined;
    }
  | { readonly type: "paused"; readonly reason: PauseReason; readonly fault: HoldfastError }
  /** Storage refused it, the claim was lost, or the runtime closed: the session is as its last commit left it. */
  | { readonly type: "abandoned"; readonly error: HoldfastError | undefined };

/** What a driver needs of the process around it. */
export interface DriverWorld {
  readonly loop: SliceLoop;
  readonly timers: Timers;
  readonly clock: Clock;
  readonly hash: Hash;
  readonly limits: Limits;
  readonly executor: TaskExecutor;
  /** Integers in [0, 2^32), for jitter. */
  readonly random: () => number;
  readonly submit: Submit;
  arrivals(sessionId: string, after: number): Promise<Arrivals>;
  conversation(sessionId: string, leaf: number): Promise<readonly ConversationEntry[]>;
  /** Whether anybody hears what is traced, besides `waiting`, which the runtime itself goes by. */
  readonly isTracing: boolean;
  trace(event: TraceEvent): void;
  /** Call the agent in a context in which its stray rejections can be told from others'. */
  enter<T>(sessionId: string, fn: () => T): T;
  /** The driver is over. Called once. */
  departed(driver: SessionDriver, departure: Departure): void;
}

export interface DriverOptions {
  readonly agent: Agent;
  readonly snapshot: SessionSnapshot;
  /** Of its claim; of a session that is yet to be created, what creates it with its first batch. */
  readonly claim: number | Creator;
  readonly acceptDrift: boolean;
}

export class SessionDriver implements SliceMember {
  readonly sessionId: string;
  readonly #world: DriverWorld;
  readonly #agent: Agent;
  readonly #session: Session;
  readonly #claim: SessionClaim;
  readonly #acceptDrift: boolean;
  readonly #outcomes: EventDraft[] = [];
  readonly #notes: NoteDraft[] = [];
  readonly #attempts: Attempts;
  readonly #inbox: Inbox;
  readonly #row: SessionRow;
  readonly #alarm = alarm(() => this.#world.loop.wake(this));
  readonly #nothingAlarm = alarm(() => this.#stoodOnNothing());
  readonly #cancelAlarm = alarm(() => this.#endOverdueCancel());

  #kernel: Kernel;
  #recovering: boolean;
  #startPending = true;
  #inSlice = false;
  #inFlight = false;
  #over = false;
  #deliveries = 0;
  #deliveredChars = 0;
  #cancelSeen = false;
  #stateText: JsonText | undefined;
  /** Whether the row may say something else than is so: after a recovery it is looked at even if nothing was done. */
  #rowStale: boolean;

  constructor(world: DriverWorld, { agent, snapshot, claim, acceptDrift }: DriverOptions) {
    const { session, signals } = snapshot;
    this.#world = world;
    this.#agent = agent;
    this.#session = session;
    this.#acceptDrift = acceptDrift;
    this.sessionId = session.sessionId;
    this.#claim = new SessionClaim(session.sessionId, claim, world.submit);
    this.#row = new SessionRow(session);
    const seen = Math.max(0, ...signals.map((signal) => signal.order), session.inbox);
    this.#inbox = new Inbox(this.#inboxHost(), seen);
    this.#attempts = new Attempts(this.#attemptsHost());
    this.#recovering = snapshot.records.length > 0;
    this.#rowStale = this.#recovering;
    this.#kernel = this.#makeKernel(storedLife(snapshot));
    this.#noticeCancel(session);
  }

  /** Begin. */
  start(): void {
    this.#trace({ type: "session_started", agent: this.#agent.name, recovered: this.#recovering });
    this.#world.loop.wake(this);
  }

  /** Something arrived for this session. */
  poke(): void {
    if (this.#over) return;
    this.#inbox.look();
  }

  /** Of its claim, once there is one. */
  get token(): number | undefined {
    return this.#claim.token;
  }

  /** Whether it only waits: nothing runs, nothing is to be delivered or committed. */
  get parked(): boolean {
    return (
      !this.#over &&
      !this.#inFlight &&
      !this.#startPending &&
      !this.#kernel.replaying &&
      this.#kernel.open.taskCount === 0 &&
      this.#outcomes.length === 0 &&
      this.#notes.length === 0 &&
      !this.#kernel.dirty
    );
  }

  /** Stop driving, leaving the session as its last commit left it. */
  abandon(): void {
    this.#abandon(undefined);
  }

  // ---- slices ------------------------------------------------------------------------------------------------------

  deliver(): boolean {
    if (this.#over || this.#inFlight) return false;
    try {
      const event = this.#next();
      if (this.#kernel.fault !== undefined) return true; // Dealt with at the standstill.
      if (event === undefined) return this.#kernel.dirty || this.#rowStale;
      this.#deliveries++;
      this.#deliveredChars += event.payload?.length ?? 0;
      this.#inSlice = true;
      this.#kernel.openSlice();
      this.#kernel.deliver(event, this.#startAgent);
      return true;
    } catch (thrown) {
      this.#crash(thrown);
      return false;
    }
  }

  standstill(): void {
    if (this.#over) return;
    try {
      const stands = this.#inSlice ? this.#kernel.closeSlice() : undefined;
      this.#inSlice = false;
      const fault = this.#kernel.fault;
      if (fault !== undefined) this.#settleFault(fault);
      else if (stands?.type === "checkpointed" || stands?.type === "ended") this.#seal(stands);
      else this.#goOn(stands?.type === "nothing");
    } catch (thrown) {
      this.#crash(thrown);
    }
  }

  /** What to deliver next, or nothing. Adds notes on the way, which is why it is only called at a standstill (D2). */
  #next(): EventRecord | EventDraft | undefined {
    const kernel = this.#kernel;
    if (kernel.replaying) {
      const recorded = kernel.nextRecorded();
      if (recorded !== undefined) {
        this.#startPending &&= recorded.type !== "started";
        return recorded;
      }
      if (kernel.fault !== undefined) return undefined;
    }
    const at = Math.max(this.#world.clock.now(), kernel.now);
    // Before anything new is asked: what is open now was recorded, and so may have been running.
    if (this.#recovering) this.#recover(at);
    if (this.#startPending) {
      this.#startPending = false;
      this.#trace({ type: "turn_started", turn: kernel.turn });
      return { type: "started", at };
    }
    if (this.#notes.length > 0) for (const note of this.#notes.splice(0)) kernel.note(note);
    if (this.#deliveries >= this.#world.limits.deliveriesPerSegment) return undefined;
    if (this.#deliveredChars > this.#world.limits.batchChars / 2) return undefined;
    this.#attempts.startDueRetries(at);
    this.#armAlarm();
    return this.#nextOutcome() ?? kernel.nextOwn(at) ?? kernel.nextDue(at);
  }

  /** The oldest outcome somebody still wants: a task may have been withdrawn since it ended. */
  #nextOutcome(): EventDraft | undefined {
    for (;;) {
      const event = this.#outcomes.shift();
      if (event === undefined) return undefined;
      const isTask = event.type === "task_completed" || event.type === "task_failed";
      if (!isTask || this.#kernel.open.get(event.task) !== undefined) return event;
    }
  }

  readonly #startAgent = (): Promise<unknown> => {
    const kernel = this.#kernel;
    const ctx = new AgentContext(kernel, {
      sessionId: this.sessionId,
      agentName: this.#agent.name,
      input: decodeJson(this.#session.input),
      state: decodeJson(this.#stateText),
    });
    const { name, main, output } = this.#agent;
    return this.#world.enter(this.sessionId, async () => {
      const returned = await main(ctx as CoreAgentContext<never>);
      return output === undefined
        ? returned
        : validate(output, returned, `output of agent "${name}"`, "invalid_output");
    });
  };

  #makeKernel(life: KernelLife): Kernel {
    this.#stateText = life.stateText;
    return new Kernel({
      ...life,
      sessionId: this.sessionId,
      seed: this.#session.seed,
      hash: this.#world.hash,
      limits: this.#world.limits,
      describeTask: (kind) => this.#world.executor.describe(kind),
      taskKinds: () => this.#world.executor.kinds(),
      acceptDrift: this.#acceptDrift,
      // Outside a slice nobody is looking: take the fault at the next one.
      onStrayFault: () => setImmediate(() => this.#settleStrayFault()),
    });
  }

  /** After a standstill that ended nothing: more to deliver, or time to commit. */
  #goOn(standsOnNothing: boolean): void {
    const kernel = this.#kernel;
    this.#watchForNothing(standsOnNothing && !kernel.replaying);
    if (kernel.replaying || this.#startPending || this.#recovering || this.#hasMore()) {
      this.#world.loop.wake(this);
      if (kernel.replaying || this.#startPending || this.#recovering) return;
      const full =
        this.#deliveries >= this.#world.limits.deliveriesPerSegment ||
        this.#deliveredChars > this.#world.limits.batchChars / 2;
      if (!full) return;
    }
    this.#seal(undefined);
  }

  #hasMore(): boolean {
    if (this.#outcomes.length > 0 || this.#notes.length > 0) return true;
    const wakeAt = this.#kernel.open.wakeAt;
    return (wakeAt !== undefined && wakeAt <= this.#world.clock.now()) || this.#kernel.hasOwn;
  }

  // ---- commits -----------------------------------------------------------------------------------------------------

  #seal(
    closing: { type: "checkpointed"; state: JsonText } | { type: "ended"; ending: Ending } | undefined,
  ): void {
    const segment = this.#kernel.seal();
    this.#deliveries = 0;
    this.#deliveredChars = 0;
    this.#rowStale = false;
    const patch =
      closing?.type === "ended"
        ? endPatch(closing.ending, this.#kernel.cancelNotice !== undefined)
        : this.#standPatch(closing !== undefined);
    if (segment.records.length === 0 && patch === undefined) {
      this.#armAlarm();
      return;
    }
    this.#commit(segment, patch, () => {
      if (closing?.type === "ended" && patch !== undefined) this.#end(patch);
      else if (closing?.type === "checkpointed") this.#nextTurn(segment, closing.state);
      else this.#afterCommit(segment);
    });
  }

  #commit(segment: SealedSegment, patch: SessionPatch | undefined, onCommitted: () => void): void {
    this.#inFlight = true;
    if (this.#row.isPaused) this.#unpause(segment.firstSeq);
    const onResult = (result: ChangeResult): void => {
      try {
        this.#answered(result, segment, onCommitted);
      } catch (thrown) {
        this.#crash(thrown); // The other sessions of the group are yet to be answered (K4a).
      }
    };
    this.#claim.commit(segment, patch, onResult, (error) => this.#abandon(error));
  }

  /** A person resumed it, and from `paused` nothing completes (L1). In the same group as what follows, which tells how it went. */
  #unpause(firstSeq: number): void {
    const nothing = { firstSeq, records: [], entries: [], consumed: [] };
    this.#claim.commit(
      nothing,
      this.#row.unpause(),
      () => {},
      () => {},
    );
  }

  #answered(result: ChangeResult, segment: SealedSegment, onCommitted: () => void): void {
    if (this.#over) return;
    this.#inFlight = false;
    if (result.status === "committed") {
      this.#trace({
        type: "committed",
        records: segment.records.length,
        nextSeq: segment.firstSeq + segment.records.length,
      });
      for (const { seq, role, content } of segment.entries) {
        this.#trace({ type: "entry_appended", entryId: positionId(this.sessionId, seq), role, content });
      }
      onCommitted();
      if (!this.#over && result.inbox > this.#inbox.seen) this.poke(); // D3.
      return;
    }
    this.#abandon(refusalOf(this.sessionId, result));
  }

  #afterCommit(segment: SealedSegment): void {
    this.#followUp(segment);
    this.#armAlarm();
    if (this.#hasMore() || this.#kernel.dirty) this.#world.loop.wake(this);
  }

  /** D1. */
  #followUp(segment: SealedSegment): void {
    if (segment.newTasks.length > 0) {
      // Entered once for all of them: each entering copies the process's contexts.
      this.#world.enter(this.sessionId, () => {
        for (const task of segment.newTasks) this.#attempts.start(task);
      });
    }
    for (const id of segment.withdrawnTasks) this.#attempts.abort(id, "its answer is no longer wanted");
    for (const record of segment.records) if (isNote(record)) this.#attempts.noted(record);
  }

  #nextTurn(segment: SealedSegment, stateText: JsonText): void {
    const last = this.#kernel;
    this.#attempts.abortAll("the checkpoint cancelled it");
    this.#trace({ type: "turn_ended", turn: last.turn - 1 });
    const cancels = this.#outcomes.filter((event) => event.type === "cancel_requested");
    this.#outcomes.splice(0, Infinity, ...cancels);
    this.#kernel = this.#makeKernel(nextLife(last, stateText));
    this.#startPending = true;
    this.#world.loop.wake(this);
  }

  #standPatch(isCheckpoint: boolean): SessionPatch | undefined {
    const kernel = this.#kernel;
    const isCancelling = kernel.cancelNotice !== undefined || this.#cancelSeen;
    const wakeAt = (): number | undefined => this.#wakeAt();
    const patch = this.#row.standing({ kernel, isCheckpoint, isCancelling, wakeAt });
    const waits = patch?.waits ?? [];
    if (waits.length > 0) this.#trace({ type: "waiting", waits });
    return patch;
  }

  #end(patch: SessionPatch): void {
    this.#trace({ type: "turn_ended", turn: this.#kernel.turn });
    const { output, error } = patch;
    this.#depart({ type: "ended", status: patch.status as "completed", output, error });
  }

  // ---- faults ------------------------------------------------------------------------------------------------------

  #settleStrayFault(): void {
    if (this.#over || this.#kernel.fault === undefined || this.#inSlice) return;
    if (this.#inFlight) {
      setImmediate(() => this.#settleStrayFault()); // The batch in flight is older than the fault.
      return;
    }
    this.#settleFault(this.#kernel.fault);
  }

  /** K5, K6: keep the outcomes that were delivered, commit nothing else, and park or fail. */
  #settleFault(fault: HoldfastError): void {
    const segment = this.#kernel.salvage(Math.max(this.#world.clock.now(), this.#kernel.now));
    const patch = faultPatch(fault);
    this.#commit(segment, patch, () => {
      if (patch.status === "paused") this.#depart({ type: "paused", reason: "nondeterminism", fault });
      else this.#depart({ type: "ended", status: "failed", output: undefined, error: patch.error });
    });
  }

  /** A defect of ours, or bytes that are not what we wrote: the session stays as it is (K4a). */
  #crash(thrown: unknown): void {
    this.#inSlice = false;
    this.#abandon(toHoldfastError(thrown));
  }

  #watchForNothing(standsOnNothing: boolean): void {
    const { timers, clock, limits } = this.#world;
    timers.set(this.#nothingAlarm, standsOnNothing ? clock.now() + limits.standsOnNothingMs : Infinity);
  }

  #stoodOnNothing(): void {
    if (this.#over || this.#inSlice) return;
    this.#kernel.faultStandingOnNothing();
    this.#settleStrayFault();
  }

  // ---- for the attempts of its tasks -------------------------------------------------------------------------------

  #attemptsHost(): AttemptsHost {
    const { executor, clock, random, enter, conversation } = this.#world;
    return {
      sessionId: this.sessionId,
      executor,
      clock,
      random,
      openTask: (id) => (this.#over ? undefined : this.#kernel.open.get(id)?.task),
      conversation: (leaf) => conversation(this.sessionId, leaf),
      enter: (fn) => enter(this.sessionId, fn),
      trace: this.#world.isTracing ? (event) => this.#trace(event) : undefined,
      deliver: (event) => {
        this.#outcomes.push(event);
        this.#world.loop.wake(this);
      },
      note: (note) => {
        this.#notes.push(note);
        this.#world.loop.wake(this);
      },
    };
  }

  /** Once, when the journal is used up. */
  #recover(at: number): void {
    this.#recovering = false;
    const drift = this.#kernel.takeDrift();
    if (drift.length > 0) this.#notes.push({ type: "drift_accepted", at, positions: drift });
    this.#attempts.recover(this.#kernel.open.tasks(), at);
  }

  // ---- arrivals and time -------------------------------------------------------------------------------------------

  #inboxHost(): InboxHost {
    const { timers, clock, arrivals } = this.#world;
    return {
      timers,
      clock,
      arrivals: (after) => arrivals(this.sessionId, after),
      isOver: () => this.#over,
      receive: (arrived) => this.#receive(arrived),
      fail: (error) => this.#abandon(error),
    };
  }

  #receive(arrivals: Arrivals): void {
    if (this.#over) return;
    for (const signal of arrivals.signals) {
      this.#kernel.offer(signal);
      this.#trace({ type: "signal_received", name: signal.name });
    }
    if (isEnded(arrivals.session.status)) {
      const error = {
        name: "CancelledError",
        message: arrivals.session.cancel?.reason ?? "cancelled",
        code: "cancelled",
      };
      this.#depart({ type: "ended", status: arrivals.session.status, output: undefined, error });
      return;
    }
    this.#noticeCancel(arrivals.session);
    this.#world.loop.wake(this);
  }

  #noticeCancel({ cancel }: Pick<Session, "cancel">): void {
    if (cancel === undefined || this.#cancelSeen || cancel.mode !== "graceful") return;
    this.#cancelSeen = true;
    this.#world.timers.set(this.#cancelAlarm, cancel.deadlineAt);
    if (this.#kernel.cancelNotice !== undefined) return;
    const event: EventDraft = {
      type: "cancel_requested",
      at: this.#world.clock.now(),
      deadlineAt: cancel.deadlineAt,
      ...(cancel.reason === undefined ? {} : { reason: cancel.reason }),
    };
    this.#outcomes.unshift(event);
  }

  #endOverdueCancel(): void {
    if (this.#over) return;
    this.#world.submit(
      {
        type: "request_cancel",
        sessionId: this.sessionId,
        mode: "hard",
        graceMs: 0,
        reason: "the grace period ended",
      },
      () => this.poke(),
      (error) => this.#abandon(error),
    );
  }

  #wakeAt(): number | undefined {
    const earliest = Math.min(this.#kernel.open.wakeAt ?? Infinity, this.#attempts.wakeAt ?? Infinity);
    return earliest === Infinity ? undefined : earliest;
  }

  #armAlarm(): void {
    this.#world.timers.set(this.#alarm, this.#wakeAt() ?? Infinity);
  }

  // ---- the end -----------------------------------------------------------------------------------------------------

  #abandon(error: HoldfastError | undefined): void {
    if (!this.#over) this.#depart({ type: "abandoned", error });
  }

  #depart(departure: Departure): void {
    this.#over = true;
    this.#inFlight = false;
    for (const item of [this.#alarm, this.#nothingAlarm, this.#cancelAlarm])
      this.#world.timers.set(item, Infinity);
    this.#inbox.close();
    this.#attempts.abortAll("the session is over here"); // D4.
    this.#world.loop.leave(this);
    if (departure.type === "ended") {
      const { status, error } = departure;
      this.#trace({ type: "session_ended", status, ...(error === undefined ? {} : { error }) });
    } else if (departure.type === "paused") {
      const { fault } = departure;
      this.#trace({
        type: "session_ended",
        status: "paused",
        error: { name: fault.name, message: fault.message, code: fault.code },
      });
    }
    this.#world.departed(this, departure);
  }

  #trace(event: TraceBody): void {
    if (!this.#world.isTracing && event.type !== "waiting") return;
    this.#world.trace({ ...event, sessionId: this.sessionId, at: this.#world.clock.now() });
  }
}
