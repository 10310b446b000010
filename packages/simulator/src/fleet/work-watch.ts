// `WorkWatch`: the attempts that run in each life, and a check that two runners never run attempts of one
// session at a time.
//
//   - O3: The sessions of a dead runner can be claimed at most `PASSES_ON_MS` after its lease. When the clock
//     was set meanwhile,
//       every lease is carried over, and the check is skipped.
//   - O5: A process whose step blocked for longer than a lease lets go of no session that its watchdog's
//     thread has renewed.
//   - O7: Without faults no runner loses a lease.
//   - D3: A runner never loses a lease that was claimed or renewed less than its length ago, however the
//     clock was set. This is
//       not checked across two lives of a coordinator, as the clock may have been set unnoticed between them.
//   - O4: When a claim passes to another runner, the previous one runs no attempts of the session any more,
//     unless it is paused.
//       Attempts that began while the session was minimal are not among them, even when it is persistent now.
//       Its former runner learns of the loss when it renews its lease or commits, and a minimal session
//       commits nothing before its end.

import type { RecordedError, TraceEvent } from "@holdfast/core";
import { leaseLost } from "@holdfast/runtime/internal";
import type { ProcessLife } from "../world/process-life.ts";
import type { Scheduler } from "../world/scheduler.ts";
import type { Violated } from "../world/account-checks.ts";
import type { SessionAccount } from "../world/watched-storage.ts";

/** The time that a runner has to notice its losses after a pause. */
const NOTICES_MS = 1_000;
const PASSES_ON_MS = 5_000;
/** A look at the leases may be late by this. */
const LATE_MS = 500;
/** A tolerance: clocks are adjusted to each other, and storage takes time to answer. */
const EARLY_MS = 2_000;

export interface Worker {
  readonly life: ProcessLife;
  readonly runnerId: string;
  /** The end of its last pause, in simulated milliseconds. */
  wokeAt: number;
  /** How long ago its watchdog's thread renewed its leases last, if it did. */
  renewedAgoMs(): number | undefined;
}

interface Work {
  readonly worker: Worker;
  readonly attempts: Set<string>;
}

export interface WorkWatchHost {
  readonly scheduler: Scheduler;
  readonly leaseMs: number;
  readonly violated: Violated;
  accounts(): Iterable<SessionAccount>;
  /** Whether only the row of a session is stored: its tasks start before anything could be fenced. */
  isMinimal(sessionId: string): boolean;
  /** Epoch milliseconds, by the time that storage received. */
  now(): number;
  /** How often the coordinators' clock was set, or may have been set while none of them lived. */
  timesSet(): number;
}

export class WorkWatch {
  readonly #host: WorkWatchHost;
  #healedAt = Infinity;
  /** When each claim was made or renewed last, in simulated milliseconds. */
  readonly #heldSince = new Map<string, number>();
  #begunAt = -Infinity;
  /** By session, then by the name of the life. */
  readonly #work = new Map<string, Map<string, Work>>();

  constructor(host: WorkWatchHost) {
    this.#host = host;
  }

  /** A life's trace event. */
  trace(worker: Worker, event: TraceEvent): void {
    if (event.type === "session_released") this.#noteReleased(worker, event);
    if (event.type !== "task_started" && event.type !== "task_ended") return;
    const { sessionId, taskId, attempt } = event;
    const name = `${taskId} attempt ${attempt}`;
    const { attempts } = this.#workOf(sessionId, worker);
    if (event.type === "task_ended") attempts.delete(name);
    else if (!this.#host.isMinimal(sessionId)) {
      attempts.add(name);
      this.#look(sessionId, worker.runnerId, `${name} starts at ${worker.runnerId}`);
    }
  }

  /** No fault begins from now on. */
  healed(): void {
    this.#healedAt = this.#host.scheduler.now;
  }

  /** O7. */
  #noteReleased(
    { life, renewedAgoMs }: Worker,
    { sessionId, error }: { sessionId: string; error?: RecordedError },
  ): void {
    const { scheduler, leaseMs, violated } = this.#host;
    // O5.
    const isLeaseLost = error?.message === leaseLost(sessionId).message;
    if (isLeaseLost && (renewedAgoMs() ?? Infinity) < leaseMs / 2 - LATE_MS)
      violated("O5", `${sessionId}: ${life.name} let go of it, and its thread has renewed it`);
    if (error?.code === "storage_unavailable" && scheduler.now > this.#healedAt + 2 * leaseMs)
      violated("O7", `${sessionId}: ${life.name} let go of it, and could reach storage: ${error.message}`);
  }

  /** D3, O4. */
  claimed(sessionId: string, runnerId: string, before: string | undefined): void {
    const { scheduler, leaseMs, violated } = this.#host;
    const since = this.#heldSince.get(sessionId) ?? -Infinity;
    const heldMs = scheduler.now - since;
    if (before !== undefined && since > this.#begunAt && heldMs < leaseMs - EARLY_MS)
      violated(
        "D3",
        `${sessionId}: it passed from ${before} to ${runnerId} ${heldMs} ms after its lease was renewed`,
      );
    this.#heldSince.set(sessionId, scheduler.now);
    this.#look(sessionId, runnerId, `it is claimed for ${runnerId}`);
  }

  renewed(owner: string, sessionIds: ReadonlySet<string>, at: number): void {
    for (const { owner: holder, sessionId } of this.#host.accounts()) {
      const since = this.#heldSince.get(sessionId) ?? -Infinity;
      if (holder === owner && sessionIds.has(sessionId)) this.#heldSince.set(sessionId, Math.max(since, at));
    }
  }

  /** D3. */
  coordinatorBegins(): void {
    this.#begunAt = this.#host.scheduler.now;
  }

  /** O3. */
  died(runnerId: string): void {
    const { scheduler, leaseMs, accounts, now, timesSet, violated } = this.#host;
    const setBefore = timesSet();
    const held = [...accounts()].filter(({ owner }) => owner === runnerId);
    for (const account of held) {
      const { sessionId, token } = account;
      scheduler.after(leaseMs + PASSES_ON_MS, undefined, () => {
        if (timesSet() !== setBefore) return;
        if (account.token === token && account.owner === runnerId && account.until > now())
          violated(
            "O3",
            `${sessionId}: ${runnerId} died ${leaseMs + PASSES_ON_MS} ms ago, and holds it still`,
          );
      });
    }
  }

  #look(sessionId: string, runnerId: string, what: string): void {
    for (const { worker, attempts } of this.#work.get(sessionId)?.values() ?? []) {
      const { life, wokeAt } = worker;
      const isGone = !life.isAlive || life.isPaused || this.#host.scheduler.now < wokeAt + NOTICES_MS;
      if (isGone || worker.runnerId === runnerId || attempts.size === 0) continue;
      this.#host.violated(
        "O4",
        `${sessionId}: ${what}, and ${life.name} still runs ${[...attempts].join(", ")}`,
      );
    }
  }

  #workOf(sessionId: string, worker: Worker): Work {
    let works = this.#work.get(sessionId);
    if (works === undefined) this.#work.set(sessionId, (works = new Map<string, Work>()));
    let work = works.get(worker.life.name);
    if (work === undefined) works.set(worker.life.name, (work = { worker, attempts: new Set<string>() }));
    return work;
  }
}
