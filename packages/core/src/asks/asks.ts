// `Asks`: the asks of an agent that are answered at once, such as entries, probes and checkpoints.
//
// All asks of an agent go through the same steps, here and in the other sources of this folder. The guard
// checks that the agent may ask now, and the author's values are checked. Then the ask gets a place in the
// journal and, unless it is answered at once, an open item with the future of its answer. Deliveries, which
// are the kernel's, bring the answers.
//
//   K1. Nothing comes between claiming a number and storing its command.
//   K4. Every refusal is remembered before it is thrown.
//   - The same lines run in replay and in first execution. Takes and probes read the journal, because their
//     answer is there.
//   H11. Answers that need no wait are the same on replay. Conditional probes record only a changed answer.

import { positionId } from "../ids.ts";
import type { RecordProbe } from "../journal/record.ts";
import { patchProbe } from "../journal/patch-mark.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { TaskAsks } from "./task-asks.ts";
import type { WaitAsks } from "./wait-asks.ts";
import { checkName, refuseUnlessText } from "./checks.ts";
import { callerLine } from "../errors/author-line.ts";
import { checkOptions, type OptionRules } from "../options.ts";
import { foreignEntry, limitReached, openTasksRefuseCheckpoint } from "../replay/faults.ts";
import { sessionRandom } from "./random.ts";
import type { RemainingBudget } from "../journal/amounts.ts";
import type { SessionState } from "../state/session-state.ts";
import type { KernelParts } from "../replay/turn.ts";

export class Asks {
  readonly #parts: KernelParts;
  readonly tasks: TaskAsks;
  readonly waits: WaitAsks;
  #probes: Map<string, RecordProbe["answer"]> | undefined;
  #seed: number;
  /** Made at the first use, because most segments use none. */
  #random: (() => number) | undefined;
  #entriesAsked = 0;

  constructor(parts: KernelParts, waits: WaitAsks) {
    this.#parts = parts;
    this.tasks = new TaskAsks(parts);
    this.waits = waits;
    this.#seed = parts.options.seed;
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
    this.#seed = seed;
    this.#random = undefined;
  }

  /** The session's id, as its agent knows it. A fork has its origin's id up to the point of the fork. */
  get sessionId(): string {
    return this.#parts.cursor.self;
  }

  /** How many checkpoints came before. */
  get turn(): number {
    return this.#parts.turn.number;
  }

  /**
   * Check the options of an ask. Recorded asks are not checked again: they were accepted once (K5).
   *
   * @throws UsageError for an unknown or wrong option, also once the agent has caught it (K4).
   */
  checkOptions(call: string, given: object, names: OptionRules, refuse?: (options: object) => void): void {
    if (this.#parts.cursor.slice !== "live") return;
    this.#parts.faults.check((options) => {
      refuse?.(options);
      checkOptions(`ctx.${call}`, options, names);
    }, given);
  }

  /** H11: the answer of the first execution, also when more has arrived since. */
  hasSignal(name: string): boolean {
    this.#parts.turn.guard();
    this.waits.refuseIfConsuming(name);
    return this.#probe(`has_signal ${name}`, false, () => this.#parts.pending.has(name));
  }

  /** H11. The amount left to spend. */
  remainingBudget(): RemainingBudget {
    this.#parts.turn.guard();
    return this.#probe("remaining_budget", {}, () => this.#parts.options.remaining() ?? {});
  }

  /**
   * H11. Whether the session runs changed code from here on: false where its journal was written without it,
   * and true from the first new ask on.
   */
  patched(name: string): boolean {
    checkName(name, "change");
    this.#parts.turn.guard();
    const key = patchProbe(name);
    if (this.#probes?.has(key) === true || this.#parts.cursor.passedMarks.has(key)) return true;
    if (this.#parts.cursor.slice === "replay") {
      if (this.#recordedProbe(key) === undefined) return false;
    } else this.#parts.turn.ask({ type: "record_probe", probe: key, answer: true });
    (this.#probes ??= new Map()).set(key, true);
    return true;
  }

  enablePersistence(): void {
    this.#parts.turn.ask({ type: "enable_persistence" });
    if (this.#parts.cursor.slice === "live") this.#parts.segment.enablePersistence();
  }

  appendEntry(entry: { role: string; content: unknown; parentId?: string | null | undefined }): string {
    this.#parts.turn.guard();
    refuseUnlessText(this.#parts.faults, entry.role, "an entry's role", FORMAT_LIMITS.nameChars);
    const content =
      this.#parts.turn.encode(entry.content, `content of an entry of role "${entry.role}"`) ?? "null";
    const parent = this.#parentOf(entry.parentId);
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
    this.#random ??= this.#ownRandom();
    return this.#random();
  }

  /**
   * A fork and a copy under another id replay the numbers of their origin. After the point of a fork its seed
   * is another one.
   */
  #ownRandom(): () => number {
    const { sessionId, origins = [], baseId } = this.#parts.options;
    return sessionRandom(origins.at(-1) ?? sessionId, this.#seed, baseId);
  }

  /** For `ctx.conversation()`. */
  conversationLeaf(to?: string): number | undefined {
    this.#parts.turn.guard();
    return to === undefined ? this.#parts.tip.leaf : this.#entryNumber(to);
  }

  #probe<Answer extends RecordProbe["answer"]>(
    key: string,
    initial: Answer,
    answerNow: () => Answer,
  ): Answer {
    const last = (this.#probes?.get(key) ?? initial) as Answer;
    if (this.#parts.cursor.slice === "replay") {
      const recorded = this.#recordedProbe(key);
      if (recorded === undefined) return last;
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

  /** The recorded answer here, which is then passed. */
  #recordedProbe(key: string): RecordProbe | undefined {
    const { cursor } = this.#parts;
    const recorded = cursor.ahead((record) => record.type === "record_probe" && record.probe === key);
    if (recorded?.type !== "record_probe") return undefined;
    cursor.passCommand();
    return recorded;
  }

  #parentOf(parentId: string | null | undefined): number | undefined {
    if (parentId === null) return undefined;
    return parentId === undefined ? this.#parts.tip.leaf : this.#entryNumber(parentId);
  }

  #entryNumber(entryId: string): number {
    const id = this.#parts.tip.numberOf(entryId);
    if (id !== undefined) return id;
    throw this.#parts.faults.fail(foreignEntry(entryId, this.#parts.options.sessionId, callerLine()));
  }
}
