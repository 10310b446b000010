// `compositeTracer`: several tracers as one. A failure of one tracer does not affect the others.

import type { AgentTracer } from "@holdfast/core";

/** A tracer that tells several others. */
export function compositeTracer(members: readonly AgentTracer[]): AgentTracer {
  const first = (contextOf: (member: AgentTracer) => string | undefined): string | undefined => {
    for (const member of members) {
      try {
        const context = contextOf(member);
        if (context !== undefined) return context;
      } catch {
        // A tracer that throws has no context.
      }
    }
    return undefined;
  };
  return {
    trace(event) {
      for (const member of members) {
        try {
          member.trace(event);
        } catch {
          // This tracer lost the event; the next one gets it all the same.
        }
      }
    },
    /** The context of the first tracer that has one: a trace has one context. */
    traceparent: (sessionId, attempt) => first((member) => member.traceparent?.(sessionId, attempt)),
    callersTraceparent: () => first((member) => member.callersTraceparent?.()),
    async flush() {
      await Promise.allSettled(members.map(async (member) => member.flush?.()));
    },
  };
}
