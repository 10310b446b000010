// `RepeatGuard`: counts how often the same call of a task had the same result in a row, warns, and asks a
// person (K14).
//
//   - Only deliveries decide, so that a replay counts, and asks, the same.
//   - The memory is bounded: the calls that were seen longest ago are forgotten.
//   - Only tasks that were guarded when they were asked for count.
//
// This file knows no journal: its question is a command like one of the agent's.

import { AttemptLostError, TaskFailedError, UncertainEffectError } from "../errors/errors.ts";
import type { RecordedError } from "../errors/recorded-error.ts";
import { positionId } from "../ids.ts";
import { decodeJson } from "../json/json.ts";
import type { EventRecord, Repeat } from "../journal/record.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import type { WaitAsks } from "../asks/wait-asks.ts";
import type { Draft } from "../replay/journal-cursor.ts";
import type { KernelOptions } from "../replay/kernel-options.ts";
import type { OpenItem, OpenTask } from "../replay/open-items.ts";

/** The counts at which a warning is noted, and at which a person is asked. */
const REPEATS = { warned: 5, asked: 10 } as const;
/**
 * The characters that are kept of a hash, since every checkpoint has them all. No two of `FORMAT_LIMITS.repeats`
 * calls have 72 equal bits by chance.
 */
const HASH_CHARS = 12;

type TaskEvent = Extract<EventRecord, { type: "task_completed" | "task_failed" }>;
export type TaskOutcome = TaskEvent | Draft<TaskEvent>;

/** An outcome that was delivered to the kernel, but not to the agent yet. */
interface Delivered {
  readonly item: OpenItem;
  readonly outcome: TaskOutcome;
  readonly handOver: () => void;
  /** The asks of the agent; absent when it may ask for nothing any more. */
  readonly asks: Pick<WaitAsks, "requestInput"> | undefined;
  readonly isLive: boolean;
  /** The session whose id names the task. */
  readonly self: string;
}

export class RepeatGuard {
  readonly #hash: KernelOptions["hash"];
  readonly #seen = new Map<string, Repeat>();
  readonly #warnings: string[] = [];

  constructor({ hash, repeats }: Pick<KernelOptions, "hash" | "repeats">) {
    this.#hash = hash;
    for (const repeat of repeats) this.#seen.set(repeat.call, repeat);
  }

  /** The counts for the next turn. */
  get seen(): readonly Repeat[] {
    return [...this.#seen.values()];
  }

  /** Warnings to be noted for people; each is returned once. */
  takeWarnings(): readonly string[] {
    return this.#warnings.splice(0);
  }

  /**
   * Count the outcome. Returns whether a person is asked; the outcome is then delivered only when that person
   * allows it.
   */
  holdsBack({ item: { task, future }, outcome, handOver, asks, isLive, self }: Delivered): boolean {
    if (task === undefined || !task.guarded) return false;
    const call = this.#shortHash(`${task.kind} ${task.input ?? ""}`);
    const count = this.#count(call, this.#shortHash(`${outcome.type} ${outcome.payload ?? ""}`));
    const what = `task "${task.kind}" has had the same result ${count} times, asked with the same input`;
    if (count === REPEATS.warned && isLive) this.#warnings.push(what);
    if (count < REPEATS.asked || asks === undefined) return false;
    const details = { kind: task.kind, input: decodeJson(task.input) ?? null };
    const question = asks.requestInput({ prompt: `${what}. May it go on?`, details }, "approval", {}, false);
    future.heldBy = question;
    question.then(
      (answer) => {
        if (!isApproved(answer)) {
          const message = `${what}, and a person did not let it go on`;
          const error = { name: "RepeatedError", message, code: "limit_exceeded" };
          future.reject(taskFailure(self, task, outcome.attempt, error));
          return;
        }
        this.#seen.delete(call); // Begin the count again.
        handOver();
      },
      (error: Error) => future.reject(error),
    );
    return true;
  }

  #shortHash(text: string): string {
    return this.#hash(text).slice(0, HASH_CHARS);
  }

  /** The number of times in a row that the call has had this result. */
  #count(call: string, result: string): number {
    const before = this.#seen.get(call);
    const count = before?.result === result ? before.count + 1 : 1;
    this.#seen.delete(call); // The latest is last.
    this.#seen.set(call, { call, result, count });
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > FORMAT_LIMITS.repeats && oldest !== undefined) this.#seen.delete(oldest);
    return count;
  }
}

/** The error that an agent gets for a failed task. */
export function taskFailure(
  self: string,
  { id, kind }: OpenTask,
  attempts: number,
  recorded: unknown,
): TaskFailedError {
  const error = recorded as RecordedError;
  // A foreign error of such a name has another code.
  const Failure = error.code === "task_failed" ? LOSSES[error.name] : undefined;
  return new (Failure ?? TaskFailedError)({ taskId: positionId(self, id), kind, attempts }, error);
}

const LOSSES: Readonly<Record<string, typeof TaskFailedError | undefined>> = {
  AttemptLostError,
  UncertainEffectError,
};

/** The answer of `holdfast approve`. */
function isApproved(answer: unknown): boolean {
  return typeof answer === "object" && answer !== null && "approved" in answer && answer.approved === true;
}
