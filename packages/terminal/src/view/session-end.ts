// How a session that ended is told: its output on standard output, or its error, and the exit code that goes
// with it.

import { decodeJson, defined, HoldfastError, type RecordedError, type Session } from "@holdfast/core";
import { NO_COST } from "@holdfast/proto/view";
import type { Io } from "../frame/command.ts";
import { currentError, isByCancel } from "./describe-session.ts";
import { spentFacts } from "./work/work-status.ts";
import { cancelText } from "./session-tree.ts";
import { duration, jsonText } from "../frame/plain-text.ts";

/**
 * @param tookMs how long it ran here, where that is known.
 * @param hasShown whether a text was shown while the session ran. On a terminal it is not shown twice.
 */
export function showEnd(
  session: Session,
  io: Io,
  tookMs?: number,
  hasShown: (text: string) => boolean = () => false,
): number {
  const { sessionId, status, error, handedOffTo } = session;
  const output = decodeJson(session.output);
  const outcome = resultOf(session);
  if (status === "completed") {
    if (tookMs !== undefined) {
      const facts = [` in ${duration(tookMs)}`, ...spentFacts(session.cost ?? NO_COST)].join("  ");
      io.note(`${io.notes.paint.green(`${io.notes.symbols.done} completed`)}${io.notes.paint.dim(facts)}`);
    }
    const text = output === undefined ? "" : outputText(output);
    io.result(outcome, isOneTerminal(io) && hasShown(text) ? "" : text);
    if (handedOffTo !== undefined)
      io.note(
        `it was handed over to ${handedOffTo}, which continues in its place: ${io.call(`show ${handedOffTo}`)}`,
      );
    return 0;
  }
  // A value that an agent returned after a cancel is its partial output.
  if (io.isJson || output !== undefined) io.result(outcome, output === undefined ? "" : outputText(output));
  if (status === "cancelled") {
    const why = cancelText(session.cancel) ?? (isByCancel(session) ? undefined : error?.message);
    // A cancel because of the budget has the same code as a pause because of it.
    const code = session.cancel?.cause === "budget_exceeded" ? "budget_exceeded" : "session_cancelled";
    return io.complain(
      new HoldfastError(code, `session ${sessionId} was cancelled${why === undefined ? "" : `: ${why}`}`),
    );
  }
  const fix = fixOf(error);
  return io.complain(
    new HoldfastError(
      "session_failed",
      `session ${sessionId} failed: ${error?.message ?? "for an unknown reason"}`,
      {
        ...defined({ at: error?.at ?? error?.cause?.at, got: error?.got, expected: error?.expected }),
        fix: `${fix === undefined ? "" : `${fix}; `}run \`${io.call(`show ${sessionId}`)}\` or \`${io.call(`logs ${sessionId}`)}\` to see what it did`,
        cause: error,
      },
    ),
  );
}

/** Whether notes and results are read at the same place. */
function isOneTerminal({ notes, results }: Io): boolean {
  return Number.isFinite(notes.columns) && Number.isFinite(results.columns);
}

/** The fix of an error, or of the first of its causes that has one. */
function fixOf(error: RecordedError | undefined): string | undefined {
  return error === undefined ? undefined : (error.fix ?? fixOf(error.cause));
}

/** The end of a session that had ended before it was asked for. */
export function showEndedBefore(session: Session, io: Io): number {
  io.note(io.notes.paint.dim(`session ${session.sessionId} has already ended`));
  return showEnd(session, io);
}

/** The last line of `run --json`, and all of `result --json`. */
export function resultOf(session: Session, resume?: string, pausedBelow: readonly Session[] = []): object {
  const { sessionId, status, pauseReason, waits } = session;
  const error = currentError(session);
  return {
    type: "result",
    sessionId,
    status,
    ...defined({ pauseReason }),
    ...(status === "completed" || session.output !== undefined
      ? { output: decodeJson(session.output) ?? null }
      : {}),
    ...defined({ error }),
    ...(waits.length === 0 ? {} : { waits }),
    ...defined({ resume }),
    ...(pausedBelow.length === 0
      ? {}
      : {
          pausedBelow: pausedBelow.map((below) => ({
            sessionId: below.sessionId,
            pauseReason: below.pauseReason,
            ...defined({ error: below.error }),
          })),
        }),
  };
}

/** Text as it is, all else as JSON. */
function outputText(output: unknown): string {
  return typeof output === "string" ? output : jsonText(output);
}
