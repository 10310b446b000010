// `traceJson`, `traceLine`: a trace event as text, for files, databases and terminals.
//
//   - Users' data (inputs, outputs, contents, tokens, prompts) is left out unless it is asked for, because
//     more people read a trace than a session.
//   - Every text of unknown origin goes through `redact`, if there is one, before it leaves.
//
// Pure. It knows no tracer.

import type { RecordedError } from "../errors/recorded-error.ts";
import type { JsonText } from "../json/json.ts";
import type { TraceEvent } from "./tracer.ts";

/** Options of the text that tracers write. */
export interface TraceTextOptions {
  /** Keep inputs, outputs, contents and tokens too. */
  readonly payloads?: boolean;
  /**
   * A text as it may leave the process, with its secrets removed. Called for every text. A trace line for
   * which it throws is lost.
   */
  readonly redact?: (text: string) => string;
}

/** One line of JSON, without a line break. */
export function traceJson(event: TraceEvent, { payloads = false, redact }: TraceTextOptions = {}): string {
  const kept = payloads ? withPayloads(event) : withoutPayloads(event);
  return redact === undefined
    ? JSON.stringify(kept)
    : JSON.stringify(kept, (_key, value: unknown) => (typeof value === "string" ? redact(value) : value));
}

/** One line for people, without time and session. */
export function traceLine(event: TraceEvent): string {
  switch (event.type) {
    case "session_started":
      return `session ${event.recovered ? "goes on" : "started"}: ${event.agent} ${event.version}`;
    case "turn_started":
      return `turn ${event.turn} ${event.recovered ? "goes on" : "started"}`;
    case "turn_ended":
      return `turn ${event.turn} ${event.outcome}`;
    case "task_started":
      return `${event.kind} started${attemptText(event)}`;
    case "task_delta":
      return `${event.kind} ${deltaText(event.delta)}`;
    case "task_ended": {
      const error = event.error === undefined ? "" : `: ${errorText(event.error)}`;
      return `${event.kind} ${event.outcome} after ${Math.round(event.durationMs)} ms${attemptText(event)}${error}`;
    }
    case "task_lost":
      return `${event.kind} lost with its process${attemptText(event)}`;
    case "entry_appended":
      return `entry ${event.role}`;
    case "waiting":
      return `waits for ${event.waits.map((wait) => ("name" in wait ? wait.name : "a timer")).join(", ")}`;
    case "signal_received":
      return `signal ${event.name} arrived`;
    case "committed":
      return `committed ${event.records} records, next ${event.nextSeq}`;
    case "warned":
      return `warning: ${event.message}`;
    case "session_ended":
      return `session ${event.status}${event.error === undefined ? "" : `: ${errorText(event.error)}`}`;
    case "session_released":
      return `session released${event.error === undefined ? "" : `: ${errorText(event.error)}`}`;
  }
}

function withoutPayloads(event: TraceEvent): object {
  switch (event.type) {
    case "task_started": {
      const { input: _, ...rest } = event;
      return rest;
    }
    case "task_ended": {
      const { output: _, ...rest } = event;
      return rest;
    }
    case "entry_appended": {
      const { content: _, ...rest } = event;
      return rest;
    }
    case "task_delta":
      return event.delta.type === "usage" ? event : { ...event, delta: { type: event.delta.type } };
    case "waiting":
      return { ...event, waits: event.waits.map((wait) => ({ ...wait, prompt: undefined })) };
    default:
      return event;
  }
}

/** Recorded text becomes the value that it encodes, because JSON within JSON is hard to read. */
function withPayloads(event: TraceEvent): object {
  switch (event.type) {
    case "task_started":
      return { ...event, input: parsed(event.input) };
    case "task_ended":
      return { ...event, output: parsed(event.output) };
    case "entry_appended":
      return { ...event, content: parsed(event.content) };
    default:
      return event;
  }
}

function parsed(text: JsonText | undefined): unknown {
  return text === undefined ? undefined : JSON.parse(text);
}

function attemptText({ attempt }: { readonly attempt: number }): string {
  return attempt === 1 ? "" : ` (attempt ${attempt})`;
}

function deltaText(delta: Extract<TraceEvent, { type: "task_delta" }>["delta"]): string {
  if (delta.type !== "usage") return delta.type === "token" ? "sent a token" : "made progress";
  const { model, inputTokens, outputTokens, costMicroUsd } = delta.usage;
  const cost = costMicroUsd === undefined ? "" : `, ${(costMicroUsd / 1e6).toFixed(6)} USD`;
  return `used ${model}: ${inputTokens} tokens in, ${outputTokens} out${cost}`;
}

function errorText({ name, message }: RecordedError): string {
  return `${name}: ${message}`;
}
