// `identityOf`, `describeSides`: the identity of a command (K1), made of type, kind, name and the hash of the
// input. And its text in errors.

import type { CommandRecord, JournalRecord } from "../journal/record.ts";
import { isCommand } from "../journal/record.ts";

/** Two commands of the same identity at the same position are the same command. */
export function identityOf(command: Omit<CommandRecord, "seq" | "id">): string {
  return `${sortOf(command)} ${inputOf(command)}`;
}

/** The identity without the input: what must be equal even when drift is accepted. */
export function sortOf(command: Omit<CommandRecord, "seq" | "id">): string {
  const any = command as CommandRecord;
  switch (any.type) {
    case "schedule_task":
      return `task "${any.kind}"${any.key === undefined ? "" : ` with key "${any.key}"`}`;
    case "start_timer":
      return "timer";
    case "wait_signal":
      return `wait for signal "${any.name}"${any.mode === "ready" ? " to be ready" : ""}`;
    case "request_input":
      return "question";
    case "take_signals":
      return `taking signals "${any.pattern}"`;
    case "record_probe":
      return `probe ${any.probe}`;
    case "append_entry":
      return `entry of role "${any.role}"`;
    case "spawn_child":
      return `${any.handOff === true ? "handing over to" : "child"} "${any.agent}"`;
    case "tell_session":
      return `notifying ${any.to === "parent" ? "the parent" : `child ${any.to}`} "${any.name}"`;
    case "request_parent":
      return `asking the parent for "${any.name}"`;
    case "reply_child":
      return "answering a child";
    case "cancel_child":
      return `cancelling child ${any.child} (${any.mode})`;
    case "enable_persistence":
      return "enabling persistence";
    case "withdraw":
      return "withdrawing";
    case "checkpoint":
    case "complete":
    case "fail":
      return any.type;
  }
}

function inputOf(command: Omit<CommandRecord, "seq" | "id">): string {
  const any = command as CommandRecord;
  switch (any.type) {
    case "schedule_task":
    case "append_entry":
    case "request_input":
    case "spawn_child":
    case "tell_session":
    case "request_parent":
    case "reply_child":
      // mutant: changed-input-unseen
      return `with input ${any.hash.slice(0, 8)}`;
    case "start_timer":
      return `for ${any.fireAt}`;
    case "withdraw":
      return any.targets.join(", ");
    case "wait_signal":
    case "take_signals":
    case "record_probe":
    case "cancel_child":
    case "enable_persistence":
    case "checkpoint":
    case "complete":
    case "fail":
      return "";
  }
}

/**
 * The two sides of a divergence: with the inputs, where the journal keeps them, and the place where they
 * differ.
 */
export function describeSides(
  recorded: JournalRecord | undefined,
  attempted: Omit<CommandRecord, "seq" | "id">,
): readonly [recorded: string, attempted: string] {
  if (recorded === undefined || !isCommand(recorded) || sortOf(recorded) !== sortOf(attempted))
    return [describeRecord(recorded), withInput(attempted)];
  const [before, now] = [recorded.payload, attempted.payload];
  if (before === undefined || now === undefined) return [identityOf(recorded), identityOf(attempted)];
  const from = firstDifference(before, now);
  return [withPayload(recorded, before, from), withPayload(attempted, now, from)];
}

/**
 * A command without a payload is described by its sort. Its hash is shown only beside another hash, because
 * alone it says nothing to people.
 */
function withInput(command: Omit<CommandRecord, "seq" | "id">): string {
  if (command.payload !== undefined) return withPayload(command, command.payload, 0);
  return "hash" in command ? sortOf(command) : identityOf(command).trim();
}

function withPayload(command: Omit<CommandRecord, "seq" | "id">, payload: string, place: number): string {
  return `${sortOf(command)} with ${PAYLOADS[command.type] ?? "input"} ${excerpt(payload, place)}`;
}

/** The name of a command's payload, where it is not the input. */
const PAYLOADS: { readonly [type in CommandRecord["type"]]?: string } = {
  checkpoint: "state",
  complete: "output",
  fail: "error",
};

function firstDifference(a: string, b: string): number {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  return i;
}

const EXCERPT_CHARS = 240;

/** The part of a text around a place in it. */
function excerpt(text: string, place: number): string {
  if (text.length <= EXCERPT_CHARS) return text;
  const from = Math.max(0, Math.min(place - EXCERPT_CHARS / 4, text.length - EXCERPT_CHARS));
  const part = text.slice(from, from + EXCERPT_CHARS);
  return `${from === 0 ? "" : `… (from character ${from}) `}${part}${from + EXCERPT_CHARS < text.length ? "…" : ""}`;
}

/** A description of a record, for the two sides of a divergence. */
export function describeRecord(record: JournalRecord | undefined): string {
  if (record === undefined) return "nothing more";
  if (isCommand(record)) return withInput(record);
  switch (record.type) {
    case "task_completed":
    case "task_failed":
      return `the outcome of task ${record.task} (${record.type})`;
    case "timer_fired":
      return `timer ${record.timer} firing`;
    case "signal_received":
    case "signal_ready":
    case "wait_timed_out":
    case "wait_cancelled":
      return `an answer to wait ${record.wait} (${record.type})`;
    case "request_received":
      return `a request of child ${record.child}`;
    case "started":
    case "forked":
    case "cancel_requested":
    case "attempt_failed":
    case "attempt_lost":
    case "outcome_kept":
    case "warned":
    case "drift_accepted":
      return record.type;
  }
}
