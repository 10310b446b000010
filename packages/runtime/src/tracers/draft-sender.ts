// `DraftSender` shows what models write in sessions of this process, for people who watch these sessions
// elsewhere.
//
//   - Nothing is stored, and no step waits for it. A draft is the whole text so far, so the next one makes up for
//     one that was lost.
//   - While nobody watches, one request in `ASK_MS` asks whether somebody does, and none while no model writes.
//   - Memory: the end of the text of each task that streams.

import {
  type AgentTracer,
  type Clock,
  DRAFT_CHARS_MAX,
  positionIn,
  type SharedDrafts,
  type ShownDraft,
  type TraceEvent,
} from "@holdfast/core";

/** From a piece of a text to the request that shows it. */
const SHOW_MS = 250;
const ASK_MS = 3_000;
const DRAFTS_MAX = 100;
/** Less than a coordinator's limit for a request, 1 MiB, also with three bytes for each character. */
const REQUEST_CHARS = 200_000;
const WATCHED_MAX = 1_000;

interface Writing {
  readonly sessionId: string;
  readonly task: number;
  readonly attempt: number;
  text: string;
  /** Whether a part of it was not shown. */
  isNew: boolean;
}

export interface DraftSenderHost {
  readonly clock: Pick<Clock, "monotonic" | "setTimer">;
  /** Rejects where nobody can be reached. */
  readonly show: SharedDrafts["show"];
}

export class DraftSender implements AgentTracer {
  readonly #host: DraftSenderHost;
  readonly #drafts = new Map<string, Writing>();
  /** The sessions that somebody watched when it asked last. They stay between two calls of a model. */
  readonly #watched = new Set<string>();
  /** When it is asked again about sessions that nobody watched. Monotonic milliseconds. */
  #askAt = -Infinity;
  #timer: { readonly cancel: () => void; readonly isSoon: boolean } | undefined;
  #isSending = false;
  #isClosed = false;

  constructor(host: DraftSenderHost) {
    this.#host = host;
  }

  trace(event: TraceEvent): void {
    if (event.type === "task_delta") {
      if (event.delta.type === "token") this.#write(event, event.delta.text);
    } else if (event.type === "task_ended") this.#drafts.delete(event.taskId);
    else if (event.type === "entry_appended") {
      // A program goes on writing in the same task. Its message so far is recorded.
      if (event.role === "assistant") this.#eachOf(event.sessionId, (draft) => rewrite(draft, ""));
    } else if (event.type === "session_released" || event.type === "session_ended") {
      this.#eachOf(event.sessionId, (_draft, taskId) => this.#drafts.delete(taskId));
      this.#watched.delete(event.sessionId);
    }
  }

  #eachOf(sessionId: string, visit: (draft: Writing, taskId: string) => void): void {
    for (const [taskId, draft] of this.#drafts) if (draft.sessionId === sessionId) visit(draft, taskId);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#drafts.clear();
  }

  #write({ sessionId, taskId, attempt }: Extract<TraceEvent, { type: "task_delta" }>, text: string): void {
    const task = positionIn(taskId, sessionId);
    if (task === undefined || this.#isClosed) return;
    const known = this.#drafts.get(taskId);
    const draft = known?.attempt === attempt ? known : { sessionId, task, attempt, text: "", isNew: true };
    this.#drafts.set(taskId, draft);
    // Cut rarely: a cut copies the text.
    const whole = draft.text + text;
    rewrite(draft, whole.length > 2 * DRAFT_CHARS_MAX ? whole.slice(-DRAFT_CHARS_MAX) : whole);
    this.#schedule();
  }

  /** The next request is soon while somebody waits for a new text, and otherwise when it is time to ask. */
  #schedule(): void {
    if (this.#isSending || this.#isClosed || this.#drafts.size === 0) return;
    const { clock } = this.#host;
    const isAwaited = [...this.#drafts.values()].some((draft) => this.#isAwaited(draft));
    if (this.#timer !== undefined && (this.#timer.isSoon || !isAwaited)) return;
    this.#timer?.cancel();
    const delayMs = isAwaited ? SHOW_MS : Math.max(SHOW_MS, this.#askAt - clock.monotonic());
    const cancel = clock.setTimer(() => void this.#send(), delayMs, true);
    this.#timer = { cancel, isSoon: isAwaited };
  }

  #isAwaited({ sessionId, isNew }: Writing): boolean {
    return isNew && this.#watched.has(sessionId);
  }

  async #send(): Promise<void> {
    this.#timer = undefined;
    const drafts = this.#due();
    if (drafts.length > 0) {
      this.#isSending = true;
      this.#note(drafts, await this.#host.show(drafts).catch((): readonly string[] => []));
      this.#isSending = false;
    }
    this.#schedule();
  }

  #note(asked: readonly ShownDraft[], watched: readonly string[]): void {
    if (this.#watched.size > WATCHED_MAX) this.#watched.clear();
    for (const { sessionId } of asked) {
      const wasWatched = this.#watched.delete(sessionId);
      if (!watched.includes(sessionId)) continue;
      this.#watched.add(sessionId);
      if (!wasWatched) this.#eachOf(sessionId, (draft) => (draft.isNew = true));
    }
  }

  /**
   * New texts of sessions that are watched. When it is time to ask, also their other texts, for a reader that has
   * come since, and the ids of all other sessions.
   */
  #due(): readonly ShownDraft[] {
    const now = this.#host.clock.monotonic();
    const asks = now >= this.#askAt;
    if (asks) this.#askAt = now + ASK_MS;
    const due: ShownDraft[] = [];
    const taken = new Map<string, Writing>();
    let chars = 0;
    for (const [taskId, draft] of this.#drafts) {
      const { sessionId, task } = draft;
      if (due.length === DRAFTS_MAX) break;
      if (this.#isAwaited(draft) || (asks && this.#watched.has(sessionId))) {
        const text = draft.text.slice(-DRAFT_CHARS_MAX).toWellFormed();
        chars += text.length;
        if (chars > REQUEST_CHARS) break;
        draft.isNew = false;
        due.push({ sessionId, draft: { task, text } });
      } else if (asks) due.push({ sessionId });
      else continue;
      taken.set(taskId, draft);
    }
    // The next request begins with the others.
    for (const [taskId, draft] of taken) {
      this.#drafts.delete(taskId);
      this.#drafts.set(taskId, draft);
    }
    return due;
  }
}

function rewrite(draft: Writing, text: string): void {
  draft.text = text;
  draft.isNew = true;
}
