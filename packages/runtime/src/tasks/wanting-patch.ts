// `wantingPatch`: the row of a session that is paused because one of its tasks asked for that.

import { DAY_MS, type PauseRequest, type RecordedError, type SessionPatch } from "@holdfast/core";

/** How often in a row one task may wait for its usage limit without a person. */
export const QUOTA_WAITS_MAX = 10;

/** A reset that is further away is a mistake of the provider. A person decides then. */
const RESET_AHEAD_MAX_MS = 40 * DAY_MS;

interface PausedAttempt {
  readonly error: RecordedError;
  /** How many attempts of the task were paused before. */
  readonly waited: number;
  readonly now: number;
}

export function wantingPatch(pause: PauseRequest, { error, waited, now }: PausedAttempt): SessionPatch {
  if (pause.reason !== "quota") return { status: "paused", pauseReason: pause.reason, waits: [], error };
  const { pool, resetsAt, resumeAtReset = false } = pause;
  const isKnown = resetsAt !== undefined && resetsAt >= 0 && resetsAt - now <= RESET_AHEAD_MAX_MS;
  // mutant: quota-waits-unlimited
  const resumes = isKnown && resumeAtReset && waited < QUOTA_WAITS_MAX;
  const quota = {
    pool,
    ...(isKnown ? { resetsAt } : {}),
    ...(resumes ? { resumesAt: Math.max(resetsAt, now + RESUME_DELAY_MIN_MS) } : {}),
  };
  return { status: "paused", pauseReason: pause.reason, quota, waits: [], error };
}

/** A provider whose clock is behind names a reset that is over. */
const RESUME_DELAY_MIN_MS = 1_000;
