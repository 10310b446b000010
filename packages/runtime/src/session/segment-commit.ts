// `SegmentCommits`: seals the segments of one session, commits them, and acts on the answers. A segment is
// all that an agent asked for between two commits.
//
//   - Tasks start, and running tasks are aborted, only after the batch that asked for it is committed (K3,
//     K6).
//   segment-commit-2. A replay that diverges commits nothing if a process with earlier code takes the session
//       back.
//
// A commit that storage refuses ends the driver. A driver that drains commits a last segment, which parks the
// session (session-driver-5).

import {
  type ChangeResult,
  createdBy,
  type Ending,
  type Exhausted,
  type HoldfastError,
  isNote,
  isOutcome,
  salvaged,
  type SealedSegment,
  type SessionPatch,
  type SessionState,
  toHoldfastError,
  type Wait,
} from "@holdfast/core";
import type { CancelWatch } from "./cancel-watch.ts";
import { STILL, type DrivenSession, type Phase } from "./driven-session.ts";
import type { DriverWorld } from "./driver-environment.ts";
import type { Inbox } from "./inbox.ts";
import { MissedOutcomes } from "./missed-outcomes.ts";
import { refusalOf } from "./session-claim.ts";
import { faultedBy, type Departure } from "./session-outcome.ts";
import {
  endPatch,
  exhaustedPatch,
  faultPatch,
  HANDED_OVER,
  pausedBy,
  PAUSED_BY_USER,
  SessionRow,
} from "./session-row.ts";
import type { SessionTrace } from "./session-trace.ts";
import { alarm } from "../loop/timers.ts";
import type { Attempts } from "../tasks/attempts.ts";
import type { Opening as OpenedTasks } from "../tasks/task-starts.ts";

/** A batch that was submitted, and what its answer needs. */
interface Submitted {
  readonly phase: Phase & { readonly type: "commit" };
  readonly segment: SealedSegment;
  readonly tasks: OpenedTasks;
  readonly onCommitted: () => void;
}

interface CommitParts {
  readonly driven: DrivenSession;
  readonly attempts: Attempts;
  readonly cancel: CancelWatch;
  readonly inbox: Inbox;
  readonly trace: SessionTrace;
  readonly mayReturn: boolean | undefined;
}

export class SegmentCommits {
  readonly #world: DriverWorld;
  readonly #driven: DrivenSession;
  readonly #attempts: Attempts;
  readonly #cancel: CancelWatch;
  readonly #inbox: Inbox;
  readonly #trace: SessionTrace;
  readonly #mayReturn: boolean;
  readonly #row: SessionRow;
  readonly #missedOutcomes: MissedOutcomes;
  readonly #alarm = alarm(() => this.#driven.wake());

  constructor(
    world: DriverWorld,
    { driven, attempts, cancel, inbox, trace, mayReturn = false }: CommitParts,
  ) {
    this.#world = world;
    this.#driven = driven;
    this.#attempts = attempts;
    this.#cancel = cancel;
    this.#inbox = inbox;
    this.#trace = trace;
    this.#mayReturn = mayReturn;
    this.#row = new SessionRow(driven.session);
    this.#missedOutcomes = new MissedOutcomes(world, driven, inbox);
  }

  seal(
    closing: { type: "checkpointed"; state: SessionState } | { type: "ended"; ending: Ending } | undefined,
  ): void {
    const segment = this.#driven.kernel.seal();
    this.#attempts.opened(segment.newTasks);
    this.#driven.deliveries = 0;
    const isFirstStand = this.#driven.isRowStale;
    // mutant: task-before-commit
    this.#driven.isRowStale = false;
    const patch =
      closing?.type === "ended"
        ? endPatch(closing.ending, this.#cancel.isCancelling)
        : this.#row.patchAfter({
            kernel: this.#driven.kernel,
            isCheckpoint: closing !== undefined,
            isCancelling: this.#cancel.isCancelling,
            wakeAt: () => this.#wakeAt(),
          });
    if (segment.records.length === 0 && patch === undefined && !this.#attempts.starts.isAsking) {
      this.armAlarm();
      if (isFirstStand) this.#notifyBlocked(this.#driven.kernel.open.waits(), true); // As its last process committed it.
      return;
    }
    const { driver } = this.#driven;
    const waits = patch?.waits ?? (isFirstStand ? this.#driven.kernel.open.waits() : []);
    this.#commit(segment, patch, () => {
      if (closing?.type === "ended" && patch !== undefined) {
        this.#trace.turnEnded("completed");
        const { status, output, error } = patch;
        driver.depart({ type: "ended", status: status as "completed", output, error });
      } else if (closing?.type === "checkpointed") driver.nextTurn(closing.state);
      else {
        this.#notifyBlocked(waits, isFirstStand);
        this.#afterCommit(segment);
      }
    });
  }

  /** session-driver-5. */
  sealLast(patch: SessionPatch): void {
    // Storage already has a pause by a person, and perhaps a resume after it. A batch keeps either
    // (batches-5), so it says `working` and names no waits.
    // mutant: resumed-session-paused
    const kept = patch === PAUSED_BY_USER ? ({ status: "working" } as const) : patch;
    const stored = patch === HANDED_OVER ? this.#row.handedOver(this.#world.clock.now()) : kept;
    const segment = { ...this.#driven.kernel.seal(), enablesPersistence: true };
    const { driver, sessionId } = this.#driven;
    const departure: Departure =
      patch === HANDED_OVER ? { type: "abandoned", error: undefined } : pausedBy(sessionId, patch);
    this.#commit(segment, stored, () => driver.depart(departure));
  }

  #commit(
    segment: SealedSegment,
    patch: SessionPatch | undefined,
    onCommitted: () => void,
    isSalvage = false,
  ): void {
    const phase = { type: "commit", isWoken: false, isSalvage } satisfies Phase;
    const { driver, drainTo, claim } = this.#driven;
    this.#driven.phase = phase;
    // An orderly stop leaves new tasks as they are (attempts-8).
    const tasks = this.#attempts.starts.open(segment, drainTo === undefined || drainTo === HANDED_OVER);
    const onResult = (result: ChangeResult): void => {
      try {
        this.#answered(result, { phase, segment, tasks, onCommitted });
      } catch (thrown) {
        driver.abandon(toHoldfastError(thrown)); // The other sessions of the group are yet to be answered (K4a).
      }
    };
    const commit = { segment, patch, status: this.#row.status, charges: tasks.charges };
    claim.commit(commit, onResult, (error) => driver.abandon(error));
  }

  #answered(result: ChangeResult, { phase, segment, tasks, onCommitted }: Submitted): void {
    this.#world.checkLease();
    const driven = this.#driven;
    if (driven.isOver) return;
    driven.phase = STILL;
    if (result.status === "committed") {
      this.#trace.committed(segment);
      driven.weight.committed(segment);
      this.#attempts.recorded(segment.records);
      const refused = this.#attempts.starts.committed(tasks, result);
      if (tasks.charges.some(({ type }) => type === "settle")) this.#world.settled(driven.session.payers);
      onCommitted();
      if (refused !== undefined && !driven.isOver) this.#exhaust(refused);
      if (segment.effects.length > 0) this.#world.spawned(createdBy(segment.effects));
      this.#inbox.look(result.inbox); // inbox-3.
      this.settleStrayFault(); // A fault that arose while the batch was in flight.
      if (phase.isWoken && !driven.isOver) driven.wake();
      return;
    }
    const refusal = refusalOf(driven.sessionId, result);
    const { isMinimal } = driven.claim;
    const isToBeKept = !phase.isSalvage && (isMinimal || segment.records.some(isOutcome));
    // A graceful cancel leaves the end of the session to its agent, so a session that is cancelled meanwhile
    // was cancelled hard.
    const isHardCancel = result.status === "invalid" && result.endedAs === "cancelled";
    // mutant: refused-end-forgotten
    if (result.status !== "invalid" || !isToBeKept) return driven.driver.abandon(refusal, isHardCancel);
    // K6. The delivered outcomes are committed without the agent's commands; of a session without a journal,
    //     everything is.
    const kept = salvaged(segment.firstSeq, segment.records, driven.kernel.now);
    this.#commit(
      { ...kept, enablesPersistence: isMinimal },
      undefined,
      () => driven.driver.abandon(refusal),
      true,
    );
  }

  #afterCommit(segment: SealedSegment): void {
    for (const id of segment.withdrawnTasks) this.#attempts.abort(id, "its answer is no longer wanted");
    for (const record of segment.records) if (isNote(record)) this.#attempts.noted(record);
    this.armAlarm();
    if (this.hasMore || !this.#driven.kernel.segment.isEmpty) this.#driven.wake();
  }

  /** A limit is reached: wait for more, or end. */
  #exhaust(exhausted: Exhausted): void {
    const patch = exhaustedPatch(exhausted);
    // It hears of its cancel first, and then that these were not done.
    if (this.#cancel.seen) this.#attempts.starts.refuseUnpaid();
    else if (exhausted.then === "park") this.#driven.drainTo = patch;
    else return this.#cancel.requestForBudget(exhausted, patch.error?.message ?? "");
    this.#driven.wake();
  }

  /** Only of what is committed: before, it is not so. */
  #notifyBlocked(waits: readonly Wait[], recovered: boolean): void {
    if (waits.length === 0) return;
    this.#missedOutcomes.blocked(waits, recovered);
    this.#trace.waiting(waits);
    this.#world.noteWaiting(this.#driven.sessionId, this.#driven.weight.bytes);
  }

  /** Settle a fault that arose while no slice was open and no batch in flight. */
  settleStrayFault(): void {
    const { phase, kernel } = this.#driven;
    if (phase.type === "still" && kernel.fault !== undefined) this.settleFault(kernel.fault);
  }

  /** K5, K6: keep the outcomes that were delivered, commit nothing else, and park or fail. */
  settleFault(fault: HoldfastError): void {
    const { kernel, driver, isRowStale } = this.#driven;
    // segment-commit-2. The row is stale until the first commit of this driver.
    // mutant: diverged-not-returned
    if (this.#mayReturn && isRowStale && fault.code === "nondeterminism")
      return driver.depart({ type: "abandoned", error: fault, diverged: true });
    const segment = kernel.segment.salvage(Math.max(this.#world.clock.now(), kernel.now));
    const patch = faultPatch(fault, this.#cancel.seen);
    this.#commit(segment, patch, () => driver.depart(faultedBy(patch, fault)));
  }

  /** Whether there is something to deliver now. */
  get hasMore(): boolean {
    const { kernel, pending } = this.#driven;
    if (!pending.isEmpty) return true;
    const { wakeAt } = kernel.open;
    const isDue = wakeAt !== undefined && wakeAt <= this.#world.clock.now();
    return (isDue && !this.#cancel.isGivingUp) || kernel.hasOwn;
  }

  #wakeAt(): number | undefined {
    const earliest = Math.min(this.#driven.kernel.open.wakeAt ?? Infinity, this.#attempts.wakeAt ?? Infinity);
    return earliest === Infinity ? undefined : earliest;
  }

  /** Wake the session when its next timer, retry or deadline is due. */
  armAlarm(): void {
    this.#world.timers.set(this.#alarm, this.#cancel.isGivingUp ? Infinity : (this.#wakeAt() ?? Infinity));
  }

  close(): void {
    this.#world.timers.set(this.#alarm, Infinity);
  }
}
