// compositeTracer: several tracers as one. A failure of one tracer does not affect the others.

import type { AgentTracer } from "@holdfast/core";

export function compositeTracer(members: readonly AgentTracer[]): AgentTracer {
  return {
    trace(event) {
      for (const member of members) {
        try {
          member.trace(event);
        } catch {
          // It lost an event; the next one hears it all the same.
        }
      }
    },
    /** The first one that has any: a trace has one context. */
    traceparent(sessionId, attempt) {
      for (const member of members) {
        try {
          const context = member.traceparent?.(sessionId, attempt);
          if (context !== undefined) return context;
        } catch {
          // Then it has none.
        }
      }
      return undefined;
    },
    async flush() {
      await Promise.allSettled(members.map(async (member) => member.flush?.()));
    },
  };
}
