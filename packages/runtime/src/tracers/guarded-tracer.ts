// A tracer as a runtime calls it: it can neither throw into nor delay what it watches.

import type { AgentTracer } from "@holdfast/core";
import type { DriverWorld } from "../session/driver-environment.ts";
import { silentTracer } from "../node/node-ports.ts";

/** Nothing when nobody listens. */
export function guardedTrace(tracer: AgentTracer): DriverWorld["trace"] {
  if (tracer === silentTracer) return undefined;
  return (event) => {
    try {
      tracer.trace(event);
    } catch {
      // What a tracer cannot take is lost to it.
    }
  };
}

export function guardedTraceparent(tracer: AgentTracer): DriverWorld["traceparent"] {
  return (sessionId, attempt) => {
    try {
      return tracer.traceparent?.(sessionId, attempt);
    } catch {
      return undefined;
    }
  };
}
