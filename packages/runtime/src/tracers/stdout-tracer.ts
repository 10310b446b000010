// `stdoutTracer`: writes trace events as lines for people, to standard output or a given function.
//
// Tokens and progress are left out: they are many, and the terminal shows them as they come.

import type { AgentTracer, TraceTextOptions } from "@holdfast/core";
import { traceLine } from "@holdfast/core";

/** Options of `stdoutTracer`. */
export interface StdoutTracerOptions extends Pick<TraceTextOptions, "redact"> {
  /** Writes a line; to standard output by default. Must not throw. */
  readonly write?: (line: string) => void;
}

/** One readable line per event: time, session, what happened. Control characters are taken out. */
export function stdoutTracer({
  redact = (text) => text,
  write = (line) => void process.stdout.write(line),
}: StdoutTracerOptions = {}): AgentTracer {
  return {
    trace(event) {
      if (event.type === "task_delta" && event.delta.type !== "usage") return;
      const time = new Date(event.at).toISOString().slice(11, 23);
      const text = redact(traceLine(event));
      write(`${time} ${event.sessionId} ${text.replace(STEERING, " ")}\n`);
    },
  };
}

/** Characters with which an agent's text could move the cursor or begin a line of its own. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for.
const STEERING = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]+/g;
