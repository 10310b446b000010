// `PauseError`: the error by which a task pauses its session.

import { HoldfastError, UsageError, type ErrorDetails } from "./errors.ts";
import { ERROR_TABLE, type ErrorCode } from "./error-table.ts";

/**
 * A task cannot do its work until a person has repaired something, or until a time. Thrown by a task, it
 * pauses the session, and the task runs again when the session resumes. It fails a task that may have no
 * other attempt.
 *
 * @throws UsageError for a code or a request that Holdfast does not know: the task would fail and be tried
 * again instead of pausing its session.
 */
export class PauseError extends HoldfastError {
  override name = "PauseError";
  readonly pause: PauseRequest;

  constructor(
    code: ErrorCode,
    message: string,
    { pause, ...details }: ErrorDetails & { pause: PauseRequest },
  ) {
    refuseUnknown(code, pause);
    super(code, message, details);
    this.pause = pause;
  }
}

/** Why a task wants its session paused. */
export type PauseRequest =
  /** A provider's usage limit. */
  | {
      readonly reason: "quota";
      /** The name of what is limited. */
      readonly pool: string;
      /** When the provider allows more again. Epoch milliseconds. */
      readonly resetsAt?: number;
      /** Whether the user asked that the session continues then without a person. */
      readonly resumeAtReset?: boolean;
    }
  /** Refused or expired credentials. The error names whose they are, and how they are renewed. */
  | { readonly reason: "auth_required" }
  /** Something else that a person has to correct. The error names it. */
  | { readonly reason: "agent_fault" };

/** Programs in JavaScript, and values of a type that was asserted, can give anything. */
function refuseUnknown(code: string, pause: Partial<PauseRequest> | undefined): void {
  if (!Object.hasOwn(ERROR_TABLE, code))
    throw new UsageError("a PauseError has a code that is not one of Holdfast's", {
      at: "code",
      got: JSON.stringify(code),
      expected: "a code of docs/errors.md",
      fix: 'give "quota_exceeded" for a usage limit, or "model_auth" for credentials; `pause.reason` says which pause it is',
    });
  const { reason } = pause ?? {};
  if (reason === "auth_required" || reason === "agent_fault") return;
  if (pause?.reason === "quota" && typeof pause.pool === "string") return;
  throw new UsageError("a PauseError has a pause that is not one of Holdfast's", {
    at: "pause",
    got: JSON.stringify(pause),
    expected:
      '{ reason: "auth_required" }, { reason: "agent_fault" }, or { reason: "quota", pool } with the name of what is limited',
    fix: "correct `pause` in the error's third argument",
  });
}
