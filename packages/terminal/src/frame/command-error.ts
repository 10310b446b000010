// Errors that only the command has, and every error as the command shows it.

import {
  defined,
  ERROR_TABLE,
  HoldfastError,
  stackOf,
  toError,
  type ErrorCode,
  type ErrorDetails,
  type RecordedError,
} from "@holdfast/core";
import { jsonLine, plain } from "./plain-text.ts";

/** Exit codes of errors that only the command has; all others are in `ERROR_TABLE`. */
export const COMMAND_ERRORS = {
  ambiguous: 2,
  secret_arg: 2,
  task_not_found: 4,
  secret_not_found: 4,
} as const;

/** An error of the command line itself. */
export class CommandError extends Error {
  override name = "CommandError";
  readonly code: keyof typeof COMMAND_ERRORS;
  readonly details: ErrorDetails;

  constructor(code: keyof typeof COMMAND_ERRORS, message: string, details: ErrorDetails = {}) {
    super(message, { cause: details.cause });
    this.code = code;
    this.details = details;
  }
}

/** An error as it is shown: which of the details there are, and what the process ends with. */
export interface ShownError {
  readonly code: string;
  readonly exitCode: number;
  readonly message: string;
  readonly at: string | undefined;
  readonly got: string | undefined;
  readonly expected: string | undefined;
  readonly fix: string | undefined;
  readonly cause: string | undefined;
  readonly stack: string | undefined;
}

export function shownError(given: unknown): ShownError {
  const thrown = toError(given);
  if (thrown instanceof CommandError) {
    const { code, message, details, stack } = thrown;
    return { ...shown(code, COMMAND_ERRORS[code], message, details), cause: undefined, stack };
  }
  if (HoldfastError.is(thrown)) {
    const { code, message, cause, stack } = thrown;
    // Structural: it may come from another copy of the package, where a field is missing.
    const { at, got, expected, fix } = thrown as Partial<ErrorDetails>;
    const details = defined({ at, got, expected, fix });
    const { shownCode, exitCode } = kindOf(isFarAway(code, at) ? "unavailable" : code, cause);
    // A recorded error has no stack. Every other cause is part of the error, and is shown on request.
    const behind = cause instanceof Error ? stackOf(cause) : undefined;
    return {
      ...shown(shownCode, exitCode, message, details),
      cause: cause instanceof Error ? undefined : causesOf(cause, message),
      stack: behind === undefined ? stack : `${stack ?? ""}\nbecause of ${behind}`,
    };
  }
  const { message, name, stack } = thrown;
  const fix = "report this defect of Holdfast, with the output of `--debug`";
  return {
    ...shown("internal", ERROR_TABLE.internal.exit, message || name, { fix }),
    cause: undefined,
    stack,
  };
}

/** Storage that is another process's, over the network: nothing is wrong with a file here. */
function isFarAway(code: string, at: string | undefined): boolean {
  return code === "storage_unavailable" && /^https?:/.test(at ?? "");
}

/** An error as one process reports it to another, which throws it again. */
export type ReportedError = Pick<ShownError, "code" | "message" | "at" | "got" | "expected" | "fix">;

export function reportedError(error: unknown): ReportedError {
  const { code, message, at, got, expected, fix } = shownError(error);
  return { code, message, at, got, expected, fix };
}

/** An error that another process reported, as if it had been thrown here. */
export function errorOf({ code, message, ...details }: ReportedError): HoldfastError {
  return new HoldfastError(code as HoldfastError["code"], message, defined(details));
}

/** The commands that an error names, as this call was made. */
export function asCalled(error: ShownError, called: string): ShownError {
  const named = (text: string | undefined): string | undefined =>
    text?.replaceAll("`holdfast ", `\`${called} `);
  return {
    ...error,
    message: named(error.message) ?? "",
    fix: named(error.fix),
    expected: named(error.expected),
  };
}

/** One paragraph: what, and below it where, what was there, what was expected, and how to mend it. */
export function errorText(error: ShownError, debug: boolean): string {
  const { code, message, at, got, expected, fix, cause, stack } = error;
  const lines = [`error[${publicCode(code)}]: ${indented(message)}`];
  for (const [label, text] of Object.entries({ at, got, expected, cause, fix })) {
    if (text !== undefined && text !== "") lines.push(`  ${label}: ${indented(text)}`);
  }
  if (debug && stack !== undefined) lines.push("", plain(stack));
  return lines.join("\n");
}

export function errorJson(error: ShownError, debug: boolean): string {
  const { code, stack, ...rest } = error;
  return jsonLine({ code: publicCode(code), ...rest, ...(debug && stack !== undefined ? { stack } : {}) });
}

/** An error's code as the command shows it: `session_not_found` in code is `E_SESSION_NOT_FOUND`. */
export type PublicCode = `E_${Uppercase<ErrorCode | keyof typeof COMMAND_ERRORS>}`;

function publicCode(code: string): string {
  return `E_${code.toUpperCase()}`;
}

function shown(code: string, exitCode: number, message: string, { at, got, expected, fix }: ErrorDetails) {
  return { code, exitCode, message, at, got, expected, fix };
}

/**
 * A failed session is exit code 1. Another code stands for a reason that is no bug of the agent: a key, a
 * server, a policy, a budget.
 */
function kindOf(code: keyof typeof ERROR_TABLE, cause: unknown): { shownCode: string; exitCode: number } {
  if (code === "session_failed") {
    for (const { code: recorded } of chainOf(cause)) {
      const shownCode = FIXED_BY_OTHERS.find((candidate) => candidate === recorded);
      if (shownCode !== undefined) return { shownCode, exitCode: ERROR_TABLE[shownCode].exit };
    }
  }
  return { shownCode: code, exitCode: ERROR_TABLE[code].exit };
}

const FIXED_BY_OTHERS = [
  "model_auth",
  "model_unavailable",
  "policy_denied",
  "budget_exceeded",
  "unknown_price",
] as const;

/** The causes of an error that its message does not contain yet. */
function causesOf(cause: unknown, message: string): string | undefined {
  const texts = chainOf(cause)
    .map((error) =>
      error.name === undefined ? (error.message ?? "") : `${error.name}: ${error.message ?? ""}`,
    )
    .filter((text) => text !== "" && !message.includes(text.replace(/^\w+: /, "")));
  return texts.length === 0 ? undefined : texts.join("; because of ");
}

function chainOf(cause: unknown): Partial<RecordedError>[] {
  const chain: Partial<RecordedError>[] = [];
  for (
    let at = cause;
    typeof at === "object" && at !== null && chain.length < 5;
    at = (at as RecordedError).cause
  ) {
    chain.push(at);
  }
  return chain;
}

/** Messages may hold an agent's text: cleaned, bounded, and with their lines below their label. */
function indented(text: string): string {
  const clean = plain(
    text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}... (${text.length} characters)` : text,
  );
  return clean.trimEnd().replace(/\n/g, "\n    ");
}

const TEXT_MAX = 4_096;
