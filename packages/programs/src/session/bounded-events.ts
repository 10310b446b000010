// `boundedEvent` and `boundedEnd`: the limits of what an agent says, whichever adapter brings it. Pure.
//
//   - A text over its limit is cut with a note, so that finished work is never lost for its length.
//   - An id over its limit is refused, because a part of an id names nothing.

import { MIB } from "@holdfast/core";
import { cutText } from "./fields.ts";
import type { ExternalEnd, ExternalEvent } from "./external-agent-protocol.ts";

const TEXT_CHARS = MIB;
const MESSAGE_CHARS = 16 * 1024;
const TOO_LONG_FORM = `the agent asks a question of more than ${TEXT_CHARS} characters`;
const PLAN_STEPS = 500;
const STEP_CHARS = 2_000;
export const ID_CHARS = 1_000;

/** @returns the reason for which the event is refused. */
export function boundedEvent(event: ExternalEvent): ExternalEvent | string {
  if ("parentCallId" in event && !isId(event.parentCallId ?? "")) return tooLong("the call of a sub-agent");
  switch (event.type) {
    case "session_started":
      return isId(event.boundId ?? "") ? event : tooLong("its session");
    case "tool_call":
      return isId(event.id) && isId(event.name) ? event : tooLong("a call of a tool");
    case "tool_result":
      return isId(event.id)
        ? { ...event, text: cutText(event.text, TEXT_CHARS) }
        : tooLong("a call of a tool");
    case "permission_request":
      if (!isId(event.request.requestId) || !isId(event.request.toolCallId)) return tooLong("a request");
      return JSON.stringify(event.request.form ?? "").length <= TEXT_CHARS ? event : TOO_LONG_FORM;
    case "permission_withdrawn":
      return isId(event.requestId) ? event : tooLong("a request");
    case "plan":
      return {
        ...event,
        steps: event.steps
          .slice(0, PLAN_STEPS)
          .map(({ text, status }) => ({ text: cutText(text, STEP_CHARS), status })),
      };
    case "text":
    case "thinking":
    case "notice":
      return { ...event, text: cutText(event.text, TEXT_CHARS) };
    case "text_delta":
    case "follow_up": // It is ours.
      return event;
    case "usage":
      return event.recordIds?.every(isId) === false ? tooLong("a call of its model") : event;
  }
}

export function boundedEnd(end: ExternalEnd): ExternalEnd {
  if (end.type === "answered") return { ...end, text: cutText(end.text, TEXT_CHARS) };
  return "message" in end ? { ...end, message: cutText(end.message, MESSAGE_CHARS) } : end;
}

function isId(text: string): boolean {
  return text.length <= ID_CHARS;
}

function tooLong(what: string): string {
  return `the agent names ${what} by more than ${ID_CHARS} characters`;
}
