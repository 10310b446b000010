// `WorkStatus`: what a session does now, in one line below everything else on a terminal. It has the call
// under way or the steps that run, the time since these began, and tokens and cost so far.

import type { TraceEvent } from "@holdfast/core";
import {
  addCosts,
  addUsage,
  type Cost,
  costText,
  NO_COST,
  stepsText,
  THINKING,
  WorkProgress,
} from "@holdfast/proto/view";
import type { Look } from "../../frame/command.ts";
import { cutTo, duration, plainLine } from "../../frame/plain-text.ts";
import { amountText } from "../budget-text.ts";
import { callText } from "./entry-lines.ts";
import type { OpenCalls } from "./shown-path.ts";
import type { JournalEvent } from "../journal-events.ts";

const FRAMES = { unicode: ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"], ascii: ["|", "/", "-", "\\"] };
const FRAME_MS = 100;
const NAME_CHARS = 40;
const CALL_CHARS = 200;
/** Text that comes late comes right after the end of its task. */
const SILENT_MAX = 100;

export class WorkStatus {
  readonly #open: OpenCalls;
  readonly #look: Look;
  /** The work under way, and since when. */
  #doing = "";
  #since = 0;
  readonly #progress = new WorkProgress();
  /** The task whose text came last. */
  #streaming = "";
  /** The tasks that ended last of those whose text had not come. */
  readonly #silent = new Set<string>();
  /** The usage that running tasks have reported so far. Their ends have the whole. */
  readonly #reported = new Map<string, Cost>();

  /** @param open the calls of the conversation without a result. */
  constructor(open: OpenCalls, look: Look) {
    this.#open = open;
    this.#look = look;
  }

  event(event: JournalEvent): void {
    this.#progress.event(event);
    this.#open.event(event);
    const { type, taskId } = event;
    if (type !== "task_completed" && type !== "task_failed" && type !== "outcome_kept") return;
    this.#reported.delete(taskId ?? "");
    if (taskId !== undefined && taskId !== this.#streaming) this.#silent.add(taskId);
    for (const oldest of [...this.#silent].slice(0, -SILENT_MAX)) this.#silent.delete(oldest);
  }

  /** A piece of the text of a task has come. */
  writes(taskId: string): void {
    if (!this.endedSilent(taskId)) this.#streaming = taskId;
  }

  trace(event: TraceEvent): void {
    if (event.type !== "task_delta" || this.endedSilent(event.taskId)) return;
    const { taskId, delta } = event;
    if (delta.type === "token") this.writes(taskId);
    if (delta.type !== "usage") return;
    this.#reported.set(taskId, addUsage(this.#reported.get(taskId) ?? NO_COST, delta.usage));
  }

  /**
   * Whether a task ended before its text came. A quick reply of a model is read from the journal before its
   * tokens, and its entry has shown all of it.
   */
  endedSilent(taskId: string): boolean {
    return this.#silent.has(taskId);
  }

  /** @param isConversation whether the steps are those of a model or a program, which are no words of the work. */
  text(isConversation: boolean): string {
    if (this.#progress.steps.length === 0) return "";
    const { paint, symbols, columns } = this.#look;
    const doing = this.#what(isConversation);
    const now = performance.now();
    if (doing !== this.#doing) [this.#doing, this.#since] = [doing, now];
    const passedMs = now - this.#since;
    const frames = symbols.done === "✓" ? FRAMES.unicode : FRAMES.ascii;
    const frame = frames[Math.floor(now / FRAME_MS) % frames.length]!;
    const cost = [...this.#reported.values()].reduce(addCosts, this.#progress.spent);
    const facts = [duration(passedMs), ...spentFacts(cost)].join("  ");
    const room = Math.max(8, columns - facts.length - 6);
    return `${paint.cyan(frame)} ${cutTo(doing, room, symbols.cut)}  ${paint.dim(facts)}`;
  }

  #what(isConversation: boolean): string {
    const call = [...this.#open.values()].at(-1);
    if (call !== undefined) return callText(call, CALL_CHARS, this.#look.symbols.cut);
    if (isConversation) return THINKING;
    return stepsText(this.#progress.steps.map((name) => plainLine(name, NAME_CHARS)));
  }
}

/** The tokens and, where it is known, the cost; nothing before the first call of a model. */
export function spentFacts(cost: Cost): readonly string[] {
  const tokens = cost.inputTokens + cost.outputTokens;
  if (cost.calls === 0 || tokens === 0) return [];
  const price = cost.unpriced === cost.calls ? [] : [costText(cost)];
  return [`${amountText("maxTokens", tokens)} tokens`, ...price];
}
