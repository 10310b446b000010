// `turnOf` tells a caller whether a session works, waits for a person, or has answered. The session may be a
// conversation.
//
// A conversation that waits for its next prompt has finished its turn, although the session has not ended. Once
// the prompt is stored, it works.

import { NEXT_INPUT } from "@holdfast/core";
import type { Session, Wait } from "@holdfast/proto";

const ENDED: ReadonlySet<string> = new Set(["completed", "failed", "cancelled"]);
const decoder = new TextDecoder();

export type SessionTurn =
  | { readonly type: "running" }
  /** A person has to do something first. */
  | { readonly type: "blocked"; readonly reason: string; readonly question?: Wait }
  | { readonly type: "finished"; readonly isError: boolean; readonly result: string };

export function turnOf(session: Session): SessionTurn {
  const { status } = session;
  if (ENDED.has(status)) return ended(session);
  if (status === "paused")
    return { type: "blocked", reason: `it is paused: ${session.pauseReason ?? "by_user"}` };
  const question = session.waits.find(({ type, answered }) => type === "input" && answered !== true);
  if (status === "input_required" && question !== undefined)
    return { type: "blocked", reason: `it asks: ${question.prompt ?? question.name ?? ""}`, question };
  // A conversation that waits for its next prompt has finished its turn.
  const hasFinished =
    status === "waiting" &&
    session.waits.some(
      ({ type, name, answered }) => type === "signal" && name === NEXT_INPUT && answered !== true,
    );
  if (hasFinished) return { type: "finished", isError: false, result: answerIn(session.progress) };
  return { type: "running" };
}

/** The turn that follows the first `after` records of the journal. */
export function turnAfter(session: Session, after: bigint): SessionTurn {
  const turn = turnOf(session);
  const isEarlier = turn.type === "finished" && session.nextSeq <= after;
  return isEarlier ? { type: "running" } : turn;
}

function ended({ status, output, error }: Session): SessionTurn {
  if (status === "completed") return { type: "finished", isError: false, result: answerIn(output) };
  const { message = "", fix } = error ?? {};
  const result = [`the session ${status}`, message, fix === undefined ? "" : `(${fix})`].filter(Boolean);
  return { type: "finished", isError: true, result: result.join(": ") };
}

/** The answer in an output or in the progress that a turn reported: a text, or JSON. */
export function answerIn(bytes: Uint8Array | undefined): string {
  if (bytes === undefined) return "";
  const value = JSON.parse(decoder.decode(bytes)) as unknown;
  if (typeof value === "string") return value;
  if (typeof value === "object" && value !== null) {
    const { answer, result_text: text } = value as {
      readonly answer?: unknown;
      readonly result_text?: unknown;
    };
    if (typeof answer === "string") return answer;
    if (typeof text === "string") return text;
  }
  return JSON.stringify(value);
}
