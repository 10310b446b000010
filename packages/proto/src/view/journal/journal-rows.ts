// `JournalRows`: a journal as one short row for each record, so that a page can hold all of it.
//
//   journal-rows-1. A row has no payload. It stays small however large its record is.

import type { JournalEvent, RecordType } from "../journal-event.ts";
import { AGENT_REPORT, signalText } from "../wait.ts";

export interface JournalRow {
  /** The position in `holdfast logs`. */
  readonly seq: number;
  readonly type: RecordType;
  readonly at: number | undefined;
  /** The thing that the record is about: a task, a signal, a question, an error. Untrusted text. */
  readonly about: string;
}

const ABOUT_CHARS = 300;

/** Takes the events of a session in their order. */
export class JournalRows {
  readonly #sessionId: string;
  readonly #rows: JournalRow[] = [];
  readonly #checkpoints: number[] = [];

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
  }

  add(event: JournalEvent): void {
    const { seq, type, at } = event;
    this.#rows.push({ seq, type, at, about: aboutText(event, this.#sessionId).slice(0, ABOUT_CHARS) });
    if (type === "checkpoint") this.#checkpoints.push(seq);
  }

  /** All rows so far. Later events are appended. */
  get rows(): readonly JournalRow[] {
    return this.#rows;
  }

  /** The checkpoint before a record, and the first one from the record on. */
  checkpointsAround(seq: number): {
    readonly before: number | undefined;
    readonly after: number | undefined;
  } {
    return {
      before: this.#checkpoints.findLast((each) => each < seq),
      after: this.#checkpoints.find((each) => each >= seq),
    };
  }
}

/**
 * The number of records that two journals begin with in common: the place where a fork left its origin. A
 * name in a copied record can differ, because ids of tasks contain the session's id. Types and times are
 * compared alone.
 */
export function commonRows(a: readonly JournalRow[], b: readonly JournalRow[]): number {
  const differs = a.findIndex((row, n) => {
    const other = b[n];
    return other === undefined || row.type !== other.type || row.at !== other.at;
  });
  return differs === -1 ? a.length : differs;
}

function aboutText(event: JournalEvent, sessionId: string): string {
  const { kind, task, attempt, begins, name, prompt, error, role, turn, names, reason, message, output } =
    event;
  const named = task === undefined ? (kind ?? "") : `${kind ?? ""} #${task}`;
  switch (event.type) {
    case "schedule_task":
    case "task_completed":
    case "outcome_kept":
      return named;
    case "task_failed":
    case "attempt_failed":
    case "attempt_lost": {
      const tried =
        attempt === undefined ? named : `${named}, attempt ${attempt}${begins === true ? " begins" : ""}`;
      return error === undefined ? tried : `${tried}: ${error.message}`;
    }
    case "wait_signal":
    case "signal_received":
    case "signal_ready":
    case "wait_timed_out":
    case "wait_cancelled":
      return prompt ?? (name === undefined ? "" : signalText(name, sessionId));
    case "request_input":
      return prompt ?? "";
    case "take_signals":
      return (names ?? [])
        .map((taken) => (taken === AGENT_REPORT ? signalText(taken, sessionId) : taken))
        .join(", ");
    case "tell_session":
    case "request_parent":
    case "request_received":
      return name ?? "";
    case "spawn_child":
      return `${String(event["agent"])} ${String(event["childId"])}`;
    case "cancel_child":
      return String(event["childId"]);
    case "append_entry":
      return role ?? "";
    case "checkpoint":
      return `turn ${String(turn)}`;
    case "forked":
      return `from ${String(event["from"])}`;
    case "withdraw":
      return (event.withdrawn ?? []).map((each) => `${each.kind ?? ""} #${each.task}`).join(", ");
    case "cancel_requested":
      return reason ?? "";
    case "warned":
      return String(message);
    case "complete":
      // A text may have megabytes, of which a row has little.
      return JSON.stringify(typeof output === "string" ? output.slice(0, ABOUT_CHARS) : output) ?? "";
    case "fail":
      return error?.message ?? "";
    case "drift_accepted":
      return `at ${String(event.positions)}`;
    case "started":
    case "start_timer":
    case "timer_fired":
    case "record_probe":
    case "reply_child":
    case "enable_persistence":
    default:
      return "";
  }
}
