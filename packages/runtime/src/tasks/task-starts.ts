// Which tasks of a session start with a commit, and what the commit is charged for them.
//
// Where nobody pays, a task starts as soon as the batch that asked for it is committed (D1), and a retry when its time has come.
// Where somebody does, each attempt is asked for in a commit, and starts if it is admitted; it is asked for again when others have
// settled, and what cannot be paid at all fails without having run.

import {
  recordError,
  type Admission,
  type Amount,
  type ChangeResult,
  type Charge,
  type OpenTask,
  type RecordedError,
  type Remaining,
  type SealedSegment,
  type TokenUsage,
} from "@holdfast/core";
import type { Spending } from "./spending.ts";

export interface TaskStartsHost {
  /** The task of this number, while nobody has heard its outcome. */
  openTask(id: number): OpenTask | undefined;
  start(task: OpenTask): void;
  refuse(task: OpenTask, error: RecordedError): void;
  /** Some tasks wait until others have settled. */
  awaitSettlement(): void;
  /** Something is to be asked for. */
  wake(): void;
}

/** What a commit starts if it is admitted, and is charged. */
export interface Opening {
  readonly tasks: readonly OpenTask[];
  readonly charges: readonly Charge[];
  /** The reservations among them, in their order. */
  readonly asked: readonly { readonly task: OpenTask; readonly amount: Amount }[];
}

export type Refused = Extract<Admission, { status: "refused" }>;

export class TaskStarts {
  readonly #host: TaskStartsHost;
  readonly #spending: Spending | undefined;
  /** To be asked for by the next commit. */
  readonly #asking: OpenTask[] = [];
  /** Refused, and to be told so once the session has heard that it ends by it. */
  readonly #unpaid: OpenTask[] = [];

  constructor(host: TaskStartsHost, spending: Spending | undefined) {
    this.#host = host;
    this.#spending = spending;
  }

  /** Whether the next commit has something to ask for. */
  get isAsking(): boolean {
    return this.#asking.length > 0;
  }

  get remaining(): Remaining | undefined {
    return this.#spending?.remaining;
  }

  /** Whether its attempt was begun before its process ended; `undefined` where nobody pays, and so nothing is stored of that. */
  wasBegun({ id }: OpenTask): boolean | undefined {
    return this.#spending?.isHeld(id);
  }

  /** What storage said is left. */
  noteRemaining(remaining: Remaining | undefined): void {
    this.#spending?.noteRemaining(remaining);
  }

  foresee(task: number, usage: TokenUsage | undefined): void {
    this.#spending?.foresee(task, usage);
  }

  /** Start what is open and does not run. */
  begin(tasks: readonly OpenTask[]): void {
    if (this.#spending === undefined) {
      for (const task of tasks) this.#host.start(task);
      return;
    }
    this.#asking.push(...tasks);
    this.#host.wake();
  }

  /** What a commit of this segment starts. `begins` is false for one after which nothing is to start. */
  open(segment: SealedSegment, begins: boolean): Opening {
    const tasks = begins ? this.#toStart(segment) : [];
    const spending = this.#spending;
    if (spending === undefined) return tasks.length === 0 ? NOTHING : { tasks, charges: [], asked: [] };
    const lost = spending.takeLost();
    const charges = [...lost, ...spending.settlements(segment)];
    if (lost.length > 0) {
      // A commit of a session that keeps no journal is applied again when it is sent again: these numbers are not held for until it is.
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
        this.#host.refuse(task, recordError(error));
      }
    }
    return { tasks, charges, asked };
  }

  /** It is committed: start what was admitted. Answers the refusal, if anything was refused. */
  committed(opening: Opening, result: ChangeResult & { readonly status: "committed" }): Refused | undefined {
    if (this.#spending === undefined) {
      for (const task of opening.tasks) this.#host.start(task);
      return undefined;
    }
    this.#spending.noteRemaining(result.remaining);
    const decided = this.#spending.decided(opening.asked, result.admissions ?? []);
    for (const task of decided.start) this.#host.start(task);
    if (decided.queued.length > 0) {
      this.#asking.push(...decided.queued);
      this.#host.awaitSettlement();
    }
    this.#unpaid.push(...decided.unpaid);
    return decided.refused;
  }

  /** The session goes on without what cannot be paid. */
  refuseUnpaid(): void {
    const message = "the budget is used up";
    const error = { name: "HoldfastError", message, code: "budget_exceeded" };
    for (const task of this.#unpaid.splice(0)) this.#host.refuse(task, error);
  }

  /** New ones, those whose attempt was lost, and those that wait to be asked for. */
  #toStart({ newTasks, records }: SealedSegment): readonly OpenTask[] {
    const isPlain = this.#asking.length === 0 && !records.some(({ type }) => type === "attempt_lost");
    if (isPlain) return newTasks;
    const lost = records.flatMap((record) =>
      record.type === "attempt_lost" ? (this.#host.openTask(record.task) ?? []) : [],
    );
    const asking = this.#asking.splice(0).filter((task) => this.#host.openTask(task.id) === task);
    return [...newTasks, ...lost, ...asking];
  }
}

const NOTHING: Opening = { tasks: [], charges: [], asked: [] };
