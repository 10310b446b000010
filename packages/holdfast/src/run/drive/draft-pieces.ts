// `DraftPieces`: the new pieces of the texts that models are writing in another process. A draft is the whole
// text of a task so far, or its end where it is long, and some drafts are left out.
//
//   - The entry of a text may come before its last draft, and shows all of it. A late draft shows nothing new.
//   - Memory: the name and the last text of each open task, and the ids of the last tasks that ended.

import { defined, DRAFT_CHARS_MAX } from "@holdfast/core";
import { replyOf } from "@holdfast/proto/view";
import type { JournalEvent } from "@holdfast/terminal/view/journal-events";
import type { DraftPiece } from "@holdfast/terminal/view/work/shown-text";

/** A text is found in a draft that has lost its beginning by so many characters at the end of the text. */
const END_CHARS = 200;
/** Drafts come at most seconds after the end of their task. */
const ENDED_MAX = 100;

interface Shown {
  readonly text: string;
  /** Whether an entry has it. The task may go on with another text. */
  readonly isRecorded: boolean;
}

export class DraftPieces {
  readonly #shown = new Map<string, Shown>();
  readonly #kinds = new Map<string, string>();
  readonly #ended = new Set<string>();

  /** @returns the part of a draft that is new; nothing without one. */
  take(taskId: string, draft: string): DraftPiece | undefined {
    if (this.#ended.has(taskId)) return undefined;
    const before = this.#shown.get(taskId) ?? { text: "", isRecorded: false };
    if (before.isRecorded && before.text.startsWith(draft)) return undefined;
    this.#shown.set(taskId, { text: draft, isRecorded: false });
    const known = before.isRecorded ? 0 : knownChars(before.text, draft);
    const text = draft.slice(known ?? 0);
    const kind = this.#kinds.get(taskId);
    return text === "" ? undefined : { taskId, ...defined({ kind }), text, isAnother: known === undefined };
  }

  /** The events of the session say which tasks are open, and which texts are recorded. */
  event({ type, taskId = "", kind = "", role, content }: JournalEvent): void {
    if (type === "schedule_task") this.#kinds.set(taskId, kind);
    if (type === "append_entry" && role === "assistant") this.#record(replyOf(content).text);
    if (type === "task_completed" || type === "task_failed") this.#end(taskId);
  }

  #record(text: string): void {
    for (const [taskId, shown] of this.#shown)
      if (text.startsWith(shown.text)) this.#shown.set(taskId, { text, isRecorded: true });
  }

  #end(taskId: string): void {
    this.#shown.delete(taskId);
    this.#kinds.delete(taskId);
    this.#ended.add(taskId);
    for (const oldest of this.#ended) {
      if (this.#ended.size <= ENDED_MAX) break;
      this.#ended.delete(oldest);
    }
  }
}

/** How much of a text was there before; `undefined` where it is another text. */
function knownChars(before: string, text: string): number | undefined {
  if (text.startsWith(before)) return before.length;
  if (text.length < DRAFT_CHARS_MAX) return undefined;
  const end = before.slice(-END_CHARS);
  const at = text.lastIndexOf(end);
  return at < 0 ? undefined : at + end.length;
}
