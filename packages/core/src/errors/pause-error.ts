// `PauseError`: the error by which a task pauses its session.

import { HoldfastError, type ErrorDetails } from "./errors.ts";
import type { ErrorCode } from "./error-table.ts";

/**
 * A task cannot do its work until a person has repaired something, or until a time. Thrown by a task, it
 * pauses the session, and the task runs again when the session resumes. It fails a task that may have no
 * other attempt.
 */
export class PauseError extends HoldfastError {
  override name = "PauseError";
  readonly pause: PauseRequest;

  constructor(
    code: ErrorCode,
    message: string,
    { pause, ...details }: ErrorDetails & { pause: PauseRequest },
  ) {
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
  | { readonly reason: "auth_required" };
