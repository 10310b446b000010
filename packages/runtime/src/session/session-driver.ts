// `SessionDriver`: one live session, its kernel between the ports, from claim to release.
//
// Phases. *still*: nothing is in progress. *slice*: the agent runs on one delivery. *commit*: a batch is submitted, and nothing is delivered
// until it is answered (K2). *over*: the session has ended, is parked or was abandoned, and every later event is ignored.
//
// Openings. A driver first replays the journal and recovers its open tasks, then delivers what a fork needs, then the start of the turn.
// `#openings` holds those that are still to come. Nothing is committed before the journal is replayed.
//
//   session-driver-1. Tasks start, and aborts fire, only after the batch that asked for them is committed (K3, K6).
//   session-driver-2. Notes are added, and segments sealed, only at a standstill.
//   session-driver-4. When the driver is over, every attempt that it started was told to stop, or is left to the next driver.
//   session-driver-5. After an error that a person can fix, the driver drains. It delivers nothing more, waits for running tasks and keeps
//                     their outcomes. Its last commit parks the session.
//
// The driver knows no storage and no other session: it submits changes and is told their results. `inbox.ts` reads arrivals (inbox-3),
// `cancel-watch.ts` watches a cancel, `task-starts.ts` and `attempts.ts` run tasks, `session-row.ts` makes the row, and
// `session-claim.ts` commits under the claim.

import {
  type HoldfastError,
  Kernel,
  toHoldfastError,
  isEnded,
  isNote,
  type Arrivals,
  type ChangeResult,
  type Ending,
  type Entry,
  type EventRecord,
  type SealedSegment,
  type Session,
  type SessionPatch,
  type SessionSnapshot,
  type SessionState,
  type Exhausted,
  type Wait,
} from "@holdfast/core";
import { createdBy, isDone, isOutcome, salvaged } from "@holdfast/core/internal";
import { Attempts, type AttemptsHost, type EventDraft } from "../tasks/attempts.ts";
import { CancelWatch, type CancelHost } from "./cancel-watch.ts";
import type { Agent } from "../agents/define.ts";
import type { Departure } from "./session-outcome.ts";
import { kernelWorld, type DriverOptions, type DriverWorld } from "./driver-environment.ts";
import { OVER, SLICE, STILL, type Opening, type Phase, type Submitted } from "./driver-phase.ts";
import { Inbox, type InboxHost } from "./inbox.ts";
import { callAgent } from "../agents/call-agent.ts";
import { nextLife, storedLife, type KernelLife } from "../agents/kernel-start.ts";
import { PendingDeliveries } from "./pending-deliveries.ts";
import { NothingWatch } from "./nothing-watch.ts";
import { refusalOf, SessionClaim } from "./session-claim.ts";
import { endedBy, faultedBy } from "./session-outcome.ts";
import { endPatch, exhaustedPatch, faultPatch, pausedBy, PAUSED_BY_USER, SessionRow } from "./session-row.ts";
import { SessionTrace } from "./session-trace.ts";
import { SessionWeight } from "./session-weight.ts";
import type { SliceMember } from "../loop/slice-loop.ts";
import { spendingOf } from "../tasks/spending.ts";
import { TaskStarts, type TaskStartsHost } from "../tasks/task-starts.ts";
import { alarm } from "../loop/timers.ts";
import { MissedOutcomes, type Living } from "./missed-outcomes.ts";

export class SessionDriver implements SliceMember {
  readonly sessionId: string;
  isReady = false;
  readonly #world: DriverWorld;
  readonly #agent: Agent;
  readonly #session: Session;
  readonly #claim: SessionClaim;
  readonly #acceptDrift: boolean;
  readonly #pending = new PendingDeliveries();
  readonly #starts: TaskStarts;
  readonly #trace: SessionTrace;
  readonly #attempts: Attempts;
  readonly #inbox: Inbox;
  readonly #row: SessionRow;
  readonly #missedOutcomes: MissedOutcomes;
  readonly #alarm = alarm(() => this.#world.loop.wake(this));
  readonly #nothing: NothingWatch;
  readonly #weight: SessionWeight;
  readonly #cancel: CancelWatch;

  #kernel: Kernel;
  #phase: Phase = STILL;
  readonly #openings = new Set<Opening>(["start"]);
  #deliveries = 0;
  /** session-driver-5. The patch of the last commit. */
  #drainTo: SessionPatch | undefined;
  /** After a recovery the row may be out of date, so it is compared even if nothing was done. */
  #isRowStale: boolean;

  constructor(world: DriverWorld, { agent, snapshot, claim, acceptDrift }: DriverOptions) {
    const { session, signals } = snapshot;
    this.#world = world;
    this.#agent = agent;
    this.#session = session;
    this.#acceptDrift = acceptDrift;
    this.sessionId = session.sessionId;
    this.#claim = new SessionClaim(session, claim, world.submit);
    this.#trace = new SessionTrace(this.sessionId, world.clock, world.trace);
    this.#row = new SessionRow(session);
    const seen = signals.reduce((last, { order }) => Math.max(last, order), session.inbox);
    this.#inbox = new Inbox(this.#inboxHost(), seen);
    const living: Living = () =>
      this.#isOver ? undefined : { kernel: this.#kernel, seen: this.#inbox.seen };
    this.#missedOutcomes = new MissedOutcomes(this.sessionId, world, living);
    this.#weight = new SessionWeight(snapshot);
    this.#nothing = new NothingWatch(world, () => this.#foundBlockedOnNothing());
    this.#starts = this.#makeStarts(snapshot);
    this.#attempts = new Attempts(this.#attemptsHost());
    this.#isRowStale = snapshot.records.length > 0;
    if (this.#isRowStale) this.#openings.add("recover");
    const life = storedLife(snapshot, agent, this.#claim.token);
    if (life.forkPending === true) this.#openings.add("fork");
    this.#kernel = this.#makeKernel(life);
    this.#cancel = new CancelWatch(this.#cancelHost(), session);
  }

  start(): void {
    this.#trace.started(this.#session.agent, this.#openings.has("recover"));
    this.#world.loop.wake(this);
  }

  /** Something arrived for this session. */
  poke(): void {
    // mutant: poke-ignored
    if (this.#isOver) return;
    this.#inbox.look();
  }

  /** Token of the claim; `undefined` before there is one. */
  get token(): number | undefined {
    return this.#claim.token;
  }

  /** The entries of the session's own conversation that storage does not have. */
  unstored(leaf: number): readonly Entry[] | undefined {
    return this.#claim.unstored(leaf);
  }

  /** Whether the session only waits: nothing runs, and nothing is to be delivered or committed. */
  get parked(): boolean {
    const { cursor, open, segment } = this.#kernel;
    if (this.#phase.type === "over" || this.#phase.type === "commit") return false;
    if (this.#claim.isMinimal || this.#starts.isAsking || this.#openings.has("start") || cursor.replaying)
      return false;
    return open.taskCount === 0 && this.#pending.isEmpty && segment.isEmpty;
  }

  /** A reservation that this session waited for was settled, so it asks again. */
  retryQueued(): void {
    if (!this.#isOver) this.#world.loop.wake(this);
  }

  /** Stop driving, leaving the session as its last commit left it. */
  abandon(error?: HoldfastError): void {
    if (!this.#isOver) this.#depart({ type: "abandoned", error });
  }

  get #isOver(): boolean {
    return this.#phase.type === "over";
  }

  // ---- slices ------------------------------------------------------------------------------------------------------

  deliver(): boolean {
    this.#world.checkLease();
    switch (this.#phase.type) {
      case "over":
        return false;
      case "commit":
        this.#phase.isWoken = true;
        return false;
      case "still":
      case "slice":
        return this.#deliverNext();
    }
  }

  /** Whether a standstill is to follow: something was delivered, or there is something to commit. */
  #deliverNext(): boolean {
    try {
      const event = this.#next();
      if (this.#kernel.fault !== undefined) return true; // Dealt with at the standstill.
      if (event === undefined)
        return !this.#kernel.segment.isEmpty || this.#isRowStale || this.#starts.isAsking || this.#isDrained;
      this.#deliveries++;
      if (isOutcome(event)) this.#starts.foresee(event.task, event.usage);
      this.#phase = SLICE;
      this.#kernel.openSlice();
      this.#kernel.deliver(event, this.#startAgent);
      return true;
    } catch (thrown) {
      this.#crash(thrown);
      return false;
    }
  }

  standstill(): void {
    this.#world.checkLease();
    if (this.#isOver || this.#phase.type === "commit") return;
    try {
      const blocked = this.#phase.type === "slice" ? this.#kernel.closeSlice() : undefined;
      this.#phase = STILL;
      for (const warning of this.#kernel.repeats.takeWarnings())
        this.#pending.note({ type: "warned", at: this.#kernel.now, payload: JSON.stringify(warning) });
      const fault = this.#kernel.fault;
      if (fault !== undefined) this.#settleFault(fault);
      else if (blocked?.type === "checkpointed" || blocked?.type === "ended") this.#seal(blocked);
      else this.#continue(blocked?.type === "nothing");
    } catch (thrown) {
      this.#crash(thrown);
    }
  }

  /** The next delivery, if there is one. The search adds notes, so it runs only at a standstill (session-driver-2). */
  #next(): EventRecord | EventDraft | undefined {
    const kernel = this.#kernel;
    if (kernel.cursor.replaying) {
      const recorded = kernel.nextRecorded();
      if (recorded !== undefined) {
        if (recorded.type === "started") this.#openings.delete("start");
        return recorded;
      }
      if (kernel.fault !== undefined) return undefined;
    }
    const at = Math.max(this.#world.clock.now(), kernel.now);
    // First: the tasks that are open now were recorded, so they may have been running.
    if (this.#openings.has("recover")) this.#recover(at);
    this.#attempts.expireDue(at);
    if (this.#drainTo !== undefined) {
      this.#pending.keep(kernel); // session-driver-5.
      return undefined;
    }
    if (this.#openings.delete("fork") && this.#session.fork !== undefined) {
      const { origins, seed, tasks } = this.#session.fork;
      return { type: "forked", at, from: origins[0] ?? "", seed, tasks };
    }
    if (this.#openings.delete("start")) {
      this.#trace.turnStarted(kernel.turn.number, false);
      return { type: "started", at };
    }
    this.#pending.addNotes(kernel);
    if (this.#isFull) return undefined;
    this.#attempts.startDueRetries(at);
    // mutant: answered-question-abandoned
    const unanswered = kernel.hasOwn ? undefined : kernel.open.unanswered(at); // Its answer may be here.
    if (unanswered !== undefined) this.#cancel.giveUpQuestion(unanswered.prompt ?? "");
    this.#armAlarm();
    return this.#pending.next(kernel) ?? kernel.nextOwn(at) ?? kernel.nextDue(at);
  }

  /** session-driver-5. Whether all that ran has ended, so that the last commit may follow. */
  get #isDrained(): boolean {
    return this.#drainTo !== undefined && !this.#kernel.cursor.replaying && this.#attempts.running === 0;
  }

  readonly #startAgent = (): Promise<unknown> =>
    this.#world.enter({ sessionId: this.sessionId }, () =>
      callAgent(this.#kernel, this.#agent, this.#session),
    );

  #makeKernel(life: KernelLife): Kernel {
    return new Kernel({
      ...life,
      ...kernelWorld(this.#world, this.sessionId),
      handlerOf: (request) => this.#agent.handlers[request]?.name,
      remaining: () => this.#starts.remaining,
      acceptDrift: this.#acceptDrift,
      // Outside a slice nobody is looking: take the fault at the next one.
      onStrayFault: () => this.#world.immediate(() => this.#settleStrayFault()),
    });
  }

  /** After a standstill that ended nothing: more to deliver, or time to commit. */
  #continue(isBlockedOnNothing: boolean): void {
    const kernel = this.#kernel;
    this.#nothing.watch(isBlockedOnNothing && !kernel.cursor.replaying);
    if (this.#drainTo !== undefined && !kernel.cursor.replaying) {
      if (this.#isDrained) this.#sealLast(this.#drainTo);
      else if (!kernel.segment.isEmpty) this.#seal(undefined);
      return;
    }
    const isOpening = kernel.cursor.replaying || this.#openings.size > 0;
    if (isOpening || this.#hasMore()) {
      this.#world.loop.wake(this);
      if (isOpening || !this.#isFull) return;
    }
    this.#seal(undefined);
  }

  /** Whether another delivery would be too much for one batch, with what the agent may ask for upon it. */
  get #isFull(): boolean {
    const { deliveriesPerSegment, batchChars } = this.#world.limits;
    return this.#deliveries >= deliveriesPerSegment || this.#kernel.segment.chars > batchChars / 2;
  }

  #hasMore(): boolean {
    if (!this.#pending.isEmpty) return true;
    const wakeAt = this.#kernel.open.wakeAt;
    const isDue = wakeAt !== undefined && wakeAt <= this.#world.clock.now();
    return (isDue && !this.#cancel.isGivingUp) || this.#kernel.hasOwn;
  }

  // ---- commits -----------------------------------------------------------------------------------------------------

  #seal(
    closing: { type: "checkpointed"; state: SessionState } | { type: "ended"; ending: Ending } | undefined,
  ): void {
    const segment = this.#kernel.seal();
    this.#attempts.opened(segment.newTasks);
    this.#deliveries = 0;
    const isFirstStand = this.#isRowStale;
    // mutant: task-before-commit
    this.#isRowStale = false;
    const patch =
      closing?.type === "ended"
        ? endPatch(closing.ending, this.#isCancelling)
        : this.#row.patchAfter({
            kernel: this.#kernel,
            isCheckpoint: closing !== undefined,
            isCancelling: this.#isCancelling,
            wakeAt: () => this.#wakeAt(),
          });
    if (segment.records.length === 0 && patch === undefined && !this.#starts.isAsking) {
      this.#armAlarm();
      if (isFirstStand) this.#notifyBlocked(this.#kernel.open.waits(), true); // As its last process committed it.
      return;
    }
    const waits = patch?.waits ?? (isFirstStand ? this.#kernel.open.waits() : []);
    this.#commit(segment, patch, () => {
      if (closing?.type === "ended" && patch !== undefined) {
        this.#trace.turnEnded("completed");
        const { status, output, error } = patch;
        this.#depart({ type: "ended", status: status as "completed", output, error });
      } else if (closing?.type === "checkpointed") this.#nextTurn(closing.state);
      else {
        this.#notifyBlocked(waits, isFirstStand);
        this.#afterCommit(segment);
      }
    });
  }

  /** session-driver-5. */
  #sealLast(patch: SessionPatch): void {
    // Storage already has a pause by a person, and perhaps a resume after it. A batch keeps either (batches-5), so it says
    // `working` and names no waits.
    // mutant: resumed-session-paused
    const stored = patch === PAUSED_BY_USER ? ({ status: "working" } as const) : patch;
    const segment = { ...this.#kernel.seal(), enablesPersistence: true };
    this.#commit(segment, stored, () => this.#depart(pausedBy(this.sessionId, patch)));
  }

  #commit(
    segment: SealedSegment,
    patch: SessionPatch | undefined,
    onCommitted: () => void,
    isSalvage = false,
  ): void {
    const phase = { type: "commit", isWoken: false, isSalvage } satisfies Phase;
    this.#phase = phase;
    const tasks = this.#starts.open(segment, this.#drainTo === undefined);
    const onResult = (result: ChangeResult): void => {
      try {
        this.#answered(result, { phase, segment, tasks, onCommitted });
      } catch (thrown) {
        this.#crash(thrown); // The other sessions of the group are yet to be answered (K4a).
      }
    };
    const commit = { segment, patch, status: this.#row.status, charges: tasks.charges };
    this.#claim.commit(commit, onResult, (error) => this.abandon(error));
  }

  #answered(result: ChangeResult, { phase, segment, tasks, onCommitted }: Submitted): void {
    this.#world.checkLease();
    if (this.#isOver) return;
    this.#phase = STILL;
    if (result.status === "committed") {
      this.#trace.committed(segment);
      this.#weight.committed(segment);
      this.#attempts.recorded(segment.records);
      const refused = this.#starts.committed(tasks, result); // session-driver-1.
      if (tasks.charges.some(({ type }) => type === "settle")) this.#world.settled(this.#session.payers);
      onCommitted();
      if (refused !== undefined && !this.#isOver) this.#exhaust(refused);
      if (segment.effects.length > 0) this.#world.spawned(createdBy(segment.effects));
      this.#inbox.look(result.inbox); // inbox-3.
      this.#settleStrayFault(); // A fault that arose while the batch was in flight.
      if (phase.isWoken && !this.#isOver) this.#world.loop.wake(this);
      return;
    }
    const refusal = refusalOf(this.sessionId, result);
    const { isMinimal } = this.#claim;
    const isToBeKept = !phase.isSalvage && (isMinimal || segment.records.some(isOutcome));
    // mutant: refused-end-forgotten
    if (result.status !== "invalid" || !isToBeKept) return this.abandon(refusal);
    // K6. The delivered outcomes are committed without the agent's commands; of a session without a journal, everything is.
    const kept = salvaged(segment.firstSeq, segment.records, this.#kernel.now);
    this.#commit({ ...kept, enablesPersistence: isMinimal }, undefined, () => this.abandon(refusal), true);
  }

  /** session-driver-1. */
  #afterCommit(segment: SealedSegment): void {
    for (const id of segment.withdrawnTasks) this.#attempts.abort(id, "its answer is no longer wanted");
    for (const record of segment.records) if (isNote(record)) this.#attempts.noted(record);
    this.#armAlarm();
    if (this.#hasMore() || !this.#kernel.segment.isEmpty) this.#world.loop.wake(this);
  }

  /** A limit is reached: wait for more, or end. */
  #exhaust(exhausted: Exhausted): void {
    const patch = exhaustedPatch(exhausted);
    // It hears of its cancel first, and then that these were not done.
    if (this.#cancel.seen) this.#starts.refuseUnpaid();
    else if (exhausted.then === "park") this.#drainTo = patch;
    else return this.#cancel.requestForBudget(exhausted, patch.error?.message ?? "");
    this.#world.loop.wake(this);
  }

  #nextTurn(state: SessionState): void {
    const last = this.#kernel;
    this.#attempts.abortAll("the checkpoint cancelled it", true);
    this.#trace.turnEnded("checkpointed");
    this.#pending.keepCancels();
    const life = nextLife(last, state, this.#session, this.#claim.token);
    this.#weight.checkpointed(state.chars, last.pending.chars);
    this.#kernel = this.#makeKernel(life);
    this.#openings.add("start");
    this.#world.loop.wake(this);
  }

  get #isCancelling(): boolean {
    // mutant: unseen-cancel-completes
    return this.#kernel.turn.cancel !== undefined || this.#cancel.seen;
  }

  /** Only of what is committed: before, it is not so. */
  #notifyBlocked(waits: readonly Wait[], recovered: boolean): void {
    if (waits.length === 0) return;
    this.#missedOutcomes.blocked(waits, recovered);
    this.#trace.waiting(waits);
    this.#world.noteWaiting(this.sessionId, this.#weight.bytes);
  }

  // ---- faults ------------------------------------------------------------------------------------------------------

  #settleStrayFault(): void {
    if (this.#phase.type !== "still" || this.#kernel.fault === undefined) return;
    this.#settleFault(this.#kernel.fault);
  }

  /** K5, K6: keep the outcomes that were delivered, commit nothing else, and park or fail. */
  #settleFault(fault: HoldfastError): void {
    const segment = this.#kernel.segment.salvage(Math.max(this.#world.clock.now(), this.#kernel.now));
    const patch = faultPatch(fault, this.#cancel.seen);
    this.#commit(segment, patch, () => this.#depart(faultedBy(patch, fault)));
  }

  /** A defect of ours, or bytes that are not what we wrote: the session stays as it is (K4a). */
  #crash(thrown: unknown): void {
    this.abandon(toHoldfastError(thrown));
  }

  #foundBlockedOnNothing(): void {
    if (this.#phase.type === "slice" || this.#isOver) return;
    this.#kernel.faultBlockedOnNothing();
    this.#settleStrayFault();
  }

  // ---- for the attempts of its tasks -------------------------------------------------------------------------------

  #makeStarts(snapshot: SessionSnapshot): TaskStarts {
    const host: TaskStartsHost = {
      openTask: (id) => this.#kernel.open.get(id)?.task,
      start: (task) => this.#attempts.start(task),
      refuse: (task, error) => this.#attempts.refuse(task, error),
      asked: (waits) => this.#world.asked(this, this.#session.payers, waits),
      wake: () => this.#world.loop.wake(this),
    };
    return new TaskStarts(host, spendingOf(snapshot, this.#world));
  }

  #attemptsHost(): AttemptsHost {
    const { executor, clock, random, enter, conversation, traceparent } = this.#world;
    return {
      sessionId: this.sessionId,
      executor,
      clock,
      random,
      prices: this.#world.prices,
      wasBegun: (task) => this.#starts.wasBegun(task),
      begin: (tasks) => this.#starts.begin(tasks),
      claimToken: () => this.#claim.token,
      openTask: (id) => (this.#isOver ? undefined : this.#kernel.open.get(id)?.task),
      conversation: (leaf) => conversation(this.#session, leaf, () => this.#isOver),
      enter: (task, fn) => enter({ sessionId: this.sessionId, task }, fn),
      trace: this.#trace.listener,
      traceparent: (attempt) => traceparent(this.sessionId, attempt) ?? this.#session.agent.traceparent,
      deliver: (event) => {
        this.#pending.add(event);
        this.#world.loop.wake(this);
      },
      note: (note) => {
        this.#pending.note(note);
        this.#world.loop.wake(this);
      },
    };
  }

  /** Once, when the journal is used up. */
  #recover(at: number): void {
    this.#openings.delete("recover");
    if (!this.#openings.has("start")) this.#trace.turnStarted(this.#kernel.turn.number, true);
    const drift = this.#kernel.cursor.takeDrift();
    if (drift.length > 0) this.#pending.note({ type: "drift_accepted", at, positions: drift });
    const open = this.#kernel.open.tasks();
    // The tasks of a fork never ran. Tasks without an outcome start once the agent knows that it is a fork.
    this.#attempts.recover(this.#openings.has("fork") ? open.filter(isDone) : open, at);
  }

  // ---- arrivals and time -------------------------------------------------------------------------------------------

  #inboxHost(): InboxHost {
    const { timers, clock, arrivals } = this.#world;
    return {
      timers,
      clock,
      arrivals: (after) => arrivals(this.sessionId, after),
      isOver: () => this.#isOver,
      receive: (arrived) => this.#receive(arrived),
      fail: (error) => this.abandon(error),
    };
  }

  #receive({ signals, session, remaining }: Arrivals): void {
    if (this.#isOver) return;
    this.#starts.noteRemaining(remaining);
    this.#weight.received(signals);
    for (const signal of signals) {
      this.#kernel.offer(signal);
      this.#trace.signalReceived(signal.name);
    }
    if (isEnded(session.status)) {
      if (this.#phase.type === "commit") return; // It may be the end that is being committed: the answer to that says how.
      this.#depart({ type: "ended", status: session.status, output: undefined, error: endedBy(session) });
      return;
    }
    this.#cancel.notice(session);
    if (session.status === "paused" && !this.#cancel.seen) this.#drainTo ??= PAUSED_BY_USER;
    this.#world.loop.wake(this);
  }

  #cancelHost(): CancelHost {
    const { timers, clock, limits, submit } = this.#world;
    return {
      sessionId: this.sessionId,
      timers,
      clock,
      graceMs: limits.cancelGraceMs,
      submit,
      isOver: () => this.#isOver,
      isDelivered: () => this.#kernel.turn.cancel !== undefined,
      deliver: (event) => {
        this.#pending.addFirst(event);
        if (this.#drainTo !== undefined) this.#attempts.reportKept(this.#kernel.open.tasks());
        this.#drainTo = undefined;
        this.#starts.refuseUnpaid();
      },
      look: () => this.poke(),
      fail: (error) => this.abandon(error),
    };
  }

  #wakeAt(): number | undefined {
    const earliest = Math.min(this.#kernel.open.wakeAt ?? Infinity, this.#attempts.wakeAt ?? Infinity);
    return earliest === Infinity ? undefined : earliest;
  }

  #armAlarm(): void {
    this.#world.timers.set(this.#alarm, this.#cancel.isGivingUp ? Infinity : (this.#wakeAt() ?? Infinity));
  }

  // ---- the end -----------------------------------------------------------------------------------------------------

  #depart(departure: Departure): void {
    this.#phase = OVER;
    this.#world.timers.set(this.#alarm, Infinity);
    this.#nothing.watch(false);
    this.#cancel.close();
    this.#inbox.close();
    if (departure.type === "abandoned") this.#attempts.leaveAll("the session is over here"); // session-driver-4.
    else this.#attempts.abortAll("the session is over", departure.type === "ended");
    this.#world.loop.leave(this);
    this.#trace.departed(departure);
    this.#world.departed(this, departure);
  }
}
