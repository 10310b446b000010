// `TaskStarts`: which tasks of a session start with a commit, and what the commit is charged for them.
//
// In a session without a payer, a task starts as soon as the batch with its command is committed (D1). A
// retry starts when it is due. The first one under a claim waits for a commit, because a coordinator takes
// back a claim that shows no use (claiming-1). In a session with a payer, a commit asks for each attempt, and the attempt
// starts if it is admitted. A queued attempt is asked for again when other holds have settled. A task that
// the budget can never pay for fails without running.

import {
  recordError,
  type Admission,
  type Amount,
  type ChangeResult,
  type Charge,
  type OpenTask,
  type RecordedError,
  type RemainingBudget,
  type SealedSegment,
  type TokenUsage,
} from "@holdfast/core";
import type { Spending } from "./spending.ts";
import type { TaskSession } from "./task-session.ts";

/** The attempts of the session, which begin here. */
export interface Starter {
  start(task: OpenTask): void;
  refuse(task: OpenTask, error: RecordedError): void;
}

/** The tasks that a commit starts if they are admitted, and its charges. */
export interface Opening {
  readonly tasks: readonly OpenTask[];
  readonly charges: readonly Charge[];
  /** The reservations among the charges, in their order. */
  readonly asked: readonly { readonly task: OpenTask; readonly amount: Amount }[];
}

export type Refused = Extract<Admission, { status: "refused" }>;

export class TaskStarts {
  readonly #session: TaskSession;
  readonly #attempts: Starter;
  readonly #spending: Spending | undefined;
  /** Whether storage has answered a commit under the claim. */
  #isConfirmed = false;
  /** Tasks that the next commit asks for. */
  readonly #asking: OpenTask[] = [];
  /** Tasks with a hold that start with the next commit. */
  readonly #paid: OpenTask[] = [];
  /** Refused tasks, which fail once the session has been notified that it ends for that reason. */
  readonly #unpaid: OpenTask[] = [];

  constructor(session: TaskSession, attempts: Starter, spending: Spending | undefined) {
    this.#session = session;
    this.#attempts = attempts;
    this.#spending = spending;
  }

  /** Whether the next commit has something to ask for. */
  get isAsking(): boolean {
    return this.#asking.length + this.#paid.length > 0;
  }

  get remaining(): RemainingBudget | undefined {
    return this.#spending?.remaining;
  }

  /**
   * Whether its attempt had started before its process ended; `undefined` without a payer, as then nothing is
   * stored of that.
   */
  wasBegun({ id }: OpenTask): boolean | undefined {
    return this.#spending?.isHeld(id);
  }

  /** Take over what is left according to storage. */
  noteRemaining(remaining: RemainingBudget | undefined): void {
    this.#spending?.noteRemaining(remaining);
  }

  foresee(task: number, usage: TokenUsage | undefined): void {
    this.#spending?.foresee(task, usage);
  }

  /** Start these open tasks, or ask for them in the next commit. */
  begin(tasks: readonly OpenTask[]): void {
    // mutant: unconfirmed-claim-used
    if (this.#spending === undefined && this.#isConfirmed) {
      for (const task of tasks) this.#attempts.start(task);
      return;
    }
    this.#asking.push(...tasks);
    this.#session.wake();
  }

  /** Start a task whose hold is stored, and which has not begun. */
  beginPaid(task: OpenTask): void {
    // mutant: unconfirmed-paid-task-begun
    if (this.#isConfirmed) return this.#attempts.start(task);
    this.#paid.push(task);
    this.#session.wake();
  }

  /** The tasks and charges of a commit of this segment. With `begins` false no task starts after it. */
  open(segment: SealedSegment, begins: boolean): Opening {
    const tasks = begins ? this.#toStart(segment) : [];
    const spending = this.#spending;
    if (spending === undefined) return tasks.length === 0 ? NOTHING : { tasks, charges: [], asked: [] };
    const lost = spending.takeLost();
    const charges = [...lost, ...spending.settlements(segment)];
    if (lost.length > 0) {
      // Storage may apply a commit of a session without a journal twice. Therefore this commit only settles
      // the old holds, and the next one reserves these numbers.
      this.begin(tasks);
      return { tasks: [], charges, asked: [] };
    }
    const asked: { task: OpenTask; amount: Amount }[] = [];
    for (const task of tasks) {
      try {
        const amount = spending.amountOf(task);
        asked.push({ task, amount });
        charges.push({ type: "reserve", task: task.id, amount });
      } catch (error) {
        this.#attempts.refuse(task, recordError(error));
      }
    }
    return { tasks, charges, asked };
  }

  /** After the commit: start the tasks that were admitted. Answers the first refusal, if any. */
  committed(opening: Opening, result: ChangeResult & { readonly status: "committed" }): Refused | undefined {
    this.#isConfirmed = true;
    for (const task of this.#paid.splice(0))
      if (this.#session.openTask(task.id) === task) this.#attempts.start(task);
    if (this.#spending === undefined) {
      for (const task of opening.tasks) this.#attempts.start(task);
      return undefined;
    }
    this.#spending.noteRemaining(result.remaining);
    const decided = this.#spending.decided(opening.asked, result.admissions ?? []);
    for (const task of decided.start) this.#attempts.start(task);
    this.#asking.push(...decided.queued);
    if (opening.asked.length > 0) this.#session.asked(decided.queued.length > 0);
    this.#unpaid.push(...decided.unpaid);
    return decided.refused;
  }

  /** Fail the refused tasks: the session continues without them. */
  refuseUnpaid(): void {
    const message = "the budget is used up";
    const error = { name: "HoldfastError", message, code: "budget_exceeded" };
    for (const task of this.#unpaid.splice(0)) this.#attempts.refuse(task, error);
  }

  /** New tasks, tasks whose attempt was lost, and tasks that wait to be asked for. */
  #toStart({ newTasks, records }: SealedSegment): readonly OpenTask[] {
    const isPlain = this.#asking.length === 0 && !records.some(({ type }) => type === "attempt_lost");
    if (isPlain) return newTasks;
    const lost = records.flatMap((record) =>
      // mutant: no-attempt-after-loss
      record.type === "attempt_lost" && record.begins !== true
        ? (this.#session.openTask(record.task) ?? [])
        : [],
    );
    const asking = this.#asking.splice(0).filter((task) => this.#session.openTask(task.id) === task);
    return [...newTasks, ...lost, ...asking];
  }
}

const NOTHING: Opening = { tasks: [], charges: [], asked: [] };
