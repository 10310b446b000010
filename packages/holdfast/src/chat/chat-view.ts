// `ChatView`: the text of a conversation. The model's text is streamed, and each tool call with its result is
// a line.
//
//   - Where standard output is no terminal, it gets the answers alone, each after its commit. Everything else
//     is a note.
//   - Text of a sub-agent inside of an external program is a note, and no answer.

import type { TraceEvent } from "@holdfast/core";
import { deliveryOf, planOf, stepText, subAgentCallOf } from "@holdfast/proto/view";
import type { Io } from "@holdfast/terminal/frame/command";
import { jsonLine, plainLine, plainPiece } from "@holdfast/terminal/frame/plain-text";
import { questionLine } from "@holdfast/terminal/view/describe-session";
import { eventLine, isFailedHook, isMessageReceipt } from "@holdfast/terminal/view/event-line";
import type { JournalEvent } from "@holdfast/terminal/view/journal-events";
import type { ChatTerminal } from "./chat-terminal.ts";

const LINE_CHARS = 200;
/** Events with a line of their own in a conversation. */
const SHOWN: ReadonlySet<string> = new Set([
  "attempt_failed",
  "attempt_lost",
  "task_failed",
  "cancel_requested",
  "wait_timed_out",
]);

export class ChatView {
  readonly #io: Io;
  readonly #terminal: ChatTerminal;
  readonly #sessionId: string;
  readonly #streams: boolean;
  /** The attempt whose text is on the screen. */
  #streaming: string | undefined;

  constructor(io: Io, terminal: ChatTerminal, sessionId: string) {
    this.#io = io;
    this.#terminal = terminal;
    this.#sessionId = sessionId;
    this.#streams = Number.isFinite(io.results.columns) && Number.isFinite(io.notes.columns);
  }

  event(event: JournalEvent): void {
    const look = this.#io.notes;
    if (event.type === "append_entry") return this.#entry(String(event.role), event.content);
    if (!SHOWN.has(event.type) && !isMessageReceipt(event) && !isFailedHook(event)) return;
    const line = eventLine(event, look, { now: Date.now(), sessionId: this.#sessionId });
    if (line !== undefined) this.#say(line);
  }

  trace(event: TraceEvent): void {
    const { paint, symbols } = this.#io.notes;
    if (event.type === "warned")
      this.#say(`${paint.yellow(symbols.warn)} ${plainLine(event.message, 1_000)}`);
    if (event.type !== "task_delta" || event.delta.type !== "token" || !this.#streams) return;
    const stream = `${event.taskId} ${event.attempt}`;
    if (this.#streaming !== undefined && this.#streaming !== stream)
      this.#terminal.write(`\n${paint.dim("(again from the start)")}\n`);
    this.#streaming = stream;
    this.#terminal.write(plainPiece(event.delta.text));
  }

  #entry(role: string, content: unknown): void {
    const { paint, symbols } = this.#io.notes;
    const isOfSubAgent = subAgentCallOf(content) !== undefined;
    const by = isOfSubAgent ? "sub-agent: " : "";
    if (role === "assistant") {
      const { text, toolCalls } = replyOf(content);
      if (isOfSubAgent) {
        // Text of a sub-agent is a note, and no answer.
        if (text !== "") this.#say(paint.dim(`${by}${plainLine(text, LINE_CHARS)}`));
      } else if (this.#streaming !== undefined) this.#terminal.write("\n");
      else if (text !== "" && toolCalls.length === 0) this.#io.result({}, text);
      else if (text !== "") this.#say(text);
      if (!isOfSubAgent) this.#streaming = undefined;
      for (const { name, input } of toolCalls)
        this.#say(paint.dim(`${by}${symbols.begin} ${plainLine(name, LINE_CHARS)}  ${argumentOf(input)}`));
    }
    const delivery = role === "user" ? deliveryOf(content) : undefined;
    if (delivery !== undefined) this.#say(paint.dim(`  ${symbols.done} ${DELIVERED[delivery]}`));
    const plan = planOf(role, content);
    for (const step of plan ?? []) this.#say(paint.dim(`  ${by}${plainLine(stepText(step), LINE_CHARS)}`));
    if (role !== "tool") return;
    const { text, isError } = content as { readonly text?: unknown; readonly isError?: unknown };
    const lines = String(text).trimEnd().split("\n");
    const more = lines.length > 1 ? `  (${lines.length} lines)` : "";
    const mark = isError === true ? paint.red(symbols.failed) : paint.green(symbols.done);
    this.#say(`  ${by}${mark} ${paint.dim(plainLine(lines[0] ?? "", LINE_CHARS) + more)}`);
  }

  #say(line: string): void {
    if (this.#streaming !== undefined) this.#terminal.write("\n");
    this.#terminal.say(line);
  }
}

/** The receipts of messages that were sent while the agent worked. */
const DELIVERED = {
  steer: "your message reached the agent in the middle of its work",
  queue: "your message waited for the answer, and is the request now",
} as const;

interface Reply {
  readonly text: string;
  readonly toolCalls: readonly { readonly name: string; readonly input: unknown }[];
}

function replyOf(content: unknown): Reply {
  const { text, toolCalls } = (content ?? {}) as Partial<Reply>;
  return { text: typeof text === "string" ? text : "", toolCalls: Array.isArray(toolCalls) ? toolCalls : [] };
}

/** The first argument of a call, on one line. */
function argumentOf(input: unknown): string {
  const [first] = Object.values((input ?? {}) as Record<string, unknown>);
  return questionLine(typeof first === "string" ? first : jsonLine(input), LINE_CHARS);
}
