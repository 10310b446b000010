// How a supervised process ended: the type `ProcessEnd` and its text for people. `UrgentAbortError` ends one
// soon.

/** Aborts the signal of a task whose session was cancelled hard. Processes of the task then get a moment to end. */
export class UrgentAbortError extends DOMException {
  constructor(message: string) {
    super(message, "AbortError");
  }
}

export function isUrgentAbort(signal: AbortSignal): boolean {
  return signal.reason instanceof UrgentAbortError;
}

/** The last means that a stop needed: the request of the caller, or a signal. */
export type StopMeans = "request" | "SIGTERM" | "SIGKILL";

/** How the program itself ended, also where it was stopped. */
export type ProcessExit = Extract<ProcessEnd, { readonly type: "exit" | "signal" }>;

/** Why a process ended. Only `exit` and `signal` were not decided by its supervisor. */
export type ProcessEnd =
  | { readonly type: "exit"; readonly exitCode: number }
  | { readonly type: "signal"; readonly signal: string }
  /** It was ended because its time was over. */
  | { readonly type: "timeout"; readonly timeoutMs: number }
  /** It was ended by `stop`, or by the abort of its signal (reason `aborted`). */
  | {
      readonly type: "stopped";
      readonly reason: string;
      readonly means: StopMeans;
      /** Absent for a process that the system did not report as ended. */
      readonly exit?: ProcessExit;
    }
  /** It closed its standard output, continued to run, and was ended. */
  | { readonly type: "output_closed" }
  /** It never ran. */
  | { readonly type: "not_started"; readonly code: string; readonly message: string };

export function describeProcessEnd(end: ProcessEnd): string {
  switch (end.type) {
    case "exit":
      return `exit code ${end.exitCode}`;
    case "signal":
      return `ended by ${end.signal}`;
    case "timeout":
      return `ended after its time of ${end.timeoutMs} ms`;
    case "stopped":
      return `stopped (${end.reason}) by ${end.means === "request" ? "request" : end.means}`;
    case "output_closed":
      return "ended because it closed its standard output";
    case "not_started":
      return `not started: ${end.message}`;
  }
}

/** The end of a process that the system refused to start. */
export function notStarted(error: unknown, program: string, isCwdThere: boolean, cwd: string): ProcessEnd {
  const { code = "UNKNOWN", message } = error as NodeJS.ErrnoException;
  return { type: "not_started", code, message: explain(code, message) };

  function explain(errorCode: string, original: string): string {
    switch (errorCode) {
      case "ENOENT":
        // The system reports a missing directory as a missing program.
        return isCwdThere ? `there is no program "${program}" on the PATH` : `there is no directory "${cwd}"`;
      case "EACCES":
        return `"${program}" may not be executed`;
      case "E2BIG":
        return "the command or its environment is too long for this system";
      default:
        return original;
    }
  }
}
