// `SessionClaim`: the right under which a driver commits. It is the claim of a stored session. For a new
// session it is a function that stores the session together with its first batch and returns a claim.

import {
  type Change,
  type ChangeResult,
  type Charge,
  type CommitBatch,
  type Entry,
  type FirstBatch,
  HoldfastError,
  isOutcome,
  type JournalRecord,
  isQueuedTaskAgent,
  type JsonText,
  type Paid,
  resumedFromOf,
  salvaged,
  type SealedSegment,
  type Session,
  type SessionPatch,
  type SessionStatus,
} from "@holdfast/core";
import { faultPatch } from "./session-row.ts";

/** Store a session together with the first batch of its agent. Calls one of the two, once. */
export type Creator = (
  first: FirstBatch,
  onCreated: (token: number, paid: Paid) => void,
  onError: (error: HoldfastError) => void,
) => void;

/** Submit a change to storage. Calls one of the two, once. */
export type Submit = (
  change: Change,
  onResult: (result: ChangeResult) => void,
  onError: (error: HoldfastError) => void,
) => void;

/** A segment with the changes that are committed with it. */
export interface Commit {
  readonly segment: SealedSegment;
  readonly patch: SessionPatch | undefined;
  /** The status for a row without a patch. */
  readonly status: SessionStatus;
  readonly charges: readonly Charge[];
}

export class SessionClaim {
  readonly #sessionId: string;
  readonly #submit: Submit;
  #claim: number | Creator;
  /** The journal of a session that stores only its row, kept so that `enablePersistence` can store it. */
  #unstored: Unstored | undefined;
  /** That journal with the segment that enables persistence, while it is being stored. */
  #flushing: Unstored | undefined;

  /**
   * Whether the session is a queued task: an attempt for another session, which is notified only of its end
   * (K10b).
   */
  readonly #isQueuedTask: boolean;

  constructor(session: Session, claim: number | Creator, submit: Submit) {
    this.#isQueuedTask = isQueuedTaskAgent(session.agent.name);
    this.#sessionId = session.sessionId;
    this.#claim = claim;
    this.#submit = submit;
    if (session.persistence !== undefined)
      this.#unstored = { records: [], entries: [], resumedFrom: resumedFromOf(session) };
  }

  /** Whether only the row and arrivals are stored (K11): then no other process could continue the session. */
  get isMinimal(): boolean {
    return this.#unstored !== undefined && this.#flushing === undefined;
  }

  /** The session's own entries up to one of them, oldest first, when they are not stored. */
  unstored(leaf: number): readonly Entry[] | undefined {
    const unstored = this.#flushing ?? this.#unstored;
    if (unstored === undefined) return undefined;
    const branch: Entry[] = [];
    const byId = new Map(unstored.entries.map((entry) => [entry.id, entry]));
    for (let entry = byId.get(leaf); entry !== undefined; entry = byId.get(entry.parent ?? -1))
      branch.push(entry);
    return branch.reverse();
  }

  /** The token of the claim, once there is one. */
  get token(): number | undefined {
    return typeof this.#claim === "number" ? this.#claim : undefined;
  }

  /** Submit a commit. Calls one of the two callbacks, once. */
  commit(
    commit: Commit,
    onAnswer: (result: ChangeResult) => void,
    onError: (error: HoldfastError) => void,
  ): void {
    const onResult = (result: ChangeResult): void => {
      if (result.status === "committed" && this.#flushing !== undefined) this.#unstored = undefined;
      this.#flushing = undefined;
      if (result.status === "committed" && this.#unstored !== undefined)
        addSegment(this.#unstored, commit.segment);
      // mutant: too-large-not-parked
      if (result.status === "invalid" && result.isTooLarge === true) this.#park(commit, result, onError);
      else onAnswer(result);
    };
    const batch =
      this.#unstored === undefined ? wholeBatch(commit) : this.#minimalBatch(this.#unstored, commit);
    if (batch === undefined) {
      void Promise.resolve().then(() => onResult({ status: "committed", inbox: 0 }));
      return;
    }
    if (typeof this.#claim === "function") {
      const onCreated = (token: number, { admissions, remaining }: Paid): void => {
        this.#claim = token;
        onResult({
          status: "committed",
          inbox: 0,
          ...(admissions === undefined ? {} : { admissions }),
          ...(remaining === undefined ? {} : { remaining }),
        });
      };
      const { firstSeq: _firstSeq, consumed: _consumed, ...first } = batch;
      this.#claim(first, onCreated, onError);
      return;
    }
    const sessionId = this.#sessionId;
    this.#submit({ type: "commit_batch", sessionId, token: this.#claim, ...batch }, onResult, onError);
  }

  /**
   * Storage will always reject a batch that is too large, so retrying it is useless. Pause the session at its
   * last commit instead, for a person to decide; fail a queued task. Then call `onError`.
   */
  #park(
    { segment, status }: Commit,
    { reason }: { readonly reason: string },
    onError: (error: HoldfastError) => void,
  ): void {
    const sessionId = this.#sessionId;
    const error = tooLarge(sessionId, reason, this.#isQueuedTask ? "ask for it again" : "unpause it");
    if (typeof this.#claim === "function") return onError(error);
    const session = faultPatch(error, status === "cancelling" || this.#isQueuedTask);
    const nothing = { records: [], entries: [], consumed: [], session };
    const { firstSeq } = this.#unstored === undefined ? segment : { firstSeq: 0 };
    const parked = { type: "commit_batch", sessionId, token: this.#claim, firstSeq, ...nothing } as const;
    this.#submit(parked, () => onError(error), onError);
  }

  /**
   * K11. The batch of a minimal session: its row, consumed signals and effects. Once persistence is enabled,
   * the whole journal.
   */
  #minimalBatch(unstored: Unstored, commit: Commit): Batch | undefined {
    const { segment, patch, status, charges } = commit;
    const whole = wholeBatch(commit);
    // A paused session stores its journal, so that it resumes once the cause is fixed, and does not start
    // over.
    if (segment.enablesPersistence || patch?.status === "paused") {
      const { resumedFrom } = unstored;
      const records = [...unstored.records];
      const entries = [...unstored.entries];
      this.#flushing = { resumedFrom, records, entries };
      addSegment(this.#flushing, segment);
      const resumed = resumedFrom === undefined ? {} : { resumedFrom };
      const session = { status, ...whole.session, persistence: "full", ...resumed } as const;
      return { ...whole, firstSeq: 0, records, entries, session };
    }
    const isNothing =
      typeof this.#claim === "number" &&
      whole.session === undefined &&
      whole.consumed.length + segment.effects.length + charges.length === 0;
    return isNothing ? undefined : { ...whole, firstSeq: 0, records: [], entries: [] };
  }
}

interface Unstored {
  /** The `resumedFrom` that the agent has read, stored so that a replay of the journal gives the same. */
  readonly resumedFrom: JsonText | undefined;
  readonly records: JournalRecord[];
  readonly entries: Entry[];
}

function addSegment({ records, entries }: Unstored, segment: SealedSegment): void {
  for (const record of segment.records) records.push(record);
  for (const entry of segment.entries) entries.push({ ...entry, createdAt: 0 });
}

type Batch = Omit<CommitBatch, "type" | "sessionId" | "token">;

function wholeBatch({ segment, patch, status, charges }: Commit): Batch {
  const { firstSeq, records, entries, consumed, effects, progress } = segment;
  const session = progress === undefined ? patch : { status, ...patch, progress };
  return {
    firstSeq,
    records,
    entries,
    consumed,
    ...(session === undefined ? {} : { session }),
    ...(effects.length === 0 ? {} : { effects }),
    ...(charges.length === 0 ? {} : { charges }),
  };
}

type Ended = Extract<JournalRecord, { readonly task: number; readonly at: number }>;
/** The notes that say how an attempt ended. */
const ENDS: ReadonlySet<string> = new Set(["attempt_failed", "outcome_kept"]);

/**
 * The part of a change that may still be stored after its claim was abandoned. The tasks that it starts were
 * not begun, so nobody may read that they were. Outcomes of tasks are kept (K6). A minimal session that would
 * store its whole journal stays minimal and begins again from scratch: outcomes without their tasks are no
 * journal.
 */
export function withdrawn(change: Change): Change {
  if (change.type === "create_session") {
    // mutant: abandoned-creation-kept
    const { claimFor, first: _first, ...creation } = change;
    return claimFor === undefined ? change : creation;
  }
  // mutant: abandoned-batch-kept
  if (change.type !== "commit_batch" || change.records.length === 0) return change;
  const { type, sessionId, token, firstSeq, charges = [] } = change;
  // mutant: outcomes-of-minimal-kept
  const isWhole = change.session?.persistence === "full";
  const ended = change.records.filter(
    (record): record is Ended => !isWhole && (isOutcome(record) || ENDS.has(record.type)),
  );
  const { records } = salvaged(firstSeq, ended, Math.max(0, ...ended.map(({ at }) => at)));
  // A hold says that its attempt was begun. It ends with what is stored of that attempt, and not before: the
  // next process would begin it once more.
  const known = new Set(ended.map(({ task }) => task));
  // mutant: hold-settled-alone
  const isKnown = (task: number): boolean => isWhole || known.has(task);
  const settled = charges.filter((charge) => charge.type === "settle" && isKnown(charge.task));
  const kept = { type, sessionId, token, firstSeq, records, entries: [], consumed: [] } as const;
  return settled.length === 0 ? kept : { ...kept, charges: settled };
}

/** @param then the step after the fix. */
export function tooLarge(sessionId: string, reason: string, then: string): HoldfastError {
  const fix = `keep large content in a file and pass its path, or have the coordinator's limits.batchBytes raised; then ${then}`;
  return new HoldfastError("too_large", `session ${sessionId} has too much to store at once: ${reason}`, {
    fix,
  });
}

/** Why a commit that was answered with anything but `committed` was refused. */
export function refusalOf(sessionId: string, result: ChangeResult): HoldfastError {
  if (result.status === "fenced") {
    return new HoldfastError("session_claimed", `session ${sessionId} was claimed by another process`, {
      fix: "it goes on there; nothing of this process was committed after that",
    });
  }
  // The session was ended or cancelled meanwhile.
  const reason = result.status === "invalid" ? result.reason : result.status;
  return new HoldfastError("session_ended", `session ${sessionId} refused a commit: ${reason}`);
}
