// `SessionDriver`: one live session, its kernel between the ports, from claim to release.
//
// Phases. *still*: nothing is in progress. *slice*: the agent runs on one delivery. *commit*: a batch is
// submitted, and nothing is delivered until it is answered (K2). *over*: the session has ended, is parked or
// was abandoned, and every later event is ignored.
//
// Openings. A driver first replays the journal and recovers its open tasks, then delivers what a fork needs,
// then the start of the turn. `openings` holds those that are still to come. Nothing is committed before the
// journal is replayed.
//
//   - Notes are added, and segments sealed, only at a standstill.
//   - When the driver is over, every attempt that it started was told to stop, or is left to the next driver.
//   - At an orderly stop the driver drains in the same way, and its last commit leaves the session to another
//     process.
//   session-driver-5. After an error that a person can fix, the driver drains. It delivers nothing more,
//       waits for running tasks and keeps
//                     their outcomes. Its last commit parks the session.
//
// The driver knows no storage and no other session: it submits changes and is told their results. Its parts
// share the state in `driven-session.ts`. `segment-commit.ts` commits segments, `inbox.ts` reads arrivals
// (inbox-3), `cancel-watch.ts` watches a cancel, and `attempts.ts` and `task-starts.ts` run tasks.

import {
  type Arrivals,
  type Entry,
  type EventRecord,
  type HoldfastError,
  isDone,
  isEnded,
  isOutcome,
  Kernel,
  type SessionState,
  toHoldfastError,
} from "@holdfast/core";
import { Attempts } from "../tasks/attempts.ts";
import { CancelWatch } from "./cancel-watch.ts";
import type { Agent } from "../agents/define.ts";
import { endedBy, type Departure } from "./session-outcome.ts";
import { kernelWorld, type DriverOptions, type DriverWorld } from "./driver-environment.ts";
import { DrivenSession, OVER, SLICE, STILL, type DriverOfSession } from "./driven-session.ts";
import { Inbox, type InboxSession } from "./inbox.ts";
import { callAgent } from "../agents/call-agent.ts";
import { nextLife, storedLife, type KernelLife } from "../agents/kernel-start.ts";
import { SegmentCommits } from "./segment-commit.ts";
import { SessionClaim } from "./session-claim.ts";
import { HANDED_OVER, PAUSED_BY_USER, stoppedTooOftenPatch } from "./session-row.ts";
import { SessionTrace } from "./session-trace.ts";
import type { EventDraft } from "../tasks/drafts.ts";
import { spendingOf } from "../tasks/spending.ts";
import { alarm } from "../loop/timers.ts";

export class SessionDriver implements DriverOfSession, InboxSession {
  readonly sessionId: string;
  isReady = false;
  readonly #world: DriverWorld;
  readonly #agent: Agent;
  readonly #acceptDrift: boolean;
  readonly #driven: DrivenSession;
  readonly #trace: SessionTrace;
  readonly #attempts: Attempts;
  readonly #inbox: Inbox;
  readonly #cancel: CancelWatch;
  readonly #commits: SegmentCommits;
  readonly #nothing = alarm(() => this.#foundBlockedOnNothing());

  constructor(world: DriverWorld, { agent, snapshot, claim: owned, acceptDrift, mayReturn }: DriverOptions) {
    const { session, signals } = snapshot;
    this.#world = world;
    this.#agent = agent;
    this.#acceptDrift = acceptDrift;
    this.sessionId = session.sessionId;
    const claim = new SessionClaim(session, owned, world.submit);
    const life = storedLife(snapshot, agent, claim.token);
    const kernel = this.#makeKernel(life);
    const driven = (this.#driven = new DrivenSession(world, this, { snapshot, claim, kernel }));
    if (driven.isRowStale) driven.openings.add("recover");
    if (life.forkPending === true) driven.openings.add("fork");
    const trace = (this.#trace = new SessionTrace(this.sessionId, world.clock, world.trace));
    const attempts = (this.#attempts = new Attempts(world, driven, spendingOf(snapshot, world)));
    const seen = signals.reduce((last, { order }) => Math.max(last, order), session.inbox);
    const inbox = (this.#inbox = new Inbox(world, this, seen));
    const cancel = (this.#cancel = new CancelWatch(world, driven, attempts));
    this.#commits = new SegmentCommits(world, { driven, attempts, cancel, inbox, trace, mayReturn });
  }

  start(): void {
    this.#trace.started(this.#driven.session.agent, this.#driven.openings.has("recover"));
    this.#driven.wake();
  }

  poke(): void {
    // mutant: poke-ignored
    if (this.isOver) return;
    this.#inbox.look();
  }

  /** Token of the claim; `undefined` before there is one. */
  get token(): number | undefined {
    return this.#driven.token;
  }

  /** The entries of the session's own conversation that storage does not have. */
  unstored(leaf: number): readonly Entry[] | undefined {
    return this.#driven.claim.unstored(leaf);
  }

  /** Whether the session only waits: nothing runs, and nothing is to be delivered or committed. */
  get parked(): boolean {
    const { kernel, phase, claim, openings, pending } = this.#driven;
    const { cursor, open, segment } = kernel;
    if (phase.type === "over" || phase.type === "commit") return false;
    if (claim.isMinimal || this.#attempts.starts.isAsking || openings.has("start") || cursor.replaying)
      return false;
    return open.taskCount === 0 && pending.isEmpty && segment.isEmpty;
  }

  /** A reservation that this session waited for was settled, so it asks again. */
  retryQueued(): void {
    if (!this.isOver) this.#driven.wake();
  }

  abandon(error?: HoldfastError, isHardCancel = false): void {
    if (!this.isOver) this.depart({ type: "abandoned", error }, isHardCancel);
  }

  get isOver(): boolean {
    return this.#driven.isOver;
  }

  /** How many attempts run. */
  get running(): number {
    return this.#attempts.running;
  }

  /** Deliver and begin nothing more. Attempts that run may end, until `handOver`. */
  drain(): void {
    const driven = this.#driven;
    const { kernel, openings, phase } = driven;
    if (this.isOver) return;
    if (kernel.cursor.replaying || openings.size > 0 || driven.token === undefined) return this.abandon();
    // mutant: stop-abandons
    this.#attempts.stop.drain();
    driven.drainTo ??= HANDED_OVER;
    const { running, unbegun } = this.#attempts;
    const isIdle = running === 0 && unbegun.size === 0 && driven.pending.isEmpty && kernel.segment.isEmpty;
    if (phase.type === "still" && isIdle) return this.abandon();
    driven.wake();
  }

  /** The grace is over. */
  handOver(): void {
    const driven = this.#driven;
    if (this.isOver) return;
    const tooOften = this.#attempts.stop.handOver();
    if (tooOften !== undefined && driven.drainTo === HANDED_OVER)
      driven.drainTo = stoppedTooOftenPatch(tooOften.kind, tooOften.handedOver + 1);
    driven.wake();
  }

  // ---- slices ------------------------------------------------------------------------------------------------------

  deliver(): boolean {
    this.#world.checkLease();
    const { phase } = this.#driven;
    switch (phase.type) {
      case "over":
        return false;
      case "commit":
        phase.isWoken = true;
        return false;
      case "still":
      case "slice":
        return this.#deliverNext();
    }
  }

  /** Whether a standstill is to follow: something was delivered, or there is something to commit. */
  #deliverNext(): boolean {
    const driven = this.#driven;
    const { kernel } = driven;
    const { starts } = this.#attempts;
    try {
      const event = this.#next();
      if (kernel.fault !== undefined) return true; // Dealt with at the standstill.
      if (event === undefined)
        return !kernel.segment.isEmpty || driven.isRowStale || starts.isAsking || this.#isDrained;
      driven.deliveries++;
      if (isOutcome(event)) starts.foresee(event.task, event.usage);
      driven.phase = SLICE;
      kernel.openSlice();
      kernel.deliver(event, this.#startAgent);
      return true;
    } catch (thrown) {
      this.#crash(thrown);
      return false;
    }
  }

  standstill(): void {
    this.#world.checkLease();
    const { kernel, phase, pending } = this.#driven;
    if (phase.type === "over" || phase.type === "commit") return;
    try {
      const blocked = phase.type === "slice" ? kernel.closeSlice() : undefined;
      this.#driven.phase = STILL;
      for (const warning of kernel.repeats.takeWarnings())
        pending.note({ type: "warned", at: kernel.now, payload: JSON.stringify(warning) });
      const { fault } = kernel;
      if (fault !== undefined) this.#commits.settleFault(fault);
      else if (blocked?.type === "checkpointed" || blocked?.type === "ended") this.#commits.seal(blocked);
      else this.#continue(blocked?.type === "nothing");
    } catch (thrown) {
      this.#crash(thrown);
    }
  }

  /** The next delivery, if there is one. The search adds notes, so it runs only at a standstill. */
  #next(): EventRecord | EventDraft | undefined {
    const { kernel, openings, pending, session } = this.#driven;
    if (kernel.cursor.replaying) {
      const recorded = kernel.nextRecorded();
      if (recorded !== undefined) {
        if (recorded.type === "started") openings.delete("start");
        return recorded;
      }
      if (kernel.fault !== undefined) return undefined;
    }
    const at = Math.max(this.#world.clock.now(), kernel.now);
    // First: the tasks that are open now were recorded, so they may have been running.
    if (openings.has("recover")) this.#recover(at);
    this.#attempts.expireDue(at);
    if (this.#driven.drainTo !== undefined) {
      pending.keep(kernel); // session-driver-5.
      return undefined;
    }
    if (openings.delete("fork") && session.fork !== undefined) {
      const { origins, seed, tasks } = session.fork;
      return { type: "forked", at, from: origins[0] ?? "", seed, tasks };
    }
    if (openings.delete("start")) {
      this.#trace.turnStarted(kernel.turn.number, false);
      return { type: "started", at };
    }
    pending.addNotes(kernel);
    if (this.#isFull) return undefined;
    this.#attempts.startDueRetries(at);
    // mutant: answered-question-abandoned
    const unanswered = kernel.hasOwn ? undefined : kernel.open.unanswered(at); // Its answer may be here.
    if (unanswered !== undefined) this.#cancel.giveUpQuestion(unanswered.prompt ?? "");
    this.#commits.armAlarm();
    return pending.next(kernel) ?? kernel.nextOwn(at) ?? kernel.nextDue(at);
  }

  /** session-driver-5. Whether all that ran has ended, so that the last commit may follow. */
  get #isDrained(): boolean {
    const { drainTo, kernel } = this.#driven;
    return drainTo !== undefined && !kernel.cursor.replaying && this.#attempts.running === 0;
  }

  readonly #startAgent = (): Promise<unknown> =>
    this.#world.enter({ sessionId: this.sessionId }, () =>
      callAgent(this.#driven.kernel, this.#agent, this.#driven.session),
    );

  #makeKernel(life: KernelLife): Kernel {
    return new Kernel({
      ...life,
      ...kernelWorld(this.#world, this.sessionId),
      handlerOf: (request) => this.#agent.handlers[request]?.name,
      remaining: () => this.#attempts.starts.remaining,
      acceptDrift: this.#acceptDrift,
      // Outside a slice nobody is looking: take the fault at the next one.
      onStrayFault: () => this.#world.immediate(() => this.#commits.settleStrayFault()),
    });
  }

  /** After a standstill that ended nothing: more to deliver, or time to commit. */
  #continue(isBlockedOnNothing: boolean): void {
    const { kernel, drainTo, openings, pending } = this.#driven;
    this.#watchNothing(isBlockedOnNothing && !kernel.cursor.replaying);
    if (drainTo !== undefined && !kernel.cursor.replaying) {
      if (this.#isDrained && !kernel.segment.opensTasks) this.#attempts.stop.leaveUnbegun(this.#attempts);
      pending.keep(kernel); // The last attempt may have ended since the delivery.
      if (kernel.segment.opensTasks) this.#commits.seal(undefined); // Before the notes about them.
      else if (this.#isDrained) this.#commits.sealLast(drainTo);
      else if (!kernel.segment.isEmpty) this.#commits.seal(undefined);
      return;
    }
    const isOpening = kernel.cursor.replaying || openings.size > 0;
    if (isOpening || this.#commits.hasMore) {
      this.#driven.wake();
      if (isOpening || !this.#isFull) return;
    }
    this.#commits.seal(undefined);
  }

  /** Whether another delivery would be too much for one batch, with what the agent may ask for upon it. */
  get #isFull(): boolean {
    const { deliveriesPerSegment, batchChars } = this.#world.limits;
    const { deliveries, kernel } = this.#driven;
    return deliveries >= deliveriesPerSegment || kernel.segment.chars > batchChars / 2;
  }

  nextTurn(state: SessionState): void {
    const driven = this.#driven;
    const last = driven.kernel;
    this.#attempts.abortAll("the checkpoint cancelled it", true);
    this.#trace.turnEnded("checkpointed");
    // mutant: checkpoint-not-left
    if (this.#world.leavesAtCheckpoint() && !driven.claim.isMinimal) return this.abandon();
    driven.pending.keepCancels();
    driven.weight.checkpointed(state.chars, last.pending.chars);
    driven.kernel = this.#makeKernel(nextLife(last, state, driven.session, driven.token));
    driven.openings.add("start");
    driven.wake();
  }

  // ---- faults ------------------------------------------------------------------------------------------------------

  /** A defect of ours, or bytes that are not what we wrote: the session stays as it is (K4a). */
  #crash(thrown: unknown): void {
    this.abandon(toHoldfastError(thrown));
  }

  /** K2. Report an agent that awaits nothing durable for `blockedOnNothingMs`. */
  #watchNothing(isBlockedOnNothing: boolean): void {
    const { timers, limits } = this.#world;
    timers.after(this.#nothing, isBlockedOnNothing ? limits.blockedOnNothingMs : Infinity);
  }

  #foundBlockedOnNothing(): void {
    if (this.#driven.phase.type === "slice" || this.isOver) return;
    this.#driven.kernel.faultBlockedOnNothing();
    this.#commits.settleStrayFault();
  }

  /** Once, when the journal is used up. */
  #recover(at: number): void {
    const { kernel, openings, pending } = this.#driven;
    openings.delete("recover");
    if (!openings.has("start")) this.#trace.turnStarted(kernel.turn.number, true);
    const drift = kernel.cursor.takeDrift();
    if (drift.length > 0) pending.note({ type: "drift_accepted", at, positions: drift });
    const open = kernel.open.tasks();
    // The tasks of a fork never ran. Tasks without an outcome start once the agent knows that it is a fork.
    this.#attempts.recover(openings.has("fork") ? open.filter(isDone) : open, at);
  }

  // ---- arrivals ----------------------------------------------------------------------------------------------------

  receive({ signals, session, remaining }: Arrivals): void {
    if (this.isOver) return;
    this.#attempts.starts.noteRemaining(remaining);
    this.#driven.weight.received(signals);
    for (const signal of signals) {
      this.#driven.kernel.offer(signal);
      this.#trace.signalReceived(signal.name);
    }
    if (isEnded(session.status)) {
      if (this.#driven.phase.type === "commit") return; // It may be the end that is being committed: the answer to that says how.
      const ended = { type: "ended", status: session.status, output: undefined } as const;
      this.depart({ ...ended, error: endedBy(session) }, session.cancel?.mode === "hard");
      return;
    }
    this.#cancel.notice(session);
    if (session.status === "paused" && !this.#cancel.seen) this.#driven.drainTo ??= PAUSED_BY_USER;
    this.#driven.wake();
  }

  // ---- the end -----------------------------------------------------------------------------------------------------

  /** @param isHardCancel whether a hard cancel has ended the session. */
  depart(departure: Departure, isHardCancel = false): void {
    this.#driven.phase = OVER;
    this.#commits.close();
    this.#watchNothing(false);
    this.#cancel.close();
    this.#inbox.close();
    // The next driver must not meet attempts that nobody told to stop.
    if (departure.type === "abandoned") this.#attempts.leaveAll("the session is over here", isHardCancel);
    else this.#attempts.abortAll("the session is over", departure.type === "ended", isHardCancel);
    if (this.token !== undefined)
      this.#world.unbegun.note(this.sessionId, this.token, this.#attempts.unbegun);
    this.#world.loop.leave(this);
    this.#trace.departed(departure);
    this.#world.departed(this, departure);
  }
}
