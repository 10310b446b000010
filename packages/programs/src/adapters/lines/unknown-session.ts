// A turn of a session that the program cannot know (`unknownSession`). No process is started.

import type {
  Delivery,
  ExternalAgent,
  ExternalEnd,
  Queueing,
} from "../../session/external-agent-protocol.ts";

export function unknownSession(): ExternalAgent {
  const ended = Promise.resolve<ExternalEnd>({ type: "unknown_session" });
  return {
    ended,
    subscribe: () => {},
    steer: () => Promise.resolve<Delivery>("rejected"),
    followUp: () => Promise.resolve<Queueing>("rejected"),
    answerPermission: () => Promise.resolve(false),
    suspend: () => ended,
    abort: () => ended,
  };
}
