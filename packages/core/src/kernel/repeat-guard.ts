// How often a task was asked for with the same input and had the same result, one time after another, and what follows (K14).
//
//   repeat-guard-1. Decided by what was delivered alone, so that a replay counts, and asks, the same.
//   repeat-guard-2. Bounded: of the calls that were seen longest ago nothing is known any more.
//   repeat-guard-3. Only of tasks that wanted it when they were asked for, in sessions that began with it.
//
// It knows no journal: the question it asks is a command like one of the agent's.

import { TaskFailedError, type RecordedError } from "../errors/errors.ts";
import { positionId } from "../ids.ts";
import { decodeJson } from "../json/json.ts";
import type { EventRecord, Repeat } from "../journal/record.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { BEHAVIOUR } from "../session/session.ts";
import type { Asks } from "./asks.ts";
import type { Draft } from "./journal-cursor.ts";
import type { KernelOptions } from "./kernel-options.ts";
import type { OpenItem, OpenTask } from "./open-items.ts";

/** How often until somebody is told, and until a person is asked. */
const REPEATS = { warned: 5, asked: 10 } as const;

type TaskEvent = Extract<EventRecord, { type: "task_completed" | "task_failed" }>;
export type TaskOutcome = TaskEvent | Draft<TaskEvent>;

/** An outcome that was delivered, before the agent has it. */
interface Delivered {
  readonly item: OpenItem;
  readonly outcome: TaskOutcome;
  readonly handOver: () => void;
  /** Where to ask; absent when nothing may be asked any more. */
  readonly asks: Pick<Asks, "requestInput"> | undefined;
  readonly isLive: boolean;
  /** The session that the task is named by. */
  readonly self: string;
}

export class RepeatGuard {
  readonly #options: Pick<KernelOptions, "relations" | "describeTask" | "hash">;
  readonly #seen = new Map<string, Repeat>();
  readonly #warnings: string[] = [];

  constructor(options: KernelOptions) {
    this.#options = options;
    for (const repeat of options.repeats) this.#seen.set(repeat.call, repeat);
  }

  /** For the next life. */
  get seen(): readonly Repeat[] {
    return [...this.#seen.values()];
  }

  /** What is to be noted for people, once. */
  takeWarnings(): readonly string[] {
    return this.#warnings.splice(0);
  }

  /** Count it. Answers whether a person is asked, and it is handed over only when that one allows it. */
  holdsBack({ item: { task, future }, outcome, handOver, asks, isLive, self }: Delivered): boolean {
    if (task === undefined || !this.#isGuarded(task)) return false;
    const { hash } = this.#options;
    const call = hash(`${task.kind} ${task.input ?? ""}`);
    const count = this.#count(call, hash(`${outcome.type} ${outcome.payload ?? ""}`));
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
        this.#seen.delete(call); // Count anew.
        handOver();
      },
      (error: Error) => future.reject(error),
    );
    return true;
  }

  /** repeat-guard-3. */
  #isGuarded({ kind, guarded }: OpenTask): boolean {
    const { relations, describeTask } = this.#options;
    if ((relations.flags & BEHAVIOUR.recordsGuards) !== 0) return guarded;
    return (relations.flags & BEHAVIOUR.guardsRepeats) !== 0 && describeTask(kind)?.guardRepeats === true;
  }

  /** How often the call has had this result now. */
  #count(call: string, result: string): number {
    const before = this.#seen.get(call);
    const count = before?.result === result ? before.count + 1 : 1;
    this.#seen.delete(call); // The latest is last.
    this.#seen.set(call, { call, result, count });
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > FORMAT_LIMITS.repeats && oldest !== undefined) this.#seen.delete(oldest); // repeat-guard-2.
    return count;
  }
}

export function taskFailure(
  self: string,
  { id, kind }: OpenTask,
  attempts: number,
  recorded: unknown,
): TaskFailedError {
  const taskId = positionId(self, id);
  return new TaskFailedError({ taskId, kind, attempts }, recorded as RecordedError);
}

/** As `holdfast approve` answers. */
function isApproved(answer: unknown): boolean {
  return typeof answer === "object" && answer !== null && "approved" in answer && answer.approved === true;
}
