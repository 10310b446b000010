// `ChatView`: the text of a conversation. The model's text is streamed, and each tool call with its result is
// a line.
//
//   - Where standard output is no terminal, it gets the answers alone, each after its commit. Everything else
//     is a note.
//   - Text of a sub-agent inside of an external program is a note, and no answer.

import type { TraceEvent } from "@holdfast/core";
import { replyOf, subAgentCallOf } from "@holdfast/proto/view";
import type { Io } from "@holdfast/terminal/frame/command";
import { plainLine, plainPiece } from "@holdfast/terminal/frame/plain-text";
import { entryLines } from "@holdfast/terminal/view/work/entry-lines";
import { OpenCalls } from "@holdfast/terminal/view/work/shown-path";
import { eventLine, isFailedHook, isMessageReceipt } from "@holdfast/terminal/view/event-line";
import type { JournalEvent } from "@holdfast/terminal/view/journal-events";
import { EVENTS_WITH_LINES } from "@holdfast/terminal/view/work/past-work";
import { type DraftPiece, ShownDraft, ShownText } from "@holdfast/terminal/view/work/shown-text";
import { WorkStatus } from "@holdfast/terminal/view/work/work-status";
import type { ChatTerminal } from "./chat-terminal.ts";

export class ChatView {
  readonly #io: Io;
  readonly #terminal: ChatTerminal;
  readonly #sessionId: string;
  readonly #streams: boolean;
  readonly #open = new OpenCalls();
  readonly #status: WorkStatus;
  readonly #shownText = new ShownText();
  /** The attempt whose text is on the screen. */
  #streaming: string | undefined;
  readonly #draft = new ShownDraft();

  constructor(io: Io, terminal: ChatTerminal, sessionId: string) {
    this.#io = io;
    this.#terminal = terminal;
    this.#sessionId = sessionId;
    this.#status = new WorkStatus(this.#open, io.notes);
    io.status(() => this.#status.text(true));
    this.#streams = Number.isFinite(io.results.columns) && Number.isFinite(io.notes.columns);
  }

  event(event: JournalEvent): void {
    const look = this.#io.notes;
    this.#status.event(event);
    if (event.type === "append_entry") return this.#entry(String(event.role), event.content);
    if (!EVENTS_WITH_LINES.has(event.type) && !isMessageReceipt(event) && !isFailedHook(event)) return;
    const line = eventLine(event, look, { now: Date.now(), sessionId: this.#sessionId });
    if (line !== undefined) this.#say(line);
  }

  trace(event: TraceEvent): void {
    const { paint, symbols } = this.#io.notes;
    this.#status.trace(event);
    if (event.type === "warned")
      this.#say(`${paint.yellow(symbols.warn)} ${plainLine(event.message, 1_000)}`);
    if (event.type !== "task_delta" || event.delta.type !== "token" || !this.#streams) return;
    if (this.#status.endedSilent(event.taskId)) return;
    this.#write(`${event.taskId} ${event.attempt}`, this.#shownText.token(event.delta.text));
  }

  draft(piece: DraftPiece): void {
    if (!this.#streams || this.#status.endedSilent(piece.taskId)) return;
    this.#status.writes(piece.taskId);
    const shown = this.#shownText.token(piece.text);
    this.#write(this.#draft.add(piece, shown), shown);
  }

  #write(stream: string, text: string): void {
    if (text === "") return;
    if (this.#streaming !== undefined && this.#streaming !== stream)
      this.#terminal.write(`\n${this.#io.notes.paint.dim("(again from the start)")}\n`);
    this.#streaming = stream;
    this.#terminal.write(plainPiece(text));
  }

  #entry(role: string, content: unknown): void {
    if (role === "assistant" && subAgentCallOf(content) === undefined) {
      const { text, toolCalls } = replyOf(content);
      if (this.#streaming === undefined) this.#shownText.entry(text);
      if (this.#streaming !== undefined) this.#terminal.write(`${this.#restOf(text)}\n`);
      else if (text !== "" && toolCalls.length === 0) this.#io.result({}, text);
      else if (text !== "") this.#say(text);
      this.#streaming = undefined;
    }
    for (const line of entryLines(role, content, this.#open, this.#io.notes)) this.#say(line);
  }

  #restOf(entry: string): string {
    const { type, text } = this.#draft.takeRest(entry);
    return plainPiece(type === "end" ? text : `\n${text}`);
  }

  #say(line: string): void {
    if (this.#streaming !== undefined) this.#terminal.write("\n");
    this.#terminal.say(line);
  }
}
