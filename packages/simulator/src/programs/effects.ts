// `Effects`: the world that tasks act upon, which records how often each of them started, failed and
// succeeded.
//
//   - A task fails as often as its node says, counted over all processes, and then succeeds.
//   - An attempt that starts after its task's outcome was committed is a violation (H7), if its owner still
//     holds the session.

import type { Dice } from "../world/dice.ts";
import type { EventLog } from "../world/event-log.ts";

/** The effects of a program's task on the world, besides its output. */
export interface Behaviour {
  /** Attempts that fail before one succeeds. */
  readonly failures?: number;
  /** It never succeeds, and its error says so. */
  readonly isHopeless?: boolean;
  /** It may fail and hang further times, by the faults of the moment, because it is retried often enough. */
  readonly isPatient?: boolean;
  /** It has a time-out, so it may hang. */
  readonly mayHang?: boolean;
  /** Its duration, which is so long that its session does not wait for it. */
  readonly takesMs?: number;
}

export interface Effect {
  starts: number;
  failures: number;
  /** How often it succeeded. */
  done: number;
}

/** The identity of an attempt. */
export interface AttemptFacts {
  readonly sessionId: string;
  readonly taskId: string;
  readonly attempt: number;
  /** The life in which it runs. */
  readonly life: string;
  /** The owner under which that life claims sessions. */
  readonly owner: string;
}

export interface EffectsHost {
  readonly dice: Dice;
  readonly log: EventLog;
  faults(): { readonly taskFails: number; readonly taskHangs: number; readonly taskMs: number };
  /** Whether the outcome of this task is committed, and this owner holds its session. */
  isOver(facts: AttemptFacts): boolean;
  /** An attempt has started. */
  begun(facts: AttemptFacts): void;
  violated(promise: string, what: string): void;
}

/** An attempt's plan. */
export interface AttemptPlan {
  readonly ms: number;
  readonly end: "done" | "fails" | "hopeless" | "hangs";
}

export class Effects {
  readonly #host: EffectsHost;
  readonly #effects = new Map<string, Effect>();
  #attemptsMs = 0;

  constructor(host: EffectsHost) {
    this.#host = host;
  }

  /** The planned milliseconds of all attempts together. */
  get attemptsMs(): number {
    return this.#attemptsMs;
  }

  /** By session and node. */
  of(sessionId: string, node: string): Effect {
    const key = `${sessionId} ${node}`;
    let effect = this.#effects.get(key);
    if (effect === undefined) this.#effects.set(key, (effect = { starts: 0, failures: 0, done: 0 }));
    return effect;
  }

  /** An attempt starts. */
  begin(facts: AttemptFacts, node: string, behaviour: Behaviour): AttemptPlan {
    const { life, taskId, attempt, sessionId } = facts;
    const plan = this.#plan(this.of(sessionId, node), behaviour);
    this.of(sessionId, node).starts++;
    this.#attemptsMs += plan.ms;
    this.#host.begun(facts);
    this.#host.log.add(
      life,
      `task ${node}`,
      () => `${taskId} attempt ${attempt}: ${plan.end} after ${plan.ms} ms`,
    );
    if (this.#host.isOver(facts))
      this.#host.violated("H7", `attempt ${attempt} of ${taskId} started after its outcome was committed`);
    return plan;
  }

  /** An attempt ended, after all it took. */
  ended(sessionId: string, node: string, end: "done" | "failed"): void {
    const effect = this.of(sessionId, node);
    if (end === "done") effect.done++;
    else effect.failures++;
  }

  #plan({ failures }: Effect, behaviour: Behaviour): AttemptPlan {
    const { dice } = this.#host;
    const { taskFails, taskHangs, taskMs } = this.#host.faults();
    const ms = taskMs === 0 ? 0 : dice.between(0, taskMs);
    if (behaviour.isHopeless === true) return { ms, end: "hopeless" };
    if (behaviour.takesMs !== undefined) return { ms: behaviour.takesMs, end: "done" };
    if (failures < (behaviour.failures ?? 0)) return { ms, end: "fails" };
    if (behaviour.mayHang === true && taskHangs > 0 && dice.chance(taskHangs)) return { ms, end: "hangs" };
    if (behaviour.isPatient === true && taskFails > 0 && dice.chance(taskFails)) return { ms, end: "fails" };
    return { ms, end: "done" };
  }
}
