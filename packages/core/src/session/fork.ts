// `forkSession`: a session made from another one, its origin. The fork has the origin's state, journal and
// entries up to a point, and an id of its own. Pure.
//
//   fork-1. A point is a standstill: the agent had been told everything before it and had asked for
//       everything that it would. In the journal a point is wherever an event, a note or nothing follows.
//       Each commit ends at a point, and each checkpoint is one.
//   fork-2. The end of the origin is not part of a fork: neither the outcome upon which its agent returned or
//       threw, nor a cancel.
//   fork-3. A fork has no parent, children, signals or spent amounts. Its budget and deadline allow as much
//       as the origin's did at its start. If other sessions paid for the origin, the fork gets the limits of
//       the nearest payer.
//   fork-4. A fork at a checkpoint, or at the beginning, has other randomness from its first line on, and may
//       have another input. Elsewhere the agent's function runs again under the old ids, on the old input
//       and, up to the point, the old randomness. From the `forked` event on the fork has its own.
//
// This file knows no storage: it takes a whole session and returns what `import_session` stores.

import { defined } from "../defined.ts";
import { UsageError } from "../errors/errors.ts";
import type { JsonText } from "../json/json.ts";
import { isCommand, type JournalRecord } from "../journal/record.ts";
import type { Entry, ImportSession } from "./changes.ts";
import { costAfter } from "../budget/session-cost.ts";
import { openAccount, type Budget } from "../budget/budget.ts";
import { titleOf } from "../title.ts";
import { refuseNewerSession, type ForkOrigin, type ParentRef, type Session } from "./session.ts";

/** A session as a whole. */
export interface WholeSession {
  readonly session: Session;
  /** All `session.nextSeq` records, from position 0 on. */
  readonly records: readonly JournalRecord[];
  readonly entries: readonly Entry[];
  /** The limits of the nearest payer, if the session has no budget of its own. */
  readonly payerLimits?: Budget;
}

export interface ForkRequest {
  /** The id of the fork. */
  readonly sessionId: string;
  /**
   * The number of records that the fork begins with, or the `seq` of a checkpoint. When absent, it is the
   * last checkpoint or, without a checkpoint, the last point.
   */
  readonly at?: number;
  /** Another input than the origin's. */
  readonly input?: { readonly text: JsonText | undefined };
  /** The treatment of tasks without an outcome. */
  readonly tasks: ForkOrigin["tasks"];
  readonly seed: number;
  readonly now: number;
}

/**
 * @throws UsageError when there is no such point, or another input is not possible there.
 * @throws HoldfastError `version_unsupported` when a newer Holdfast began the origin.
 */
export function forkSession(origin: WholeSession, request: ForkRequest): ImportSession {
  const { session, payerLimits } = origin;
  refuseNewerSession(session);
  const { sessionId, input, tasks, seed, now } = request;
  const at = findPoint(origin, request.at);
  const records = origin.records.slice(0, at);
  const entries = origin.entries.slice(0, records.filter(({ type }) => type === "append_entry").length);
  const checkpoint = records.findLast((record) => record.type === "checkpoint");
  const baseSeq = checkpoint === undefined ? 0 : checkpoint.seq + 1;
  if (input !== undefined && baseSeq !== at) throw inputTooLate(session, at, baseSeq);
  const parent = parentAt(session, baseSeq);
  const { shared, environment, resumedFrom, account, flags, format, placement } = session;
  const limits = account?.limits ?? payerLimits;
  const allowedMs = session.deadlineAt === undefined ? limits?.ttlMs : session.deadlineAt - session.createdAt;
  const cost = costAfter(undefined, records);
  const title = input === undefined ? session.title : titleOf(input.text);
  const row: Session = {
    sessionId,
    agent: agentOf(session),
    ...defined({ title }),
    input: input === undefined ? session.input : input.text,
    status: at === 0 ? "submitted" : "working",
    waits: [],
    nextSeq: at,
    ...(checkpoint === undefined ? {} : { checkpointSeq: checkpoint.seq }),
    entryCount: entries.length,
    turn: checkpoint?.turn ?? 0,
    inbox: 0,
    seed: seedAt(session, baseSeq),
    flags,
    format,
    depth: 0,
    children: 0,
    payers: limits === undefined ? [] : [sessionId],
    ...(limits === undefined ? {} : { account: openAccount(limits) }),
    ...defined({ cost }),
    ...(allowedMs === undefined ? {} : { deadlineAt: now + allowedMs }),
    ...defined({ shared, environment, placement, resumedFrom }),
    fork: {
      origins: originsAt(session, at),
      at,
      seed,
      tasks,
      ...defined({ parent }),
    },
    createdAt: now,
    updatedAt: now,
  };
  return { type: "import_session", sessionId, session: row, records, entries };
}

/**
 * The origins of a fork that is made here. The part of the journal that a fork itself began with is its
 * origin's, and was done under the origin's ids (fork-4).
 */
function originsAt({ sessionId, fork }: Session, at: number): readonly string[] {
  if (fork === undefined) return [sessionId];
  return at > 0 && at <= fork.at ? fork.origins : [sessionId, ...fork.origins];
}

/** The seed of an incarnation that begins at this position (fork-4). */
export function seedAt({ seed, fork }: Pick<Session, "seed" | "fork">, baseSeq: number): number {
  return fork !== undefined && baseSeq >= fork.at ? fork.seed : seed;
}

/**
 * The parent as an incarnation that begins at this position knows it. A fork has the origin's parent while it
 * runs through the origin's part, and a detached session the parent that it had (detachment-2).
 */
export function parentAt(
  { parent, detachedFrom, fork }: Pick<Session, "parent" | "detachedFrom" | "fork">,
  baseSeq: number,
): ParentRef | undefined {
  return fork !== undefined && baseSeq < fork.at ? fork.parent : (parent ?? detachedFrom);
}

/** Whether a fork is still to be told that it has left the origin's part. */
export function isForkPending(
  { fork }: Pick<Session, "fork">,
  baseSeq: number,
  recorded: readonly JournalRecord[],
): boolean {
  if (fork === undefined || baseSeq >= fork.at) return false;
  return !recorded.some(({ type, seq }) => type === "forked" && seq >= fork.at);
}

/** fork-1. The number of records to begin with. */
function findPoint({ session, records }: WholeSession, wanted: number | undefined): number {
  const end = usableEnd(records);
  if (wanted === undefined) {
    const checkpoint = records.findLast(({ type, seq }) => type === "checkpoint" && seq < end);
    return checkpoint === undefined ? end : checkpoint.seq + 1;
  }
  if (records[wanted]?.type === "checkpoint" && wanted < end) return wanted + 1;
  if (Number.isSafeInteger(wanted) && wanted >= 0 && wanted <= end && isPoint(records, wanted)) return wanted;
  const points = nearest(records, wanted, end);
  throw new UsageError(`session ${session.sessionId} cannot be forked at ${wanted}`, {
    got: describePlace(records, wanted, end),
    expected: `a position between two commits; the nearest: ${points.join(", ")}`,
    fix: `fork it at the nearest one: \`holdfast fork ${session.sessionId} --at ${points.at(-1) ?? 0}\``,
  });
}

function isPoint(records: readonly JournalRecord[], at: number): boolean {
  const next = records[at];
  return next === undefined || !isCommand(next);
}

/** fork-2. */
function usableEnd(records: readonly JournalRecord[]): number {
  const cancelled = records.findIndex(({ type }) => type === "cancel_requested");
  if (cancelled !== -1) return cancelled;
  const last = records.at(-1);
  if (last?.type !== "complete" && last?.type !== "fail") return records.length;
  return records.findLastIndex((record, i) => !isCommand(record) && isPoint(records, i));
}

function describePlace(records: readonly JournalRecord[], at: number, end: number): string {
  if (!Number.isSafeInteger(at) || at < 0 || at > records.length)
    return `${at}, and the journal has ${records.length} records`;
  if (at > end) return `${at}, and from ${end} on the session was ending`;
  return `${at}, in the middle of what the agent did at once`;
}

/** The last point before, and the first point after. */
function nearest(records: readonly JournalRecord[], at: number, end: number): number[] {
  const wanted = Math.min(Math.max(0, Math.floor(at) || 0), end);
  let before = wanted;
  while (!isPoint(records, before)) before--;
  let after = wanted + 1;
  while (after <= end && !isPoint(records, after)) after++;
  return after > end || before === at || at < 0 || Number.isNaN(at) ? [before] : [before, after];
}

function inputTooLate({ sessionId }: Session, at: number, baseSeq: number): UsageError {
  return new UsageError(`a fork of session ${sessionId} at ${at} cannot have another input`, {
    got: `position ${at}: the agent has already acted on the original input before it`,
    expected: baseSeq === 0 ? "position 0" : `a checkpoint (the last one before is at ${baseSeq - 1}), or 0`,
    fix: "omit the input, or fork at such a position",
  });
}

/** Without the trace context, because a fork's spans are not part of the origin's trace. */
function agentOf({ agent: { name, version, file } }: Session): Session["agent"] {
  return { name, version, ...defined({ file }) };
}
