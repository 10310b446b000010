// `Spending`: the costs of a session's tasks. It makes the charges of each commit, and sorts the tasks by
// storage's answer to their reservations: admitted, queued or refused.
//
//   - The worst case of every attempt is reserved before it starts, in the commit that starts it. This hold
//     is settled once, with the outcome of the attempt.
//   - An attempt that reported no usage, or that was lost with its process, is charged its worst case. When a
//     session without a journal restarts from scratch, all its holds are charged so. Its tasks get the same
//     numbers again and may then cost something else, so an old hold must not pay for them.
//   - A charge for an attempt that was lost with its process is marked, so that a person can release it.
//   - Usage that a task has charged with signals to its session is not charged again at its end.
//
// It exists only for sessions that have a payer. It knows no storage.

import {
  type Admission,
  type Amount,
  type Charge,
  type Hold,
  HoldfastError,
  type JournalRecord,
  NO_AMOUNT,
  type OpenTask,
  type Prices,
  type RecordedError,
  type RemainingBudget,
  type SealedSegment,
  type SessionSnapshot,
  settleAll,
  type TaskExecutor,
  type TaskTraits,
  type TokenUsage,
} from "@holdfast/core";

export interface SpendingHost {
  readonly prices: Prices | undefined;
  describeTask(kind: string): TaskTraits | undefined;
}

/** The tasks of a commit, by the admission of their reservations. */
export interface Decided {
  readonly start: readonly OpenTask[];
  /** Tasks to ask for again when other holds have settled. */
  readonly queued: readonly OpenTask[];
  /** The first refusal of the commit, if any. */
  readonly refused: Extract<Admission, { status: "refused" }> | undefined;
  /** The refused tasks. */
  readonly unpaid: readonly OpenTask[];
}

export class Spending {
  readonly #host: SpendingHost;
  readonly #held = new Map<number, Amount>();
  #lost: readonly Hold[];
  #remaining: RemainingBudget | undefined;

  /** @param lost the holds of an earlier life of a session without a journal. */
  constructor(
    host: SpendingHost,
    holds: readonly Hold[],
    lost: readonly Hold[],
    remaining: RemainingBudget | undefined,
  ) {
    this.#host = host;
    for (const { task, amount } of holds) this.#held.set(task, amount);
    this.#lost = lost;
    this.#remaining = remaining;
  }

  get remaining(): RemainingBudget | undefined {
    return this.#remaining;
  }

  /** Whether an attempt of this task was paid for in advance, and so may have run. */
  isHeld(task: number): boolean {
    return this.#held.has(task);
  }

  /**
   * The worst case of an attempt.
   *
   * @throws HoldfastError when its budget can never pay for an attempt of this task.
   */
  amountOf(task: OpenTask): Amount {
    const step = { ...NO_AMOUNT, steps: task.attempt === 1 ? 1 : 0 };
    const cost = this.#host.describeTask(task.kind)?.cost?.(task.input);
    if (cost === undefined) return step;
    const { tokensPerCall, costMicroUsd: costLimit } = this.#remaining ?? {};
    const tokens = integer(cost.maxTokens, task.kind, "maxTokens");
    if (tokensPerCall !== undefined && tokens > tokensPerCall) {
      throw new HoldfastError("budget_exceeded", `task "${task.kind}" may use ${tokens} tokens in one call`, {
        expected: `at most ${tokensPerCall} (the budget's maxTokensPerCall)`,
        fix: "ask for less, or raise the limit",
      });
    }
    const output = cost.maxOutputTokens ?? tokens;
    const usage = { model: cost.model ?? "", inputTokens: tokens - output, outputTokens: output };
    const costMicroUsd = this.#dearest(usage) ?? cost.maxCostMicroUsd;
    if (costMicroUsd === undefined && costLimit !== undefined) throw unknownPrice(cost.model, task.kind);
    return { ...step, tokens, costMicroUsd: integer(costMicroUsd ?? 0, task.kind, "maxCostMicroUsd") };
  }

  /** The highest cost of a usage: some models charge more for writing the input to a cache. */
  #dearest(usage: Pick<TokenUsage, "model" | "inputTokens" | "outputTokens">): number | undefined {
    const { prices } = this.#host;
    const plain = prices?.(usage);
    if (plain === undefined) return undefined;
    return Math.max(plain, prices?.({ ...usage, cacheWriteTokens: usage.inputTokens }) ?? 0);
  }

  /**
   * The charges of the first commit of a session that restarts from scratch. That commit reserves nothing.
   */
  takeLost(): readonly Charge[] {
    const charges = settleAll(this.#lost, true);
    this.#lost = [];
    return charges;
  }

  /** The charges of a commit of this segment, before the reservations of tasks it starts. */
  settlements({ records, withdrawnTasks }: Pick<SealedSegment, "records" | "withdrawnTasks">): Charge[] {
    const charges: Charge[] = [];
    for (const record of records) {
      switch (record.type) {
        case "task_completed":
        case "outcome_kept":
          this.#settle(charges, record.task, record.usage);
          break;
        case "task_failed":
        case "attempt_failed":
          if (record.type === "attempt_failed" && record.handedOver === "waiting") {
            this.#settle(charges, record.task, NOTHING_USED);
            break;
          }
          this.#settle(charges, record.task, record.usage, isLostAttempt(record));
          break;
        case "attempt_lost":
          // mutant: lost-charge-unmarked
          this.#settle(charges, record.task, undefined, true);
          break;
        case "checkpoint":
          charges.push({ type: "turn" });
          break;
        default:
      }
    }
    for (const task of withdrawnTasks) this.#settle(charges, task, undefined);
    return charges;
  }

  /**
   * Sort these tasks by their admissions. `admissions` has those of the whole commit; the last ones are for
   * these tasks.
   */
  decided(tasks: readonly { task: OpenTask; amount: Amount }[], admissions: readonly Admission[]): Decided {
    const start: OpenTask[] = [];
    const queued: OpenTask[] = [];
    const unpaid: OpenTask[] = [];
    const own = admissions.slice(admissions.length - tasks.length);
    const others = admissions.slice(0, admissions.length - tasks.length);
    let refused = others.find((admission) => admission.status === "refused");
    tasks.forEach(({ task, amount }, i) => {
      const admission = own[i] ?? { status: "queued" };
      if (admission.status === "queued") queued.push(task);
      if (admission.status === "refused") {
        refused ??= admission;
        unpaid.push(task);
      }
      if (admission.status !== "admitted") return;
      this.#held.set(task.id, amount);
      start.push(task);
    });
    return { start, queued, refused, unpaid };
  }

  /** Update what is left for an outcome that is about to be delivered, as if it were committed. */
  foresee(task: number, usage: TokenUsage | undefined): void {
    const held = this.#held.get(task);
    if (held === undefined || this.#remaining === undefined) return;
    const used = usedOf(held, usage);
    const { tokens, costMicroUsd } = this.#remaining;
    this.#remaining = {
      ...this.#remaining,
      ...(tokens === undefined ? {} : { tokens: tokens + held.tokens - used.tokens }),
      ...(costMicroUsd === undefined
        ? {}
        : { costMicroUsd: costMicroUsd + held.costMicroUsd - used.costMicroUsd }),
    };
  }

  /** Take over what is left according to storage. */
  noteRemaining(remaining: RemainingBudget | undefined): void {
    if (remaining !== undefined) this.#remaining = remaining;
  }

  #settle(charges: Charge[], task: number, usage: TokenUsage | undefined, isLost = false): void {
    const held = this.#held.get(task);
    if (held === undefined) return; // Never started, or settled before.
    this.#held.delete(task);
    // mutant: task-not-settled
    charges.push({ type: "settle", task, used: usedOf(held, usage), ...(isLost ? { lost: true } : {}) });
  }
}

type FailureRecord = Extract<JournalRecord, { type: "task_failed" | "attempt_failed" }>;

const NOTHING_USED = { model: "", inputTokens: 0, outputTokens: 0, costMicroUsd: 0 } as const;

/** The error of an attempt that ended with its process, here or where it was queued. */
const LOST_ATTEMPT = "AttemptLostError";
const UNCERTAIN_EFFECT = "UncertainEffectError";

/** The error of a lost attempt that is not run again. */
export function lossOf({ attempt, retry, effect }: OpenTask): RecordedError {
  // Attempts that were handed over have a number, and do not count.
  const most = Math.max(retry?.maxAttempts ?? attempt, attempt);
  const message = `attempt ${attempt} of ${most} was running when its process ended; its outcome is unknown`;
  if (effect !== "once") return { name: LOST_ATTEMPT, message, code: "task_failed" };
  return {
    name: UNCERTAIN_EFFECT,
    message: `${message}, and so is whether its effect has happened`,
    code: "task_failed",
    fix: LOOK_FIRST,
  };
}

const LOOK_FIRST = "look whether the effect has happened before doing it again";

/** The error of an attempt whose handler had not settled at its end: an effect that happens once is uncertain. */
export function unknownEnd({ effect, attempt }: OpenTask, error: RecordedError): RecordedError {
  if (effect !== "once") return error;
  const message = `attempt ${attempt} was cut off (${error.message}), and nobody knows whether its effect has happened`;
  return { name: UNCERTAIN_EFFECT, message, code: "task_failed", fix: LOOK_FIRST, cause: error };
}

function isLostAttempt({ usage, payload }: FailureRecord): boolean {
  if (usage !== undefined || payload === undefined) return false;
  const { cause, ...error } = JSON.parse(payload) as Partial<RecordedError>;
  return [error, cause].some(
    (one) => one?.code === "task_failed" && (one.name === UNCERTAIN_EFFECT || one.name === LOST_ATTEMPT),
  );
}

function usedOf(held: Amount, usage: TokenUsage | undefined): Amount {
  if (usage === undefined) return held;
  // mutant: charged-twice
  if (usage.isCharged === true) return NO_AMOUNT; // Signals of the task have charged it.
  return {
    ...NO_AMOUNT,
    tokens: usage.inputTokens + usage.outputTokens,
    costMicroUsd: usage.costMicroUsd ?? held.costMicroUsd,
  };
}

/** The spending of a session, or `undefined` for a session without a payer. */
export function spendingOf(
  { session, holds, remaining }: Pick<SessionSnapshot, "session" | "holds" | "remaining">,
  { prices, executor }: { readonly prices: Prices | undefined; readonly executor: TaskExecutor },
): Spending | undefined {
  if (session.payers.length === 0) return undefined;
  const host: SpendingHost = { prices, describeTask: (kind) => executor.describe(kind) };
  const restarts = session.persistence !== undefined;
  // mutant: earlier-holds-uncharged
  return new Spending(host, restarts ? [] : holds, restarts ? holds : [], remaining);
}

/** Two reports of one attempt as one; of several models the last names it. */
export function addUsage(a: TokenUsage | undefined, b: TokenUsage): TokenUsage {
  if (a === undefined) return b;
  const costMicroUsd =
    a.costMicroUsd === undefined || b.costMicroUsd === undefined
      ? undefined
      : a.costMicroUsd + b.costMicroUsd;
  const { costMicroUsd: _cost, ...rest } = b;
  return {
    ...rest,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheReadTokens: (a.cacheReadTokens ?? 0) + (b.cacheReadTokens ?? 0),
    cacheWriteTokens: (a.cacheWriteTokens ?? 0) + (b.cacheWriteTokens ?? 0),
    ...(costMicroUsd === undefined ? {} : { costMicroUsd }),
  };
}

function integer(value: number, kind: string, what: string): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new HoldfastError("usage", `task "${kind}" declares a ${what} of ${value}`, {
    expected: "a whole number, 0 or more",
  });
}

function unknownPrice(model: string | undefined, kind: string): HoldfastError {
  const what = model === undefined ? "no model" : `model "${model}", which has no known price`;
  return new HoldfastError(
    "unknown_price",
    `task "${kind}" names ${what}, and its session has a cost budget`,
    {
      fix: "limit tokens and not the cost (`tokens` in the budget of an agent file, `--budget 100000tokens`), or, in code, give the price with createRuntime({ prices }) or declare maxCostMicroUsd in the task's cost",
    },
  );
}
