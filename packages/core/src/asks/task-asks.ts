// `TaskAsks`: the tasks that an agent asks for, and those that answer requests of its children.
//
//   - Asks of one turn with the same key are one task (K1).
//   - On replay the recorded deadline, guard and effect count, whatever the agent asks for now.

import { callerLine, laterCallerLine } from "../errors/author-line.ts";
import { UsageError } from "../errors/errors.ts";
import type { ChildRequest } from "../journal/record.ts";
import type { EffectClass, RetryPolicy } from "../journal/task-policy.ts";
import { encodeJson, type JsonText } from "../json/json.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { keyOfAnother, unknownTaskKind } from "../replay/faults.ts";
import { DurableFuture } from "../replay/future.ts";
import { NEW_ATTEMPTS, type OpenTask } from "../replay/open-items.ts";
import type { KernelParts } from "../replay/turn.ts";
import { checkDeadline, checkRetry, checkTimeout, momentAfter, refuseUnlessText } from "./checks.ts";
import { countReferences } from "./conversation-ref.ts";

/** A defined task as a context needs it: its name, and its types for the compiler. */
export interface TaskType<Input, Output> {
  readonly name: string;
  readonly types?: { readonly input: Input; readonly output: Output };
}

/** Options of a task where an agent schedules it. They replace those of its definition. */
export interface TaskOptions {
  /** Tasks of one segment with the same key are one task (K1). Handlers get it as `idempotencyKey`. */
  readonly idempotencyKey?: string;
  /** The time that one attempt may take. */
  readonly timeoutMs?: number;
  /** The time for the whole task, over all attempts and restarts. The task then fails with `task_timeout`. */
  readonly deadlineMs?: number;
  /** How often and when the task is tried again. */
  readonly retry?: RetryPolicy;
  /** The effect of the task on the outside world; that of its definition by default. */
  readonly effect?: EffectClass;
  /**
   * The answer to the agent when an effect that happens `once` may have happened, or not.
   *
   * With `throw`, the default, it is an `UncertainEffectError`. With `return` it is an `UncertainEffect` in
   * place of the output. With `ask` a person is asked whether the task is to run again, as a new task.
   * Without an approval it is the error.
   */
  readonly onUncertain?: "throw" | "return" | "ask";
}

export interface TaskRequest {
  readonly kind: string;
  readonly input: unknown;
  readonly closure?: (task: unknown) => unknown;
  readonly options: TaskOptions;
}

type AskedTask = Omit<OpenTask, keyof typeof NEW_ATTEMPTS>;

export class TaskAsks {
  readonly #parts: KernelParts;
  #keyed: Map<string, { readonly future: DurableFuture<unknown>; readonly asked: string }> | undefined;

  constructor(parts: KernelParts) {
    this.#parts = parts;
  }

  /** Ask for a task. Returns the future of its outcome. @throws UsageError or LimitError, which is remembered. */
  schedule(request: TaskRequest): DurableFuture<unknown> {
    const { kind, closure } = request;
    const { idempotencyKey: key } = request.options;
    const { turn, options, faults } = this.#parts;
    turn.guard();
    const lineOf = closure !== undefined && options.development ? laterCallerLine() : undefined;
    const traits = closure === undefined ? options.describeTask(kind) : {};
    if (traits === undefined) throw faults.fail(unknownTaskKind(kind, options.taskKinds(), callerLine()));
    if (key !== undefined) refuseUnlessText(faults, key, "an idempotency key", 1_000);
    const { text: input, hasConversation } = this.#encodeInput(request.input, `input of task "${kind}"`);
    const hash = options.hash(input ?? "");
    const known = key === undefined ? undefined : this.#keyed?.get(key);
    if (known !== undefined) {
      if (known.asked === `${kind} ${hash}`) return known.future;
      throw faults.fail(keyOfAnother(key ?? "", known.future.label, kind, callerLine()));
    }
    const effect = effectOf(this.#parts, request.options.effect ?? traits.effect);
    const retry = faults.check(checkRetry, request.options.retry ?? traits.retry ?? defaultRetry(effect));
    const timeoutMs = faults.check(checkTimeout, request.options.timeoutMs ?? traits.timeoutMs);
    const { deadlineAt, deadlineMs } = this.#deadline(
      faults.check(checkDeadline, request.options.deadlineMs ?? traits.deadlineMs),
    );
    const guarded = this.#isGuarded(traits.guardRepeats === true);
    const id = turn.ask({
      type: "schedule_task",
      kind,
      hash,
      ...(key === undefined ? NOTHING : { key }),
      ...(timeoutMs === undefined ? NOTHING : { timeoutMs }),
      ...(deadlineAt === undefined ? NOTHING : { deadlineAt }),
      ...(retry === undefined ? NOTHING : { retry }),
      ...(effect === undefined ? NOTHING : { effect }),
      ...keptInput(input),
      ...(guarded ? { guarded } : NOTHING),
    });
    const task = {
      id,
      kind,
      input,
      key,
      retry,
      effect,
      timeoutMs,
      deadlineMs,
      deadlineAt,
      closure: closure && options.bindClosure(kind, closure),
      hasConversation,
      guarded,
      ...(lineOf === undefined ? NOTHING : { lineOf }),
    };
    const future = this.#add(task, `task "${kind}"`);
    if (key !== undefined) (this.#keyed ??= new Map()).set(key, { future, asked: `${kind} ${hash}` });
    return future;
  }

  /** A task that answers a child's request. The kernel asks for it, and no agent observes it. */
  scheduleHandler(kind: string, request: ChildRequest): void {
    const input = encodeJson(request.payload, "request");
    const { cursor, options } = this.#parts;
    const traits = options.describeTask(kind) ?? {};
    const { timeoutMs, deadlineMs: patienceMs } = traits;
    const effect = effectOf(this.#parts, traits.effect);
    const retry = traits.retry ?? defaultRetry(effect);
    const { deadlineAt, deadlineMs } = this.#deadline(patienceMs);
    const id = cursor.append({
      type: "schedule_task",
      kind,
      hash: options.hash(input ?? ""),
      ...(deadlineAt === undefined ? NOTHING : { deadlineAt }),
      ...(effect === undefined ? NOTHING : { effect }),
      ...keptInput(input),
    });
    const rest = { key: undefined, closure: undefined, hasConversation: false, guarded: false, request };
    this.#add(
      { id, kind, input, retry, effect, timeoutMs, deadlineMs, deadlineAt, ...rest },
      `the handler "${kind}"`,
    );
  }

  /** The task is open from here on, and starts with the commit of its segment. */
  #add(asked: AskedTask, label: string): DurableFuture<unknown> {
    const { turn, open, cursor, segment } = this.#parts;
    const task: OpenTask = { ...asked, ...NEW_ATTEMPTS };
    const future = new DurableFuture<unknown>(turn, "task", task.id, label);
    open.add({ future, task });
    if (cursor.slice === "live") segment.addTask(task);
    return future;
  }

  /** Whether it is guarded: on replay as recorded. */
  #isGuarded(wanted: boolean): boolean {
    const { cursor } = this.#parts;
    if (cursor.slice !== "replay") return wanted;
    const { next } = cursor;
    return next?.type === "schedule_task" && next.guarded === true;
  }

  /** On replay as recorded. */
  #deadline(ms: number | undefined): Pick<OpenTask, "deadlineAt" | "deadlineMs"> {
    const { slice, next, now } = this.#parts.cursor;
    const recorded = next?.type === "schedule_task" ? next.deadlineAt : undefined;
    const deadlineAt = slice === "replay" ? recorded : momentAfter(this.#parts, ms);
    return { deadlineAt, deadlineMs: deadlineAt === undefined ? undefined : deadlineAt - now };
  }

  /** Data that looks like a reference to a conversation stays data. An input with both is refused. */
  #encodeInput(value: unknown, what: string): { text: JsonText | undefined; hasConversation: boolean } {
    const text = this.#parts.turn.encode(value, what);
    if (text === undefined) return { text, hasConversation: false };
    const { references, keys } = countReferences(value, text);
    if (references > 0 && keys > references)
      throw this.#parts.faults.fail(
        new UsageError(`${what} has both a conversation and a key "$conversation" of its own`, {
          fix: "rename that key, or pass the data as text",
        }),
      );
    return { text, hasConversation: references > 0 };
  }
}

const NOTHING = {};

/** The input is in the record if it is short; otherwise only its hash is. */
function keptInput(input: JsonText | undefined): { readonly payload?: JsonText } {
  return input === undefined || input.length > FORMAT_LIMITS.inputKeptChars ? NOTHING : { payload: input };
}

/** The class to record. On replay the recorded class counts, whatever the task declares now. */
function effectOf(
  { cursor }: Pick<KernelParts, "cursor">,
  wanted: EffectClass | undefined,
): EffectClass | undefined {
  const { slice, next } = cursor;
  if (slice !== "replay") return wanted;
  return next?.type === "schedule_task" ? next.effect : undefined;
}

/** A task that happens `once` is not tried again after an error either, unless its author says so. */
function defaultRetry(effect: EffectClass | undefined): RetryPolicy | undefined {
  return effect === "once" ? { maxAttempts: 1 } : undefined;
}
