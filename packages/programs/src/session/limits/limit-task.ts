// The durable task that pauses a session whose external agent has reached its usage limit, or is not signed
// in (`limitTask`).
//
// The first attempt asks for the pause. The next one begins when the session is resumed, and does nothing:
// the program is asked again in a turn of its own. An attempt that was lost before the pause costs one more
// turn, which pauses in its place.

import { defined, PauseError } from "@holdfast/core";
import { defineTask } from "@holdfast/runtime";

import type { AgentLimit } from "./agent-limit.ts";

export interface LimitWait {
  readonly agent: string;
  readonly limit: AgentLimit;
  /** How a person signs in. */
  readonly signIn: string;
  readonly resumeAtReset: boolean;
}

export const limitTask = defineTask<LimitWait, null>({
  name: "external-agent:limit",
  description: "Pauses the session until a limit of its external agent has passed.",
  run: (wait, { attempt }) => {
    if (attempt > 1) return null; // The session was resumed: the program is asked again in a turn of its own.
    throw wait.limit.reason === "quota" ? quotaReached(wait) : notSignedIn(wait);
  },
});

function quotaReached({ agent, limit: { message, resetsAt }, resumeAtReset }: LimitWait): PauseError {
  const until = resetsAt === undefined ? "" : ` until ${new Date(resetsAt).toISOString()}`;
  return new PauseError(
    "quota_exceeded",
    `${agent}: the usage limit of its account is reached${until}: ${message}`,
    {
      fix: resetsAt === undefined ? "add credit or raise the limit at the vendor" : "wait for the reset",
      pause: {
        reason: "quota",
        pool: agent,
        ...defined({ resetsAt }),
        ...(resumeAtReset ? { resumeAtReset } : {}),
      },
    },
  );
}

function notSignedIn({ agent, limit: { message }, signIn }: LimitWait): PauseError {
  return new PauseError("model_auth", `${agent} is not signed in: ${message}`, {
    fix: signIn,
    pause: { reason: "auth_required" },
  });
}
