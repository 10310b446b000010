// `logEvent`, `logTrace`: lines for people, or JSON, about a runner and its sessions.

import { defined, type TraceEvent } from "@holdfast/core";
import type { RunnerEvent } from "@holdfast/runner";
import type { Io } from "@holdfast/terminal/frame/command";
import { count, plainLine } from "@holdfast/terminal/frame/plain-text";

const MESSAGE_CHARS = 300;

/** Shows an event of the runner, on standard error or as JSON. */
export function logEvent(event: RunnerEvent, io: Io): void {
  if (io.isJson) return io.result(jsonOf(event), "");
  const { paint, symbols } = io.notes;
  switch (event.type) {
    case "connecting":
      return io.note(`Connecting to Agent Coordinator at ${event.url}`);
    case "registered":
      return io.note(`Registered as ${paint.bold(event.runnerId)}`);
    case "started":
      io.note("Runner started - waiting for runs");
      if (event.healthPort !== undefined) io.note(`Health on http://127.0.0.1:${event.healthPort}/healthz`);
      return;
    case "received":
      return io.note(
        `${symbols.begin} Received run ${event.runId} (${event.runType}) of agent ${event.agent}`,
      );
    case "lost": {
      const { message, got, fix } = event.error;
      io.note(paint.yellow(`${symbols.warn} ${plainLine(message, MESSAGE_CHARS)}; trying again`));
      for (const [what, text] of Object.entries(defined({ got, fix })))
        io.note(`  ${what}: ${plainLine(text, MESSAGE_CHARS)}`);
      return;
    }
    case "renewed_more_often": {
      const [asked, renewed] = [event.askedMs / 1_000, event.renewMs / 1_000];
      const text = `HEARTBEAT_INTERVAL is lowered from ${asked} s to ${renewed} s, a third of the coordinator's lease`;
      return io.note(paint.yellow(`${symbols.warn} ${text}`));
    }
    case "back":
      return io.note(`${symbols.again} The coordinator is back`);
    case "superseded":
      return io.note(
        `Newer code takes over; ${count(event.kept, "session")} may return here if it diverges from their journals`,
      );
    case "draining":
      return io.note(`Taking no more; ${count(event.held, "run")} held`);
    case "stopped":
      return io.note("Runner stopped");
  }
}

function jsonOf(event: RunnerEvent): object {
  if (!("error" in event)) return event;
  const { type, error } = event;
  if (error === undefined) return { type };
  const { code, message, got, fix } = error;
  return { type, error: { code, message, ...defined({ got, fix }) } };
}

/** Shows warnings, and with `isVerbose` the ends of sessions. */
export function logTrace(event: TraceEvent, io: Io, isVerbose: boolean): void {
  const { sessionId } = event;
  const { paint, symbols } = io.notes;
  if (event.type === "warned") {
    const text = plainLine(`${sessionId}: ${event.message}`, MESSAGE_CHARS);
    if (io.isJson) io.result({ type: "warning", message: text }, "");
    else io.note(paint.yellow(`${symbols.warn} ${text}`));
    return;
  }
  if (!isVerbose) return;
  if (event.type === "session_ended") {
    const { status, error } = event;
    if (io.isJson) return io.result({ type: "session_ended", sessionId, status }, "");
    const why = error === undefined ? "" : `: ${plainLine(error.message, MESSAGE_CHARS)}`;
    const mark = status === "completed" ? paint.green(symbols.done) : paint.red(symbols.failed);
    io.note(`${mark} ${sessionId} ${status}${why}`);
  } else if (event.type === "waiting" && !io.isJson) {
    io.note(`${symbols.wait} ${sessionId} waits`);
  }
}
