// `waitText`, `signalText`, `pauseText`: the things that a session waits for, and the reason of its pause,
// for people.
//
// Pure, over plain JSON, so that a command and the page say the same. Nothing here makes text safe for a
// terminal or for HTML.

import { visibleText } from "./text/visible-text.ts";

/** Something that a session waits for. */
export interface PlainWait {
  readonly type: string;
  readonly id: number;
  readonly name?: string;
  readonly prompt?: string;
  /** When a timer is due, or until when the wait lasts. Epoch milliseconds. */
  readonly at?: number;
  readonly until?: number;
}

/** The thing that is waited for, completing "waits for". It says no time. */
export function waitText(wait: PlainWait, sessionId: string): string {
  switch (wait.type) {
    case "timer":
      return "a timer";
    case "input":
      return `an answer to question ${wait.id}: ${visibleText(wait.prompt ?? "")}`;
    default:
      return signalText(wait.name ?? "", sessionId);
  }
}

/** A signal between sessions, with its sender. Only sessions can send such signals. */
export function signalText(name: string, sessionId: string): string {
  if (name === CHILD_ENDED) return "callbacks of its children";
  if (name === AGENT_REPORT) return "events of its external agent";
  const [, kind, number] = /^(child-end|child|request|reply):(\d+)$/.exec(name) ?? [];
  const child = `child ${sessionId}-${number}`;
  switch (kind) {
    case "child-end":
      return `the end of ${child}`;
    case "child":
      return `word of ${child}`;
    case "request":
      return `a request of ${child}`;
    case "reply":
      return "a reply of its parent";
    default:
      return `signal "${name}"`;
  }
}

const CHILD_ENDED = "child:ended";
/** An external agent reports by such signals what the entries that follow show. */
export const AGENT_REPORT = "external_agent.report";

/** The reasons of a pause that need no figures. */
export type PlainPause = "by_user" | "nondeterminism" | "agent_fault" | "poison" | "no_matching_runner";

/** The codes of errors that pause a session whose agent made no mistake: too many orderly stops, a lost conversation. */
const BLAMELESS: ReadonlySet<string | undefined> = new Set(["session_paused", "session_not_found"]);

/** Whether the session is paused although its agent made no mistake. `error` says what a person can do then. */
export function isBlameless({
  pauseReason,
  error,
}: {
  readonly pauseReason?: string;
  readonly error?: { readonly code?: string };
}): boolean {
  return pauseReason === "agent_fault" && BLAMELESS.has(error?.code);
}

/**
 * Why a session stands still until a person does something, and what that is.
 *
 * @param isElsewhere whether it is at a coordinator, whose runners continue it once it is unpaused.
 * @param mayAcceptDrift whether only the inputs of its asks changed.
 */
export function pauseText(reason: PlainPause, isElsewhere: boolean, mayAcceptDrift: boolean): string {
  const correct = isElsewhere ? "correct the code and start its runners with it" : "correct the code";
  switch (reason) {
    case "by_user":
      return "somebody paused it";
    case "nondeterminism":
      return mayAcceptDrift
        ? `its agent asked with another input than its journal holds: ${correct}, or accept the drift`
        : `its agent asked for something else than its journal holds: ${correct}`;
    case "agent_fault":
      return `its agent made a mistake: ${correct}`;
    case "poison":
      return isElsewhere
        ? `it crashed its runner, or kept it busy, several times in a row: ${correct}`
        : `it ended its process, or kept it busy without awaiting, several times in a row: ${correct}`;
    case "no_matching_runner":
      return isElsewhere
        ? "no matching runner came in time: start one, then unpause it"
        : "its agent is not here in the version that the session was started with";
  }
}
