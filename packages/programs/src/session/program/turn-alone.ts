// `turnAlone`: stands in for the task and the session of a turn, for checks of a program that has no session.

import type { ExternalTurn } from "../external-agent-protocol.ts";

/** @param secret gives the values of secrets. Without it there are none. */
export function turnAlone(
  sessionId: string,
  secret: (name: string) => string = (name) => {
    throw new Error(`there is no secret ${name}`);
  },
): Pick<ExternalTurn, "task" | "stored"> {
  return {
    task: {
      sessionId,
      taskId: `${sessionId}-1`,
      secret,
      readSession: () => Promise.resolve(undefined),
    },
    stored: () => Promise.resolve(),
  };
}
