// The errors of a session that cannot be claimed, read or resumed: `sessionNotFound`, `sessionPaused` and
// others.

import {
  ConflictError,
  ERROR_TABLE,
  HoldfastError,
  NotFoundError,
  UnavailableError,
  type ErrorCode,
  type RecordedError,
  type Session,
} from "@holdfast/core";

/** Whether an error is only about storage, which may work again later. */
export function isStorageAway({ code }: HoldfastError): boolean {
  // mutant: full-disk-not-retried
  return ["storage_unavailable", "storage_full", "storage_readonly"].includes(code);
}

/** Whether an error is only about the version of an agent (V1). */
export function isOtherVersion(error: unknown): error is HoldfastError {
  return HoldfastError.is(error) && error.code === "agent_version";
}

export function leaseLost(sessionId: string): UnavailableError {
  return new UnavailableError(
    "storage_unavailable",
    `session ${sessionId}: its lease could not be renewed in time, so this process abandoned it before another one may claim it`,
    {
      fix: "restore access to storage; the session then resumes, here or in another process, without a command",
    },
  );
}

/**
 * K4a: the session kept a process busy until the watchdog ended it. It was alone in its slice, so it is the
 * cause.
 */
export function poisonFault(sessionId: string, at: string | undefined): HoldfastError {
  return new HoldfastError(
    "session_paused",
    `session ${sessionId}: its agent kept the process busy without awaiting, twice`,
    {
      ...(at === undefined ? {} : { at }),
      fix: "move the loop into a task, then run `holdfast resume`",
    },
  );
}

/** L4b: the process died too often while the session was the only suspect there. */
export function lostFault(sessionId: string, losses: number): HoldfastError {
  return new HoldfastError(
    "session_paused",
    `session ${sessionId}: its process died ${losses} times in a row while the session was tried alone, without a commit between`,
    {
      fix: `find out what in the session ends its process, correct that, then \`holdfast resume ${sessionId}\` tries it again`,
    },
  );
}

/** The code of a recorded error, if it is one of ours. */
export function codeOf(error: RecordedError | undefined): ErrorCode | undefined {
  const code = error?.code;
  return code !== undefined && Object.hasOwn(ERROR_TABLE, code) ? (code as ErrorCode) : undefined;
}

/** The error of a paused session, unless its agent's code caused the pause. */
export function sessionPaused({
  sessionId,
  pauseReason = "by_user",
  exhausted,
  error,
}: Pick<Session, "sessionId" | "pauseReason" | "exhausted" | "error">): HoldfastError {
  const isBudget = pauseReason === "budget_exceeded";
  const isWanting = pauseReason === "quota" || pauseReason === "auth_required";
  const why = error === undefined ? "" : `: ${error.message}`;
  const resume = `\`holdfast resume ${sessionId}\` resumes it where it stopped`;
  const grant = exhausted?.per === undefined ? "" : ` or grant it one more ${exhausted.per}`;
  const fix = isBudget
    ? `raise the budget of session ${exhausted?.payer ?? sessionId}${grant}, then ${resume}`
    : isWanting && error?.fix !== undefined
      ? `${error.fix}. Then ${resume}`
      : resume;
  const message = `session ${sessionId} is paused (${pauseReason})${why}`;
  const code = isBudget ? "budget_exceeded" : isWanting ? codeOf(error) : undefined;
  return new HoldfastError(code ?? "session_paused", message, { fix });
}

export function sessionMoved(sessionId: string, to: string): ConflictError {
  return new ConflictError("session_moved", `session ${sessionId} has moved to another storage`, {
    at: to,
    fix: `send the request there; repeat an interrupted move to finish it. If that place no longer exists, \`holdfast export ${sessionId}\` and \`holdfast import FILE --session OTHER\` make a copy here`,
  });
}

export function sessionNotFound(sessionId: string): NotFoundError {
  return new NotFoundError("session_not_found", `there is no session ${sessionId}`, {
    fix: "ids are case-sensitive; `holdfast list` shows them",
  });
}
