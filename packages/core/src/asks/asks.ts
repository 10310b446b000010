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

import { UsageError } from "../errors/errors.ts";
import { positionId } from "../ids.ts";
import { decodeJson, encodeJson, type JsonText } from "../json/json.ts";
import type { AnswerShape } from "../journal/approval.ts";
import type { ChildRequest, RecordProbe, RetryPolicy, ScheduleTask } from "../journal/record.ts";
import { answerSignalName, isReservedName } from "../journal/signal-names.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import type { ChildAsks } from "./child-asks.ts";
import { callerLine, laterCallerLine } from "../errors/author-line.ts";
import { checkOptions, type OptionRules } from "../options.ts";
import { checkDeadline, checkRetry, checkTimeout, momentOf } from "./checks.ts";
import { countReferences } from "./conversation-ref.ts";
import {
  foreignEntry,
  keyOfAnother,
  limitReached,
  openTasksRefuseCheckpoint,
  signalIsSpokenFor,
  timerWithoutTime,
  unknownTaskKind,
} from "../replay/faults.ts";
import { DurableFuture } from "../replay/future.ts";
import type { Draft } from "../replay/journal-cursor.ts";
import type { OpenTask } from "../replay/open-items.ts";
import { signalPattern } from "../replay/pending-signals.ts";
import { seededRandom } from "./random.ts";
import type { Remaining } from "../journal/amounts.ts";
import { BEHAVIOUR } from "../session/session.ts";
import type { SessionState } from "../state/session-state.ts";
import type { KernelParts } from "../replay/turn.ts";

type Mutable<T> = { -readonly [key in keyof T]: T[key] };

export class Asks {
  readonly #parts: KernelParts;
  readonly #children: ChildAsks;
  #keyed: Map<string, { readonly future: DurableFuture<unknown>; readonly asked: string }> | undefined;
  #probes: Map<string, RecordProbe["answer"]> | undefined;
  #random: () => number;
  #entriesAsked = 0;

  constructor(parts: KernelParts, children: ChildAsks) {
    this.#parts = parts;
    this.#children = children;
    this.#random = seededRandom(parts.options.seed, parts.options.baseId);
  }

  get state(): SessionState {
    return this.#parts.options.state;
  }

  /** Change fields of typed state. An exception of a reducer is passed to the agent. */
  updateState(patch: unknown): void {
    this.#parts.turn.guard();
    this.#parts.options.state.update(patch, (value, what) => this.#parts.turn.encode(value, what));
  }

  /** Change the randomness from here on. */
  reseed(seed: number): void {
    this.#random = seededRandom(seed, this.#parts.options.baseId);
  }

  /** The session's id, as its agent knows it. A fork has its origin's id up to the point of the fork. */
  get sessionId(): string {
    return this.#parts.cursor.self;
  }

  /** How many checkpoints came before. */
  get turn(): number {
    return this.#parts.turn.number;
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
    this.#parts.turn.guard();
    const traits = closure === undefined ? this.#parts.options.describeTask(kind) : {};
    if (traits === undefined)
      throw this.#parts.faults.fail(unknownTaskKind(kind, this.#parts.options.taskKinds(), callerLine()));
    if (key !== undefined) this.#refuseUnlessText(key, "an idempotency key", 1_000);
    const { text: input, hasConversation } = this.#encodeInput(request.input, `input of task "${kind}"`);
    const hash = this.#parts.options.hash(input ?? "");
    const known = key === undefined ? undefined : this.#keyed?.get(key);
    if (known !== undefined) {
      if (known.asked !== `${kind} ${hash}`)
        throw this.#parts.faults.fail(keyOfAnother(key ?? "", known.future.label, kind, callerLine()));
      return known.future;
    }
    const retry = this.#parts.faults.check(checkRetry, request.retry ?? traits.retry);
    const timeoutMs = this.#parts.faults.check(checkTimeout, request.timeoutMs ?? traits.timeoutMs);
    const deadline = this.#deadline(
      this.#parts.faults.check(checkDeadline, request.deadlineMs ?? traits.deadlineMs),
    );
    const draft: Mutable<Draft<ScheduleTask>> = { type: "schedule_task", kind, hash };
    if (key !== undefined) draft.key = key;
    if (timeoutMs !== undefined) draft.timeoutMs = timeoutMs;
    if (deadline !== undefined) draft.deadlineAt = deadline.deadlineAt;
    if (retry !== undefined) draft.retry = retry;
    if (input !== undefined && input.length <= FORMAT_LIMITS.inputKeptChars) draft.payload = input;
    const guarded = this.#isGuarded(traits.guardRepeats === true);
    if (guarded) draft.guarded = true;
    const id = this.#parts.turn.ask(draft);
    const future = new DurableFuture<unknown>(this.#parts.turn, "task", id, `task "${kind}"`);
    const traitsOfTask = { key, retry, timeoutMs, ...deadline, closure, hasConversation, guarded };
    const task = newTask(id, kind, input, traitsOfTask);
    this.#parts.open.add({ future, task });
    if (key !== undefined) (this.#keyed ??= new Map()).set(key, { future, asked: `${kind} ${hash}` });
    if (this.#parts.cursor.slice === "live") this.#parts.segment.addTask(task);
    return future;
  }

  /** asks-3. On replay a task is guarded if it was when it was asked for, however it is defined now. */
  #isGuarded(wanted: boolean): boolean {
    if ((this.#parts.options.relations.flags & BEHAVIOUR.recordsGuards) === 0) return false;
    if (this.#parts.cursor.slice !== "replay") return wanted;
    const { here } = this.#parts.cursor;
    return here?.type === "schedule_task" && here.guarded === true;
  }

  /** asks-3. On replay the recorded deadline counts, whatever the agent asks for now. */
  #deadline(
    ms: number | undefined,
  ): { readonly deadlineAt: number; readonly deadlineMs: number } | undefined {
    const { slice, here } = this.#parts.cursor;
    const recorded = here?.type === "schedule_task" ? here.deadlineAt : undefined;
    const deadlineAt = slice === "replay" ? recorded : this.#momentAfter(ms);
    return deadlineAt === undefined
      ? undefined
      : { deadlineAt, deadlineMs: deadlineAt - this.#parts.cursor.now };
  }

  /** A task that answers a child's request. The kernel asks for it, and no agent observes it. */
  scheduleHandler(kind: string, request: ChildRequest): void {
    const input = encodeJson(request.payload, "request");
    const { hash, describeTask } = this.#parts.options;
    const { retry, timeoutMs, deadlineMs } = describeTask(kind) ?? {};
    const deadline = this.#deadline(deadlineMs);
    const kept = input === undefined || input.length > FORMAT_LIMITS.inputKeptChars ? {} : { payload: input };
    const id = this.#parts.cursor.append({
      type: "schedule_task",
      kind,
      hash: hash(input ?? ""),
      ...(deadline === undefined ? {} : { deadlineAt: deadline.deadlineAt }),
      ...kept,
    });
    const future = new DurableFuture<unknown>(this.#parts.turn, "task", id, `the handler "${kind}"`);
    const task = { ...newTask(id, kind, input, { retry, timeoutMs, ...deadline }), request };
    this.#parts.open.add({ future, task });
    if (this.#parts.cursor.slice === "live") this.#parts.segment.addTask(task);
  }

  startTimer(fireAt: number, sheltered: boolean): DurableFuture<void> {
    this.#parts.turn.guard();
    const at = this.#moment(fireAt);
    const id = this.#parts.turn.ask({ type: "start_timer", fireAt: at });
    const future = new DurableFuture<void>(this.#parts.turn, "timer", id, "the timer");
    this.#parts.open.add({ future, at, sheltered });
    return future;
  }

  /**
   * Check the options of an ask. Recorded asks are not checked again: they were accepted once (K5).
   *
   * @throws UsageError for an unknown or wrong option, also once the agent has caught it (K4).
   */
  checkOptions(call: string, given: unknown, names: OptionRules): void {
    if (this.#parts.cursor.slice !== "live") return;
    this.#parts.faults.check((options) => checkOptions(`ctx.${call}`, options, names), given);
  }

  waitSignal(
    name: string,
    mode: "consume" | "ready",
    timeoutMs: number | undefined,
    sheltered: boolean,
    what = `signal "${name}"`,
  ): DurableFuture<unknown> {
    this.#parts.turn.guard();
    const lineOf = this.#parts.options.development ? laterCallerLine() : undefined;
    this.#refuseIfConsuming(name);
    const timeoutAt = this.#momentAfter(timeoutMs);
    const id = this.#parts.turn.ask({
      type: "wait_signal",
      name,
      mode,
      ...(timeoutAt === undefined ? {} : { timeoutAt }),
      ...(mode === "consume" ? this.#children.listening() : {}),
    });
    const type = mode === "consume" ? "signal" : "signal_ready";
    const future = new DurableFuture<unknown>(this.#parts.turn, type, id, `the wait for ${what}`);
    this.#parts.open.add({ future, name, at: timeoutAt, sheltered, lineOf });
    return future;
  }

  requestInput(
    question: { prompt: string; details?: unknown },
    answer: AnswerShape,
    { timeoutMs, ttlMs }: { readonly timeoutMs?: number | undefined; readonly ttlMs?: number | undefined },
    sheltered: boolean,
  ): DurableFuture<unknown> {
    this.#parts.turn.guard();
    this.#refuseUnlessText(question.prompt, "the prompt of a question", Infinity);
    const asked = this.#parts.turn.encode(question, "question");
    const payload = this.#parts.turn.encode({ ...question, answer }, "question");
    const expiresAt = this.#momentAfter(timeoutMs);
    const cancelAt = this.#momentAfter(ttlMs);
    const id = this.#parts.turn.ask({
      type: "request_input",
      // Without the shape of the answer, so that records from before shapes existed replay.
      hash: this.#parts.options.hash(asked ?? ""),
      ...(expiresAt === undefined ? {} : { expiresAt }),
      ...(cancelAt === undefined ? {} : { cancelAt }),
      payload,
    });
    const future = new DurableFuture<unknown>(
      this.#parts.turn,
      "input",
      id,
      `the question "${question.prompt}"`,
    );
    const { life } = this.#parts.options.relations;
    this.#parts.open.add({
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
    this.#parts.turn.guard();
    this.#refuseIfConsuming(pattern);
    if (this.#parts.cursor.slice === "replay") {
      const recorded = this.#parts.cursor.here;
      if (recorded?.type !== "take_signals" || recorded.pattern !== pattern) return [];
      this.#parts.cursor.passCommand();
      this.#parts.turn.tookSignals = true;
      const payloads = decodeJson(recorded.payload) as unknown[];
      return recorded.names.map((name, i) => ({ name, payload: payloads[i] }));
    }
    const one = how === "one" ? this.#parts.pending.take(pattern) : undefined;
    const taken = how === "all" ? this.#parts.pending.drain(pattern) : one === undefined ? [] : [one];
    if (taken.length === 0) return [];
    this.#parts.turn.tookSignals = true;
    this.#parts.turn.ask({
      type: "take_signals",
      pattern,
      signalIds: taken.map((signal) => signal.signalId),
      names: taken.map((signal) => signal.name),
      payload: `[${taken.map((signal) => signal.payload ?? "null").join(",")}]`,
      ...this.#children.listening(),
    });
    for (const { signalId } of taken) this.#parts.segment.consume(signalId);
    return taken.map(({ name, payload }) => ({ name, payload: decodeJson(payload ?? "null") }));
  }

  /** H11: the answer of the first execution, also when more has arrived since. */
  hasSignal(name: string): boolean {
    this.#parts.turn.guard();
    this.#refuseIfConsuming(name);
    return this.#probe(`has_signal ${name}`, false, () => this.#parts.pending.has(name));
  }

  /** H11. The amount left to spend. */
  remainingBudget(): Remaining {
    this.#parts.turn.guard();
    return this.#probe("remaining_budget", {}, () => this.#parts.options.remaining() ?? {});
  }

  enablePersistence(): void {
    this.#parts.turn.ask({ type: "enable_persistence" });
    if (this.#parts.cursor.slice === "live") this.#parts.segment.enablePersistence();
  }

  appendEntry(entry: { role: string; content: unknown; parentId?: string | undefined }): string {
    this.#parts.turn.guard();
    this.#refuseUnlessText(entry.role, "an entry's role", FORMAT_LIMITS.nameChars);
    const content =
      this.#parts.turn.encode(entry.content, `content of an entry of role "${entry.role}"`) ?? "null";
    const parent = entry.parentId === undefined ? this.#parts.tip.leaf : this.#entryNumber(entry.parentId);
    if (
      ++this.#entriesAsked > this.#parts.options.limits.entriesPerCheckpoint &&
      this.#parts.cursor.slice === "live"
    ) {
      throw this.#parts.faults.fail(
        limitReached(
          "entriesPerCheckpoint",
          this.#parts.options.limits.entriesPerCheckpoint,
          "use ctx.checkpoint()",
        ),
      );
    }
    const id = this.#parts.turn.ask({
      type: "append_entry",
      role: entry.role,
      hash: this.#parts.options.hash(`${parent ?? ""} ${content}`),
    });
    const index = this.#parts.tip.appended(id);
    if (this.#parts.cursor.slice === "live") {
      const under = parent === undefined ? {} : { parent };
      this.#parts.segment.addEntry({
        id,
        index,
        ...under,
        role: entry.role,
        turn: this.#parts.turn.number,
        content,
      });
    }
    return positionId(this.sessionId, id);
  }

  /** Close the segment and store the state. Never settles, as the agent is called again with the state. */
  checkpoint(state: unknown, openTasks: "refuse" | "cancel" | "wait"): Promise<never> {
    this.#parts.turn.guard();
    const tasks = this.#parts.open.tasks().filter(({ request }) => request === undefined);
    if (openTasks === "refuse" && tasks.length > 0) {
      throw this.#parts.faults.fail(
        openTasksRefuseCheckpoint(this.#parts.options.sessionId, tasks, callerLine()),
      );
    }
    this.#parts.turn.checkpoint = {
      state: this.#parts.options.state.seal(state, (value, what) => this.#parts.turn.encode(value, what)),
      cancelTasks: openTasks === "cancel",
      line: this.#parts.turn.isJustStarted ? callerLine() : undefined,
    };
    return new Promise<never>(() => {});
  }

  /** End with a successor in this session's place. The promise never settles. */
  endByHandOver(): Promise<never> {
    this.#parts.turn.ending ??= { type: "returned", output: undefined };
    return new Promise<never>(() => {});
  }

  get cancelRequested(): boolean {
    this.#parts.turn.guard();
    return this.#parts.turn.cancel !== undefined;
  }

  /** H11: constant from one delivery to the next. */
  probeNow(): number {
    this.#parts.turn.guard();
    return this.#parts.cursor.now;
  }

  /** An integer in [0, 2^32), the same on every replay. */
  probeRandom(): number {
    this.#parts.turn.guard();
    return this.#random();
  }

  /** For `ctx.conversation()`. */
  conversationLeaf(): number | undefined {
    this.#parts.turn.guard();
    return this.#parts.tip.leaf;
  }

  #probe<Answer extends RecordProbe["answer"]>(
    key: string,
    initial: Answer,
    answerNow: () => Answer,
  ): Answer {
    const last = (this.#probes?.get(key) ?? initial) as Answer;
    if (this.#parts.cursor.slice === "replay") {
      const recorded = this.#parts.cursor.here;
      if (recorded?.type !== "record_probe" || recorded.probe !== key) return last;
      this.#parts.cursor.passCommand();
      (this.#probes ??= new Map()).set(key, recorded.answer);
      return recorded.answer as Answer;
    }
    const answer = answerNow();
    if (JSON.stringify(answer) !== JSON.stringify(last)) {
      this.#parts.turn.ask({ type: "record_probe", probe: key, answer });
      (this.#probes ??= new Map()).set(key, answer);
    }
    return answer;
  }

  /** K2a. Refuse a name that an open consuming wait has reserved. */
  #refuseIfConsuming(pattern: string): void {
    const { open } = this.#parts;
    if (open.waitCount === 0) return;
    const matches = signalPattern(pattern);
    for (const item of pattern.includes("*") ? open.values() : open.named(pattern)) {
      // No ask can name the answers to questions, and no pattern drains signals between sessions.
      // mutant: second-consumer-allowed
      if (item.future.type !== "signal" || item.name === undefined || !matches(item.name)) continue;
      if (item.name !== pattern && isReservedName(item.name)) continue;
      throw this.#parts.faults.fail(signalIsSpokenFor(pattern, item, callerLine()));
    }
  }

  #moment(time: number): number {
    const at = momentOf(time);
    if (at === undefined) throw this.#parts.faults.fail(timerWithoutTime(time, callerLine()));
    return at;
  }

  /** The time at which a wait gives up; `Infinity` is never. */
  #momentAfter(ms: number | undefined): number | undefined {
    return ms === undefined || ms === Infinity ? undefined : this.#moment(this.#parts.cursor.now + ms);
  }

  #entryNumber(entryId: string): number {
    const id = this.#parts.tip.numberOf(entryId);
    if (id !== undefined) return id;
    throw this.#parts.faults.fail(foreignEntry(entryId, this.#parts.options.sessionId, callerLine()));
  }

  /** Data that looks like a reference to a conversation stays data. An input with both is refused. */
  #encodeInput(value: unknown, what: string): { text: JsonText | undefined; hasConversation: boolean } {
    const text = this.#parts.turn.encode(value, what);
    if (text === undefined) return { text, hasConversation: false };
    const { references, keys } = countReferences(value, text);
    if (references > 0 && keys > references) {
      throw this.#parts.faults.fail(
        new UsageError(`${what} has both a conversation and a key "$conversation" of its own`, {
          fix: "rename that key, or pass the data as text",
        }),
      );
    }
    return { text, hasConversation: references > 0 };
  }

  #refuseUnlessText(value: unknown, what: string, max: number): void {
    if (typeof value === "string" && value !== "" && value.length <= max && value.isWellFormed()) return;
    throw this.#parts.faults.fail(
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
