// `Asks`: what agents can ask for, and the checks before. It is the half of the kernel that an `AgentContext`
// calls.
//
// Each ask goes through the same steps. The guard checks that the agent may ask now, and the author's values
// are checked. Then the ask gets a place in the journal, and an open item with the future of its answer.
// Deliveries, which are the kernel's, bring the answers.
//
//   K1. Nothing comes between claiming a number and storing its command. Asks with one key are one ask.
//   K2a. While a consuming wait for a name is open, nobody else may wait for, take or probe that name.
//   asks-3. The same lines run in replay and in first execution. Takes and probes read the journal, because
//       their answer is there.
//   K4.  Every refusal is remembered before it is thrown.
//   H11. Answers that need no wait are the same on replay. Conditional probes record only a changed answer.
//
// This file knows its kernel by `AskDoor`, and of slices only which kind is open.

import { UsageError } from "../errors/errors.ts";
import { positionId } from "../ids.ts";
import { decodeJson, encodeJson, type JsonText } from "../json/json.ts";
import type { AnswerShape } from "../journal/approval.ts";
import type {
  ChildRequest,
  CommandRecord,
  Persisting,
  RecordProbe,
  RetryPolicy,
  ScheduleTask,
} from "../journal/record.ts";
import { answerSignalName, isReservedName } from "../journal/signal-names.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { callerLine, laterCallerLine } from "../errors/author-line.ts";
import { checkOptions, type OptionRules } from "../options.ts";
import { checkDeadline, checkRetry, checkTimeout, momentOf } from "./checks.ts";
import { countReferences } from "./conversation-ref.ts";
import type { ConversationTip } from "../replay/conversation-tip.ts";
import type { FaultMemory } from "../replay/fault-memory.ts";
import {
  foreignEntry,
  keyOfAnother,
  limitReached,
  openTasksRefuseCheckpoint,
  signalIsSpokenFor,
  timerWithoutTime,
  unknownTaskKind,
} from "../replay/faults.ts";
import { DurableFuture, type FutureOwner } from "../replay/future.ts";
import type { Draft, JournalCursor } from "../replay/journal-cursor.ts";
import type { KernelOptions } from "../replay/kernel-options.ts";
import type { OpenItems, OpenTask } from "../replay/open-items.ts";
import { signalPattern, type PendingSignals } from "../replay/pending-signals.ts";
import { seededRandom } from "./random.ts";
import type { Segment } from "../replay/segment.ts";
import type { Remaining } from "../journal/amounts.ts";
import { BEHAVIOUR } from "../session/session.ts";
import type { SessionState } from "../state/session-state.ts";
import type { CheckpointRequest } from "../replay/standstill.ts";

/** The parts of its kernel that asking needs. */
export interface AskDoor {
  readonly options: Pick<
    KernelOptions,
    | "development"
    | "sessionId"
    | "origins"
    | "baseId"
    | "seed"
    | "hash"
    | "limits"
    | "describeTask"
    | "taskKinds"
    | "relations"
    | "describeAgent"
    | "agentNames"
    | "machine"
    | "remaining"
    | "handlerOf"
    | "state"
  >;
  readonly cursor: Pick<JournalCursor, "append" | "here" | "id" | "passCommand" | "self" | "slice">;
  readonly segment: Pick<
    Segment,
    "addEffect" | "addEntry" | "addTask" | "consume" | "enablePersistence" | "setProgress"
  >;
  readonly open: Pick<OpenItems, "add" | "get" | "named" | "tasks" | "values" | "waitCount">;
  readonly pending: Pick<PendingSignals, "drain" | "has" | "take">;
  readonly tip: ConversationTip;
  readonly faults: Pick<FaultMemory, "check" | "fail">;
  /** K2, K4. @throws the fault, if the agent may not ask now. */
  guard(): void;
  isClosed(): boolean;
  /** Whether a checkpoint was asked for, or the agent has ended. */
  isLeaving(): boolean;
  isCancelRequested(): boolean;
  /** The part of a command that takes signals, as of `ChildAsks.persisting`. */
  listening(): Persisting;
  now(): number;
  turn(): number;
  /** Take an open item out without an answer; the segment says what becomes of its task. */
  drop(id: number): void;
  /** The text to record. @throws UsageError or LimitError, which is not remembered. */
  encode(value: unknown, what: string): JsonText | undefined;
  /** The same, but the error is remembered (K4). */
  encodeFor(value: unknown, what: string): JsonText | undefined;
  /** Whether the turn would consist of nothing but the agent's start if a checkpoint came now. */
  mustProgress(): boolean;
  /** Close the segment at the end of this slice. */
  checkpoint(request: CheckpointRequest): void;
  /** End the session with nothing but a reference to its successor. */
  endByHandOver(): void;
}

type Mutable<T> = { -readonly [key in keyof T]: T[key] };

export class Asks implements FutureOwner {
  readonly #door: AskDoor;
  #keyed: Map<string, { readonly future: DurableFuture<unknown>; readonly asked: string }> | undefined;
  #probes: Map<string, RecordProbe["answer"]> | undefined;
  #random: () => number;
  #entriesAsked = 0;
  #tookSignals = false;

  constructor(door: AskDoor) {
    this.#door = door;
    this.#random = seededRandom(door.options.seed, door.options.baseId);
  }

  /** Whether the segment of its futures is over. */
  get closed(): boolean {
    return this.#door.isClosed();
  }

  get state(): SessionState {
    return this.#door.options.state;
  }

  /** Change fields of typed state. An exception of a reducer is passed to the agent. */
  updateState(patch: unknown): void {
    this.#door.guard();
    this.#door.options.state.update(patch, (value, what) => this.#encode(value, what));
  }

  /** Change the randomness from here on. */
  reseed(seed: number): void {
    this.#random = seededRandom(seed, this.#door.options.baseId);
  }

  /** The session's id, as its agent knows it. A fork has its origin's id up to the point of the fork. */
  get sessionId(): string {
    return this.#door.cursor.self;
  }

  /** How many checkpoints came before. */
  get turn(): number {
    return this.#door.turn();
  }

  /** Whether signals were taken without waiting. This is progress without a delivery. */
  get tookSignals(): boolean {
    return this.#tookSignals;
  }

  scheduleTask(request: {
    kind: string;
    input: unknown;
    closure?: (task: unknown) => unknown;
    key?: string | undefined;
    timeoutMs?: number | undefined;
    deadlineMs?: number | undefined;
    retry?: RetryPolicy | undefined;
  }): DurableFuture<unknown> {
    const { kind, key, closure } = request;
    this.#door.guard();
    const traits = closure === undefined ? this.#door.options.describeTask(kind) : {};
    if (traits === undefined)
      throw this.#door.faults.fail(unknownTaskKind(kind, this.#door.options.taskKinds(), callerLine()));
    if (key !== undefined) this.#refuseUnlessText(key, "an idempotency key", 1_000);
    const { text: input, hasConversation } = this.#encodeInput(request.input, `input of task "${kind}"`);
    const hash = this.#door.options.hash(input ?? "");
    const known = key === undefined ? undefined : this.#keyed?.get(key);
    if (known !== undefined) {
      if (known.asked !== `${kind} ${hash}`)
        throw this.#door.faults.fail(keyOfAnother(key ?? "", known.future.label, kind, callerLine()));
      return known.future;
    }
    const retry = this.#door.faults.check(checkRetry, request.retry ?? traits.retry);
    const timeoutMs = this.#door.faults.check(checkTimeout, request.timeoutMs ?? traits.timeoutMs);
    const deadline = this.#deadline(
      this.#door.faults.check(checkDeadline, request.deadlineMs ?? traits.deadlineMs),
    );
    const draft: Mutable<Draft<ScheduleTask>> = { type: "schedule_task", kind, hash };
    if (key !== undefined) draft.key = key;
    if (timeoutMs !== undefined) draft.timeoutMs = timeoutMs;
    if (deadline !== undefined) draft.deadlineAt = deadline.deadlineAt;
    if (retry !== undefined) draft.retry = retry;
    if (input !== undefined && input.length <= FORMAT_LIMITS.inputKeptChars) draft.payload = input;
    const guarded = this.#isGuarded(traits.guardRepeats === true);
    if (guarded) draft.guarded = true;
    const { id } = this.#ask(draft);
    const future = new DurableFuture<unknown>(this, "task", id, `task "${kind}"`);
    const traitsOfTask = { key, retry, timeoutMs, ...deadline, closure, hasConversation, guarded };
    const task = newTask(id, kind, input, traitsOfTask);
    this.#door.open.add({ future, task });
    if (key !== undefined) (this.#keyed ??= new Map()).set(key, { future, asked: `${kind} ${hash}` });
    if (this.#door.cursor.slice === "live") this.#door.segment.addTask(task);
    return future;
  }

  /** asks-3. On replay a task is guarded if it was when it was asked for, however it is defined now. */
  #isGuarded(wanted: boolean): boolean {
    if ((this.#door.options.relations.flags & BEHAVIOUR.recordsGuards) === 0) return false;
    if (this.#door.cursor.slice !== "replay") return wanted;
    const { here } = this.#door.cursor;
    return here?.type === "schedule_task" && here.guarded === true;
  }

  /** asks-3. On replay the recorded deadline counts, whatever the agent asks for now. */
  #deadline(
    ms: number | undefined,
  ): { readonly deadlineAt: number; readonly deadlineMs: number } | undefined {
    const { slice, here } = this.#door.cursor;
    const recorded = here?.type === "schedule_task" ? here.deadlineAt : undefined;
    const deadlineAt = slice === "replay" ? recorded : this.#momentAfter(ms);
    return deadlineAt === undefined ? undefined : { deadlineAt, deadlineMs: deadlineAt - this.#door.now() };
  }

  /** A task that answers a child's request. The kernel asks for it, and no agent observes it. */
  scheduleHandler(kind: string, request: ChildRequest): void {
    const input = encodeJson(request.payload, "request");
    const { hash, describeTask } = this.#door.options;
    const { retry, timeoutMs, deadlineMs } = describeTask(kind) ?? {};
    const deadline = this.#deadline(deadlineMs);
    const kept = input === undefined || input.length > FORMAT_LIMITS.inputKeptChars ? {} : { payload: input };
    const { id } = this.#door.cursor.append({
      type: "schedule_task",
      kind,
      hash: hash(input ?? ""),
      ...(deadline === undefined ? {} : { deadlineAt: deadline.deadlineAt }),
      ...kept,
    });
    const future = new DurableFuture<unknown>(this, "task", id, `the handler "${kind}"`);
    const task = { ...newTask(id, kind, input, { retry, timeoutMs, ...deadline }), request };
    this.#door.open.add({ future, task });
    if (this.#door.cursor.slice === "live") this.#door.segment.addTask(task);
  }

  startTimer(fireAt: number, sheltered: boolean): DurableFuture<void> {
    this.#door.guard();
    const at = this.#moment(fireAt);
    const { id } = this.#ask({ type: "start_timer", fireAt: at });
    const future = new DurableFuture<void>(this, "timer", id, "the timer");
    this.#door.open.add({ future, at, sheltered });
    return future;
  }

  /**
   * Check the options of an ask. Recorded asks are not checked again: they were accepted once (K5).
   *
   * @throws UsageError for an unknown or wrong option, also once the agent has caught it (K4).
   */
  checkOptions(call: string, given: unknown, names: OptionRules): void {
    if (this.#door.cursor.slice !== "live") return;
    this.#door.faults.check((options) => checkOptions(`ctx.${call}`, options, names), given);
  }

  waitSignal(
    name: string,
    mode: "consume" | "ready",
    timeoutMs: number | undefined,
    sheltered: boolean,
    what = `signal "${name}"`,
  ): DurableFuture<unknown> {
    this.#door.guard();
    const lineOf = this.#door.options.development ? laterCallerLine() : undefined;
    this.#refuseIfConsuming(name);
    const timeoutAt = this.#momentAfter(timeoutMs);
    const { id } = this.#ask({
      type: "wait_signal",
      name,
      mode,
      ...(timeoutAt === undefined ? {} : { timeoutAt }),
      ...(mode === "consume" ? this.#door.listening() : {}),
    });
    const type = mode === "consume" ? "signal" : "signal_ready";
    const future = new DurableFuture<unknown>(this, type, id, `the wait for ${what}`);
    this.#door.open.add({ future, name, at: timeoutAt, sheltered, lineOf });
    return future;
  }

  requestInput(
    question: { prompt: string; details?: unknown },
    answer: AnswerShape,
    { timeoutMs, ttlMs }: { readonly timeoutMs?: number | undefined; readonly ttlMs?: number | undefined },
    sheltered: boolean,
  ): DurableFuture<unknown> {
    this.#door.guard();
    this.#refuseUnlessText(question.prompt, "the prompt of a question", Infinity);
    const asked = this.#encode(question, "question");
    const payload = this.#encode({ ...question, answer }, "question");
    const expiresAt = this.#momentAfter(timeoutMs);
    const cancelAt = this.#momentAfter(ttlMs);
    const { id } = this.#ask({
      type: "request_input",
      // Without the shape of the answer, so that records from before shapes existed replay.
      hash: this.#door.options.hash(asked ?? ""),
      ...(expiresAt === undefined ? {} : { expiresAt }),
      ...(cancelAt === undefined ? {} : { cancelAt }),
      payload,
    });
    const future = new DurableFuture<unknown>(this, "input", id, `the question "${question.prompt}"`);
    const { life } = this.#door.options.relations;
    this.#door.open.add({
      future,
      name: answerSignalName(id),
      at: expiresAt,
      cancelAt,
      prompt: question.prompt,
      answer,
      ...(life === undefined ? {} : { life }),
      sheltered,
    });
    return future;
  }

  /** Consume signals that are pending, without waiting; at most one for a plain name, all for `drain`. */
  takeSignals(pattern: string, how: "one" | "all"): { name: string; payload: unknown }[] {
    this.#door.guard();
    this.#refuseIfConsuming(pattern);
    if (this.#door.cursor.slice === "replay") {
      const recorded = this.#door.cursor.here;
      if (recorded?.type !== "take_signals" || recorded.pattern !== pattern) return [];
      this.#door.cursor.passCommand();
      this.#tookSignals = true;
      const payloads = decodeJson(recorded.payload) as unknown[];
      return recorded.names.map((name, i) => ({ name, payload: payloads[i] }));
    }
    const one = how === "one" ? this.#door.pending.take(pattern) : undefined;
    const taken = how === "all" ? this.#door.pending.drain(pattern) : one === undefined ? [] : [one];
    if (taken.length === 0) return [];
    this.#tookSignals = true;
    this.#ask({
      type: "take_signals",
      pattern,
      signalIds: taken.map((signal) => signal.signalId),
      names: taken.map((signal) => signal.name),
      payload: `[${taken.map((signal) => signal.payload ?? "null").join(",")}]`,
      ...this.#door.listening(),
    });
    for (const { signalId } of taken) this.#door.segment.consume(signalId);
    return taken.map(({ name, payload }) => ({ name, payload: decodeJson(payload ?? "null") }));
  }

  /** H11: the answer of the first execution, also when more has arrived since. */
  hasSignal(name: string): boolean {
    this.#door.guard();
    this.#refuseIfConsuming(name);
    return this.#probe(`has_signal ${name}`, false, () => this.#door.pending.has(name));
  }

  /** H11. The amount left to spend. */
  remainingBudget(): Remaining {
    this.#door.guard();
    return this.#probe("remaining_budget", {}, () => this.#door.options.remaining() ?? {});
  }

  enablePersistence(): void {
    this.#ask({ type: "enable_persistence" });
    if (this.#door.cursor.slice === "live") this.#door.segment.enablePersistence();
  }

  appendEntry(entry: { role: string; content: unknown; parentId?: string | undefined }): string {
    this.#door.guard();
    this.#refuseUnlessText(entry.role, "an entry's role", FORMAT_LIMITS.nameChars);
    const content = this.#encode(entry.content, `content of an entry of role "${entry.role}"`) ?? "null";
    const parent = entry.parentId === undefined ? this.#door.tip.leaf : this.#entryNumber(entry.parentId);
    if (
      ++this.#entriesAsked > this.#door.options.limits.entriesPerCheckpoint &&
      this.#door.cursor.slice === "live"
    ) {
      throw this.#door.faults.fail(
        limitReached(
          "entriesPerCheckpoint",
          this.#door.options.limits.entriesPerCheckpoint,
          "use ctx.checkpoint()",
        ),
      );
    }
    const { id } = this.#ask({
      type: "append_entry",
      role: entry.role,
      hash: this.#door.options.hash(`${parent ?? ""} ${content}`),
    });
    const index = this.#door.tip.appended(id);
    if (this.#door.cursor.slice === "live") {
      const under = parent === undefined ? {} : { parent };
      this.#door.segment.addEntry({
        id,
        index,
        ...under,
        role: entry.role,
        turn: this.#door.turn(),
        content,
      });
    }
    return positionId(this.sessionId, id);
  }

  /** Close the segment and store the state. Never settles, as the agent is called again with the state. */
  checkpoint(state: unknown, openTasks: "refuse" | "cancel" | "wait"): Promise<never> {
    this.#door.guard();
    const tasks = this.#door.open.tasks().filter(({ request }) => request === undefined);
    if (openTasks === "refuse" && tasks.length > 0) {
      throw this.#door.faults.fail(
        openTasksRefuseCheckpoint(this.#door.options.sessionId, tasks, callerLine()),
      );
    }
    this.#door.checkpoint({
      state: this.#door.options.state.seal(state, (value, what) => this.#encode(value, what)),
      cancelTasks: openTasks === "cancel",
      line: this.#door.mustProgress() ? callerLine() : undefined,
    });
    return new Promise<never>(() => {});
  }

  /** End with a successor in this session's place. The promise never settles. */
  endByHandOver(): Promise<never> {
    this.#door.endByHandOver();
    return new Promise<never>(() => {});
  }

  get cancelRequested(): boolean {
    this.#door.guard();
    return this.#door.isCancelRequested();
  }

  /** H11: constant from one delivery to the next. */
  probeNow(): number {
    this.#door.guard();
    return this.#door.now();
  }

  /** An integer in [0, 2^32), the same on every replay. */
  probeRandom(): number {
    this.#door.guard();
    return this.#random();
  }

  /** Withdraw open futures. A leaving agent needs no command, because everything is withdrawn. */
  withdraw(targets: readonly DurableFuture<unknown>[]): void {
    if (this.#door.isLeaving()) return;
    const open = targets.flatMap((future) => {
      const stands = this.#standsFor(future);
      return this.#door.open.get(stands.id)?.future === stands ? { future, id: stands.id } : [];
    });
    if (open.length === 0) return;
    this.#ask({ type: "withdraw", targets: open.map(({ id }) => id) });
    for (const { future, id } of open) {
      this.#door.drop(id);
      future.rejectWithdrawn();
    }
  }

  /** The future itself, or the question that holds its outcome back. */
  #standsFor(future: DurableFuture<unknown>): DurableFuture<unknown> {
    const isSo = (this.#door.options.relations.flags & BEHAVIOUR.withdrawsHeld) !== 0;
    return isSo ? (future.heldBy ?? future) : future;
  }

  /** For `ctx.conversation()`. */
  conversationLeaf(): number | undefined {
    this.#door.guard();
    return this.#door.tip.leaf;
  }

  /** Claim a number and a place for a command of the agent. */
  #ask(draft: Draft<CommandRecord>): { readonly id: number } {
    this.#door.guard();
    return this.#door.cursor.append(draft, callerLine);
  }

  #probe<Answer extends RecordProbe["answer"]>(
    key: string,
    initial: Answer,
    answerNow: () => Answer,
  ): Answer {
    const last = (this.#probes?.get(key) ?? initial) as Answer;
    if (this.#door.cursor.slice === "replay") {
      const recorded = this.#door.cursor.here;
      if (recorded?.type !== "record_probe" || recorded.probe !== key) return last;
      this.#door.cursor.passCommand();
      (this.#probes ??= new Map()).set(key, recorded.answer);
      return recorded.answer as Answer;
    }
    const answer = answerNow();
    if (JSON.stringify(answer) !== JSON.stringify(last)) {
      this.#ask({ type: "record_probe", probe: key, answer });
      (this.#probes ??= new Map()).set(key, answer);
    }
    return answer;
  }

  /** K2a. Refuse a name that an open consuming wait has reserved. */
  #refuseIfConsuming(pattern: string): void {
    const { open } = this.#door;
    if (open.waitCount === 0) return;
    const matches = signalPattern(pattern);
    for (const item of pattern.includes("*") ? open.values() : open.named(pattern)) {
      // No ask can name the answers to questions, and no pattern drains signals between sessions.
      // mutant: second-consumer-allowed
      if (item.future.type !== "signal" || item.name === undefined || !matches(item.name)) continue;
      if (item.name !== pattern && isReservedName(item.name)) continue;
      throw this.#door.faults.fail(signalIsSpokenFor(pattern, item, callerLine()));
    }
  }

  #moment(time: number): number {
    const at = momentOf(time);
    if (at === undefined) throw this.#door.faults.fail(timerWithoutTime(time, callerLine()));
    return at;
  }

  /** The time at which a wait gives up; `Infinity` is never. */
  #momentAfter(ms: number | undefined): number | undefined {
    return ms === undefined || ms === Infinity ? undefined : this.#moment(this.#door.now() + ms);
  }

  #entryNumber(entryId: string): number {
    const id = this.#door.tip.numberOf(entryId);
    if (id !== undefined) return id;
    throw this.#door.faults.fail(foreignEntry(entryId, this.#door.options.sessionId, callerLine()));
  }

  #encode(value: unknown, what: string): JsonText | undefined {
    return this.#door.encodeFor(value, what);
  }

  /** Data that looks like a reference to a conversation stays data. An input with both is refused. */
  #encodeInput(value: unknown, what: string): { text: JsonText | undefined; hasConversation: boolean } {
    const text = this.#encode(value, what);
    if (text === undefined) return { text, hasConversation: false };
    const { references, keys } = countReferences(value, text);
    if (references > 0 && keys > references) {
      throw this.#door.faults.fail(
        new UsageError(`${what} has both a conversation and a key "$conversation" of its own`, {
          fix: "rename that key, or pass the data as text",
        }),
      );
    }
    return { text, hasConversation: references > 0 };
  }

  #refuseUnlessText(value: unknown, what: string, max: number): void {
    if (typeof value === "string" && value !== "" && value.length <= max && value.isWellFormed()) return;
    throw this.#door.faults.fail(
      new UsageError(
        `${what} is ${typeof value === "string" ? "a text that cannot be kept" : typeof value}`,
        {
          expected: `a text${max === Infinity ? "" : ` of 1 to ${max} characters`}`,
        },
      ),
    );
  }
}

type Traits = Pick<OpenTask, "retry" | "timeoutMs"> &
  Partial<Pick<OpenTask, "key" | "closure" | "deadlineAt" | "deadlineMs" | "hasConversation" | "guarded">>;

function newTask(
  id: number,
  kind: string,
  input: JsonText | undefined,
  {
    key,
    retry,
    timeoutMs,
    deadlineMs,
    deadlineAt,
    closure,
    hasConversation = false,
    guarded = false,
  }: Traits,
): OpenTask {
  return {
    id,
    kind,
    input,
    key,
    retry,
    timeoutMs,
    deadlineMs,
    deadlineAt,
    closure,
    guarded,
    attempt: 1,
    retryAt: undefined,
    lost: 0,
    kept: undefined,
    hasConversation,
  };
}
