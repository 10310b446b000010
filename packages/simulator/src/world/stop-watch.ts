// `StopWatch`: a check of attempts at the end of a process. An orderly stop costs none (C3), and no end costs
// another process one (C4).
//
//   - An attempt that began under a claim which its process still holds at its stop never counts as lost,
//     unless another process begins it again.
//   - A stop is not checked when a request failed or was slow meanwhile or shortly before, or the process was
//     paused or killed. Its hand-over may not have been stored, as a request that failed is sent again after
//     a pause. An attempt is not checked when its process released its session before the stop, as it does
//     without a lease. The same holds when a cancel had refused its commit, as it then lets go of it.
//   - After ten hand-overs a task is handed over again only when its session was paused in between, for
//     whatever reason, or is being cancelled. A fork counts from its own beginning.
//   - Where only the end of its own process can cost an attempt, an attempt of a living process never counts
//     as lost. A process lets go of a session of its own when a cancel refuses its commit.

import type { JournalRecord } from "@holdfast/core";
import type { Violated } from "./account-checks.ts";

const HAND_OVERS_MAX = 10;
/** The longest pause before a request that failed is sent again. */
const PAUSE_MS = 10_000;

export interface BegunAttempt {
  readonly sessionId: string;
  /** The number of the task in its session. */
  readonly task: number;
  readonly attempt: number;
  /** The life in which it runs. */
  readonly life: string;
}

/** The claim of a session, as its storage has it. */
export interface Holder {
  readonly owner: string | undefined;
  readonly token: number;
  /** Then it has a deadline, and is not paused. */
  readonly isCancelAcknowledged: boolean;
}

/** An orderly stop under way. */
export interface Stop {
  spoil(): void;
  /** The process has ended. */
  over(): void;
}

export class StopWatch {
  readonly #violated: Violated;
  readonly #holderOf: (sessionId: string) => Holder;
  /** The lives that nothing but their own end may cost an attempt. */
  readonly #living = new Set<string>();
  /** The life in which each attempt began last. */
  readonly #lifeOf = new Map<string, string>();
  /** Attempts by the life in which they run, with the tokens of their claims. */
  readonly #begun = new Map<string, Map<string, { readonly sessionId: string; readonly token: number }>>();
  /** Attempts that no stop may have cost, with the lives that ended. */
  readonly #safe = new Map<string, string>();
  /** By session, then by task. */
  readonly #handOvers = new Map<string, Map<number, number>>();
  /** The sessions with a hand-over in the commit under way. */
  readonly #handedOver = new Set<string>();
  /** When a request of each life failed last. */
  readonly #failedAt = new Map<string, number>();
  readonly #paused = new Set<string>();
  readonly #pauses = new Map<string, number>();

  constructor(violated: Violated, holderOf: (sessionId: string) => Holder) {
    this.#violated = violated;
    this.#holderOf = holderOf;
  }

  began({ sessionId, task, attempt, life }: BegunAttempt): void {
    const name = nameOf(sessionId, task, attempt);
    this.#safe.delete(name);
    this.#lifeOf.set(name, life);
    const attempts = this.#begun.get(life) ?? new Map<string, { sessionId: string; token: number }>();
    this.#begun.set(life, attempts.set(name, { sessionId, token: this.#holderOf(sessionId).token }));
  }

  /** A request of the life has failed. */
  failed(life: string, now: number): void {
    this.#failedAt.set(life, now);
  }

  /** A life releases a session, whose attempts end with that. */
  released(life: string, sessionId: string): void {
    const attempts = this.#begun.get(life);
    for (const [name, begun] of attempts ?? []) if (begun.sessionId === sessionId) attempts?.delete(name);
  }

  /** A cancel has refused a commit: the life that holds the session lets go of it. */
  refused(sessionId: string): void {
    for (const life of this.#begun.keys()) this.released(life, sessionId);
  }

  /** A life begins that only its own end can cost an attempt. @returns its end. */
  lives(life: string): () => void {
    this.#living.add(life);
    return () => void this.#living.delete(life);
  }

  /** @param owner the name under which the life claims. */
  stops(life: string, owner: string, now: number): Stop {
    let isSpoilt = now - (this.#failedAt.get(life) ?? -Infinity) < PAUSE_MS;
    const held = [...(this.#begun.get(life) ?? [])].filter(([, { sessionId, token }]) => {
      const holder = this.#holderOf(sessionId);
      return holder.owner === owner && holder.token === token;
    });
    return {
      spoil: () => void (isSpoilt = true),
      over: () => {
        if (isSpoilt) return;
        for (const [name] of held) this.#safe.set(name, life);
      },
    };
  }

  /** A record was committed. */
  recorded(sessionId: string, record: JournalRecord): void {
    if (record.type === "attempt_lost" && record.begins !== true) {
      const name = nameOf(sessionId, record.task, record.attempt);
      const what = `${sessionId}: attempt ${record.attempt} of task ${record.task} is lost`;
      const stopped = this.#safe.get(name);
      if (stopped !== undefined) this.#violated("C3", `${what}, and ${stopped} stopped in order`);
      const life = this.#lifeOf.get(name);
      const isSure = life !== undefined && this.#living.has(life);
      if (isSure && !this.#holderOf(sessionId).isCancelAcknowledged)
        this.#violated("C4", `${what}, and ${life} lives`);
    }
    if (record.type !== "attempt_failed" || record.handedOver !== "running") return;
    const ofSession = this.#handOvers.get(sessionId) ?? new Map<number, number>();
    this.#handOvers.set(sessionId, ofSession.set(record.task, (ofSession.get(record.task) ?? 0) + 1));
    this.#handedOver.add(sessionId);
  }

  /** A session is new, with the records that it brought. */
  born(sessionId: string): void {
    this.#handOvers.delete(sessionId); // The open tasks of a fork begin afresh.
  }

  /** A session's row has changed, after the records of the same commit. */
  changed(sessionId: string, isPaused: boolean): void {
    if (isPaused && !this.#paused.has(sessionId))
      this.#pauses.set(sessionId, (this.#pauses.get(sessionId) ?? 0) + 1);
    if (isPaused) this.#paused.add(sessionId);
    else this.#paused.delete(sessionId);
    if (!this.#handedOver.delete(sessionId) || this.#holderOf(sessionId).isCancelAcknowledged) return;
    const count = Math.max(...(this.#handOvers.get(sessionId)?.values() ?? []), 0);
    if (count > HAND_OVERS_MAX * (1 + (this.#pauses.get(sessionId) ?? 0)))
      this.#violated("C3", `${sessionId}: a task was handed over ${count} times without a pause`);
  }
}

function nameOf(sessionId: string, task: number, attempt: number): string {
  return `${sessionId}/${task} attempt ${attempt}`;
}
