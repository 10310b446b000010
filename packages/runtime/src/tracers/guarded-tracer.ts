// `guardedTrace`: a tracer as a runtime calls it, which cannot throw into the code it watches.

import type { AgentTracer } from "@holdfast/core";
import type { DriverWorld } from "../session/driver-environment.ts";
import { silentTracer } from "../node/node-ports.ts";

/** The guarded function of a tracer; `undefined` for the silent tracer. */
export function guardedTrace(tracer: AgentTracer): DriverWorld["trace"] {
  if (tracer === silentTracer) return undefined;
  return (event) => {
    try {
      tracer.trace(event);
    } catch {
      // The tracer loses this event.
    }
  };
}

export function guardedTraceparent(tracer: AgentTracer): DriverWorld["traceparent"] {
  return (sessionId, attempt) => orNone(() => tracer.traceparent?.(sessionId, attempt));
}

export function guardedCallersTraceparent(tracer: AgentTracer): () => string | undefined {
  return () => orNone(() => tracer.callersTraceparent?.());
}

function orNone(context: () => string | undefined): string | undefined {
  try {
    return context();
  } catch {
    return undefined;
  }
}
