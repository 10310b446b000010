// `reportOutcome` shows the end of a session. When the command leaves a session that has not ended, it shows
// the reason and the commands that continue it.

import { HoldfastError, isEnded, type Session } from "@holdfast/core";
import { type Agent, leftAs, sessionPaused, type Settled } from "@holdfast/runtime";
import { STOP_EXIT, type Io, type StopSignal } from "@holdfast/terminal/frame/command";
import type { Database } from "@holdfast/place/project";
import { accountText } from "@holdfast/terminal/view/budget-text";
import { isAuthorsFault, messageCommands } from "@holdfast/terminal/view/describe-session";
import type { LiveView } from "@holdfast/terminal/view/work/live-view";
import { movedAway } from "@holdfast/terminal/view/moved-session";
import { pauseAdvice } from "@holdfast/terminal/view/pause-advice";
import { resultOf, showEnd, showEndedBefore } from "@holdfast/terminal/view/session-end";
import { adviceBelow, type PausedBelow } from "@holdfast/terminal/view/stuck-tree";
import { awaitsRequest, type Parks } from "./parks.ts";

/** Why the command leaves the session. */
export type Outcome =
  | { readonly type: "settled"; readonly settled: Settled }
  | { readonly type: "stopped"; readonly signal: StopSignal }
  | { readonly type: "left" }
  /** The process that ran it has ended. */
  | { readonly type: "abandoned" }
  | { readonly type: "parked"; readonly paused: PausedBelow | undefined }
  | { readonly type: "stuck"; readonly paused: PausedBelow };

export interface OutcomeFacts {
  /** The session as it is left; `undefined` when storage has it no more. */
  readonly session: Session | undefined;
  /** The session as the command found it. */
  readonly before: Session | undefined;
  readonly options: {
    readonly sessionId: string;
    /** Without one the session runs elsewhere. */
    readonly agent: Agent | undefined;
    /** Without one the session is ephemeral. */
    readonly database: Database | undefined;
    readonly parks: Parks;
  };
  /** The command that continues the session; `undefined` for an ephemeral one. */
  readonly hint: string | undefined;
  readonly io: Io;
  /** When the command began, by `performance.now()`. */
  readonly startedAt: number;
  readonly view: Pick<LiveView, "hasShown">;
}

/** @returns the exit code. */
export function reportOutcome(outcome: Outcome, facts: OutcomeFacts): number {
  const { session, before, options, hint, io, startedAt, view } = facts;
  io.status(undefined);
  const spent = session?.account === undefined ? "" : accountText(session.account, Date.now());
  if (spent !== "") io.note(io.notes.paint.dim(`spent: ${spent}`));
  // Also when the session ended while the command was being stopped.
  if (session !== undefined && isEnded(session.status))
    return before !== undefined && isEnded(before.status)
      ? showEndedBefore(session, io)
      : showEnd(session, io, performance.now() - startedAt, (text) => view.hasShown?.(text) ?? false);
  const moved = session === undefined ? undefined : movedAway(session, io);
  if (moved !== undefined) return io.complain(moved);
  if (outcome.type === "abandoned" && session !== undefined) return io.complain(noProcess(session, io));
  const below = outcome.type === "stuck" || outcome.type === "parked" ? outcome.paused?.sessions : undefined;
  if (session !== undefined && io.isJson) io.result(resultOf(session, hint, below), "");
  // For scripts: ID=$(holdfast run FILE --park).
  else if (options.parks && outcome.type !== "stopped") io.result({}, options.sessionId);
  const code = reportOpen(outcome, facts);
  if (below === undefined) adviseSession(facts);
  else adviseBelow(below, facts);
  return code;
}

/** The error for a session that was to be followed, and that no process runs. */
export function noProcess({ sessionId, status }: Session, io: Io): HoldfastError {
  return new HoldfastError("conflict", `no process runs session ${sessionId}`, {
    got: `it is ${status}`,
    fix: `run \`${io.call(`resume ${sessionId}`)}\`, which runs it here`,
  });
}

/** Shows the commands that continue the session. */
function adviseSession({ session, options, hint, io }: OutcomeFacts): void {
  if (options.database === undefined) return;
  const resumeCommand =
    options.agent === undefined && session?.status !== "paused" ? "follow it with" : "continue with";
  const label =
    session?.status === "input_required" && options.agent !== undefined
      ? "once it is answered, continue with"
      : session !== undefined && isAuthorsFault(session)
        ? "correct the code, then"
        : resumeCommand;
  const isRemote = options.database.coordinator !== undefined;
  const paused = session === undefined ? undefined : pauseAdvice(session, io, isRemote);
  for (const command of paused?.commands ?? (hint === undefined ? [] : [hint]))
    io.note(`${label}: ${command}`);
  // A raise lets the session run, and starts no process that runs it.
  if (session?.pauseReason === "budget_exceeded" && hint !== undefined) io.note(`and then: ${hint}`);
}

/** Shows the commands for the sessions below, then the one that resumes the tree. */
function adviseBelow(below: readonly Session[], { options, hint, io }: OutcomeFacts): void {
  if (options.database === undefined || hint === undefined) return;
  const isRemote = options.database.coordinator !== undefined;
  const wrong = new Set(below.filter(isAuthorsFault).map(({ sessionId }) => sessionId));
  for (const { sessionId, commands } of adviceBelow(below, io, isRemote)) {
    const label = wrong.has(sessionId) ? "correct the code, then" : "continue with";
    for (const command of commands) io.note(`${label}: ${command}`);
  }
  io.note(`and then: ${hint}`);
}

/** Says why a session that has not ended is left. @returns the exit code. */
function reportOpen(outcome: Outcome, facts: OutcomeFacts): number {
  const { session, options, io } = facts;
  switch (outcome.type) {
    case "parked":
      if (session?.status === "paused") return exitOfPaused(io.complain(sessionPaused(session)));
      if (session !== undefined && awaitsRequest(session)) noteNextRequest(session.sessionId, io);
      io.note(
        `${io.notes.symbols.wait} parked: it waits${options.agent === undefined ? "" : ", and no process runs it"}`,
      );
      return outcome.paused === undefined ? 0 : complainOfBelow(outcome.paused, facts);
    case "left":
    case "abandoned":
      return 0;
    case "stuck":
      return complainOfBelow(outcome.paused, facts);
    case "stopped":
      io.note(
        options.database === undefined
          ? "stopped; the session was ephemeral and is lost"
          : options.agent === undefined
            ? "stopped; the session goes on where it runs"
            : "stopped; committed work is kept",
      );
      return STOP_EXIT[outcome.signal];
    case "settled": {
      const { settled } = outcome;
      const error =
        settled.status === "paused"
          ? asReported(settled.fault, facts)
          : settled.status === "released"
            ? settled.error
            : undefined;
      const code = io.complain(
        error ?? new Error(`the session left this process as "${settled.status}" without a reason`),
      );
      return settled.status === "paused" ? exitOfPaused(code) : code;
    }
  }
}

function noteNextRequest(id: string, io: Io): void {
  io.note(`its next request: ${messageCommands(id, io).join(", or ")}`);
  io.note(`what a build or a review says: ${io.call(`signal ${id} ci @build.log`)} (or review)`);
}

/**
 * A fix that would only name `holdfast resume` is left out: the notes that follow name each command with its
 * `--db` or `--url`.
 */
function asReported(fault: HoldfastError, { session, options }: OutcomeFacts): HoldfastError {
  if (session?.pauseReason !== "by_user" && session?.pauseReason !== "budget_exceeded") return fault;
  const fix = "run it again with a higher --budget; the session was ephemeral and is lost";
  const isGone = options.database === undefined;
  return new HoldfastError(fault.code, fault.message, isGone ? { fix } : {});
}

function complainOfBelow({ sessions: [first] }: PausedBelow, { options, io }: OutcomeFacts): number {
  const left = leftAs(first.sessionId, first);
  const code = left?.status === "paused" ? left.fault.code : "session_paused";
  const cause =
    first.error === undefined ? ` (${first.pauseReason ?? "unknown"})` : `: ${first.error.message}`;
  const why = `session ${options.sessionId} cannot continue: ${first.sessionId} below it is paused${cause}`;
  return exitOfPaused(io.complain(new HoldfastError(code, why)));
}

const RUN_FAILED_EXIT = 1;
const USAGE_EXIT = 2;

/** A wrong use by the agent's code is no wrong use of the command. */
function exitOfPaused(code: number): number {
  return code === USAGE_EXIT ? RUN_FAILED_EXIT : code;
}
