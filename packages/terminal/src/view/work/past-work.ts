// `PastWork`: what a session did, as lines, for a person who comes to it later. It has the last lines alone,
// and the call that is under way.

import type { Session } from "@holdfast/core";
import { deliveryOf, replyOf, subAgentCallOf } from "@holdfast/proto/view";
import type { Look } from "../../frame/command.ts";
import { plain, plainLine } from "../../frame/plain-text.ts";
import { isConversation, questionLine } from "../describe-session.ts";
import { eventLine, isFailedHook, isMessageReceipt } from "../event-line.ts";
import type { JournalEvent, Past } from "../journal-events.ts";
import { callText, entryLines, requestLine } from "./entry-lines.ts";
import { OpenCalls } from "./shown-path.ts";

/** The events of a conversation that have a line of their own beside its entries. */
export const EVENTS_WITH_LINES: ReadonlySet<string> = new Set([
  "attempt_failed",
  "attempt_lost",
  "task_failed",
  "cancel_requested",
  "wait_timed_out",
]);
const LINES_KEPT = 400;
/** A longer journal is read from its last checkpoint. */
const WHOLE_RECORDS = 5_000;
const REQUEST_CHARS = 500;
const CALL_CHARS = 200;

export class PastWork implements Past {
  readonly #sessionId: string;
  readonly #look: Look;
  readonly #open = new OpenCalls();
  /** The steps that run, by their numbers. */
  readonly #running = new Map<number, string>();
  /** Where in the journal it begins. */
  readonly fromSeq: number;
  #isConversation: boolean;
  #lines: string[] = [];

  constructor(session: Session, look: Look) {
    const { sessionId, nextSeq, checkpointSeq = 0 } = session;
    this.#sessionId = sessionId;
    this.fromSeq = nextSeq > WHOLE_RECORDS ? checkpointSeq : 0;
    this.#isConversation = isConversation(session) === true;
    this.#look = look;
  }

  /** The last lines, as many as these at most. */
  lines(most: number): readonly string[] {
    return this.#lines.slice(-most);
  }

  /** Whether there is more than these lines. */
  isLongerThan(most: number): boolean {
    return this.fromSeq > 0 || this.#lines.length > most;
  }

  /** The call or the steps that run; empty where the journal does not say. */
  get doing(): string {
    const call = [...this.#open.values()].at(-1);
    if (call !== undefined) return callText(call, CALL_CHARS, this.#look.symbols.cut);
    if (this.#running.size === 0) return "";
    if (this.#isConversation) return "thinking";
    return plainLine([...this.#running.values()].join(", "), CALL_CHARS);
  }

  event(event: JournalEvent): void {
    const { type, id, task = -1, kind = "" } = event;
    this.#open.event(event);
    if (type === "append_entry") this.#isConversation = true;
    if (type === "schedule_task" && id !== undefined) this.#running.set(id, kind);
    if (type === "task_completed" || type === "task_failed" || type === "outcome_kept")
      this.#running.delete(task);
    this.#lines.push(...this.#linesOf(event).flatMap((line) => line.split("\n")));
    if (this.#lines.length > 2 * LINES_KEPT) this.#lines = this.#lines.slice(-LINES_KEPT);
  }

  #linesOf(event: JournalEvent): readonly string[] {
    const { type, role = "", content, prompt = "" } = event;
    const { paint, symbols } = this.#look;
    if (type === "request_input")
      return [paint.bold(`${symbols.ask} ${questionLine(prompt, REQUEST_CHARS)}`)];
    if (type === "append_entry")
      return [...this.#said(role, content), ...entryLines(role, content, this.#open, this.#look)];
    const hasLine = EVENTS_WITH_LINES.has(type) || isMessageReceipt(event) || isFailedHook(event);
    if (this.#isConversation && !hasLine) return [];
    const line = eventLine(event, this.#look, { now: Date.now(), sessionId: this.#sessionId });
    return line === undefined ? [] : [line];
  }

  #said(role: string, content: unknown): readonly string[] {
    if (role === "user" && deliveryOf(content) === undefined) return [requestLine(content, this.#look)];
    if (role !== "assistant" || subAgentCallOf(content) !== undefined) return [];
    const { text } = replyOf(content);
    return text.trim() === "" ? [] : [plain(text.trimEnd())];
  }
}
