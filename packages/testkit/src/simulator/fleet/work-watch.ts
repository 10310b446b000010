// Who works on what: the attempts that run in each life, and whether two run for one session where only one may.
//
//   O3. What a runner that is dead held can be claimed after its lease, and at most `PASSES_ON_MS` more.
//   O4. When a claim passes on, whoever had it before runs nothing for its session any more; unless it is paused, and cannot know.

import type { TraceEvent } from "@holdfast/core";
import type { ProcessLife } from "../process-life.ts";
import type { Scheduler } from "../scheduler.ts";
import type { SessionAccount, Violated } from "../watched-storage.ts";

/** How long one that goes on again after a pause has to notice. */
const NOTICES_MS = 1_000;
const PASSES_ON_MS = 5_000;

export interface Worker {
  readonly life: ProcessLife;
  readonly runnerId: string;
  /** When it last went on after a pause, in simulated milliseconds. */
  wokeAt: number;
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
  /** Epoch milliseconds by the storage's clock. */
  wall(): number;
}

export class WorkWatch {
  readonly #host: WorkWatchHost;
  /** By session, by the name of the life. */
  readonly #work = new Map<string, Map<string, Work>>();

  constructor(host: WorkWatchHost) {
    this.#host = host;
  }

  /** What a life tells its tracer. */
  trace(worker: Worker, event: TraceEvent): void {
    if (event.type !== "task_started" && event.type !== "task_ended") return;
    const { sessionId, taskId, attempt } = event;
    const name = `${taskId} attempt ${attempt}`;
    const { attempts } = this.#workOf(sessionId, worker);
    if (event.type === "task_ended") attempts.delete(name);
    else {
      attempts.add(name);
      this.#look(sessionId, worker.runnerId, `${name} starts at ${worker.runnerId}`);
    }
  }

  /** O4. */
  claimed(sessionId: string, runnerId: string): void {
    this.#look(sessionId, runnerId, `it is claimed for ${runnerId}`);
  }

  /** O3. */
  died(runnerId: string): void {
    const { scheduler, leaseMs, accounts, wall, violated } = this.#host;
    const held = [...accounts()].filter(({ owner }) => owner === runnerId);
    for (const account of held) {
      const { sessionId, token } = account;
      scheduler.after(leaseMs + PASSES_ON_MS, undefined, () => {
        if (account.token === token && account.owner === runnerId && account.until > wall())
          violated(
            "O3",
            `${sessionId}: ${runnerId} died ${leaseMs + PASSES_ON_MS} ms ago, and holds it still`,
          );
      });
    }
  }

  #look(sessionId: string, runnerId: string, what: string): void {
    if (this.#host.isMinimal(sessionId)) return;
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
