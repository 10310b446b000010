// A storage that fails on purpose: any adapter, with faults planned by `commit` call.
//
//   - A fault hits one call and is over, or kills: from then on this wrapper is a dead process. Calls in
//     flight and later calls never settle, and no listener is notified. The storage inside stays alive, as a
//     file would.
//   - Calls are counted from 1 in their order. Failed calls count, too, so that a run can be repeated with a
//     crash at each call.
//   - A dead process is reported as such (`died`) after its writes in flight have reached the storage inside
//     or failed. A claim that the storage grants later would belong to nobody, and the next life would wait
//     for its lease to run out.
//   - Without a plan it is the storage inside: it passes the same conformance suite.

import {
  type AgentStorage,
  type Arrival,
  type Change,
  type ChangeResult,
  type Notice,
  type StorageReader,
  storageWith,
  UnavailableError,
} from "@holdfast/core";

/**
 * `before`: refused with an `UnavailableError`, nothing was applied. `reply_lost`: applied, and then the same
 * error, so the caller does not know. `crash_before`, `crash_after`: dies without having applied it, dies
 * having applied it and without an answer. `torn`: dies in the middle of a write, of which a storage with one
 * transaction per call must show nothing.
 */
export type FaultKind = "before" | "reply_lost" | "crash_before" | "crash_after" | "torn";

export interface CommitCall {
  /** From 1. */
  readonly number: number;
  readonly changes: readonly Change[];
  /** One line for people: which changes to which sessions. */
  readonly description: string;
}

export interface FaultPlan {
  /** Asked once per call, before it does anything. Must not throw. */
  readonly fault?: (call: CommitCall) => FaultKind | undefined;
  /** Awaited before a call reaches the storage inside. Calls may overtake each other when it answers out of order. */
  readonly latency?: (call: CommitCall) => Promise<void>;
  /**
   * For `torn`: damage the tail of what the storage inside wrote last, for example cut the last frame of its
   * log. Called once, after the call was applied. Without it a torn call is one of which nothing was written.
   */
  readonly tear?: (inner: AgentStorage) => Promise<void>;
}

export interface FaultyStorage extends AgentStorage {
  /** Every `commit` so far, in order. */
  readonly calls: readonly CommitCall[];
  readonly isDead: boolean;
  /** Settles when it is dead and nothing of it reaches the storage inside any more, which may be opened again then. */
  readonly died: Promise<void>;
  /** Die now, between two calls. */
  kill(): void;
}

export function faultyStorage(storage: AgentStorage, plan: FaultPlan = {}): FaultyStorage {
  const calls: CommitCall[] = [];
  const inFlight = new Set<Promise<unknown>>();
  const inner = withWritesIn(inFlight, storage);
  const { promise: died, resolve: reportDeath } = Promise.withResolvers<void>();
  let isDead = false;

  /** Passes on what the storage answers, unless by then nobody is there to hear it. */
  async function whileAlive<T>(ask: () => Promise<T>): Promise<T> {
    if (isDead) return never();
    try {
      const answer = await ask();
      return isDead ? never<T>() : answer;
    } catch (error) {
      if (isDead) return never();
      throw error;
    }
  }

  async function die(lastAct: () => Promise<unknown>): Promise<never> {
    isDead = true; // First: nothing of the last act may be heard of.
    try {
      await lastAct();
    } finally {
      await Promise.allSettled(inFlight); // A claim that is granted later would belong to nobody.
      reportDeath();
    }
    return never();
  }

  async function commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    const call = { number: calls.length + 1, changes, description: describeChanges(changes) };
    calls.push(call);
    const fault = plan.fault?.(call);
    await plan.latency?.(call);
    if (isDead) return never();
    switch (fault) {
      case undefined:
        return inner.commit(changes, now);
      case "before":
        throw unavailable(call, "not applied");
      case "reply_lost":
        await inner.commit(changes, now);
        throw unavailable(call, "its reply was lost");
      case "crash_before":
        return die(async () => {});
      case "crash_after":
        return die(() => inner.commit(changes, now));
      case "torn":
        return die(async () => {
          if (plan.tear === undefined) return;
          await inner.commit(changes, now);
          await plan.tear(storage);
        });
    }
  }

  const reader: StorageReader = {
    sessions: (query) => whileAlive(() => inner.reader.sessions(query)),
    counts: (query) => whileAlive(() => inner.reader.counts(query)),
    session: (sessionId) => whileAlive(() => inner.reader.session(sessionId)),
    journal: (sessionId, fromSeq, limit) => whileAlive(() => inner.reader.journal(sessionId, fromSeq, limit)),
    entries: (sessionId, from, limit) => whileAlive(() => inner.reader.entries(sessionId, from, limit)),
    pendingSignals: (sessionId) => whileAlive(() => inner.reader.pendingSignals(sessionId)),
    seenSignals: (sessionId) => whileAlive(() => inner.reader.seenSignals(sessionId)),
    schedules: () => whileAlive(() => inner.reader.schedules()),
    document: (collection, id) => whileAlive(() => inner.reader.document(collection, id)),
    documents: (query) => whileAlive(() => inner.reader.documents(query)),
    audit: (query) => whileAlive(() => inner.reader.audit(query)),
  };

  const { follow } = inner;
  const mortal = storageWith(inner, {
    name: `faulty ${inner.name}`,
    reader,
    commit: (changes, now) => whileAlive(() => commit(changes, now)),
    claim: (claim) => whileAlive(() => inner.claim(claim)),
    renew: (renewal) => whileAlive(() => inner.renew(renewal)),
    heldClaims: (query) => whileAlive(() => inner.heldClaims(query)),
    load: (sessionId) => whileAlive(() => inner.load(sessionId)),
    arrivals: (sessionId, after) => whileAlive(() => inner.arrivals(sessionId, after)),
    conversation: (sessionId, leaf) => whileAlive(() => inner.conversation(sessionId, leaf)),
    due: (query) => whileAlive(() => inner.due(query)),
    subscribe: (listener: (arrival: Arrival) => void) => {
      return inner.subscribe((arrival) => {
        if (!isDead) listener(arrival);
      });
    },
    ...(follow === undefined
      ? {}
      : {
          follow: (sessionId: string | undefined, onNotice: Notice) =>
            follow.call(inner, sessionId, (isActive, session) => {
              if (!isDead) onNotice(isActive, session);
            }),
        }),
    // A dead process closes nothing. It settles all the same, so that a test can tidy up without knowing.
    close: async () => {
      if (!isDead) await inner.close();
    },
  });
  return {
    ...mortal,
    calls,
    died,
    get isDead() {
      return isDead;
    },
    kill: () => void die(async () => {}),
  };
}

/** The same storage, whose unanswered writes are in this set. */
function withWritesIn(inFlight: Set<Promise<unknown>>, storage: AgentStorage): AgentStorage {
  const noted = async <T>(write: Promise<T>): Promise<T> => {
    inFlight.add(write);
    try {
      return await write;
    } finally {
      inFlight.delete(write);
    }
  };
  return storageWith(storage, {
    commit: (changes, now) => noted(storage.commit(changes, now)),
    claim: (claim) => noted(storage.claim(claim)),
    renew: (renewal) => noted(storage.renew(renewal)),
  });
}

/** The answer of a dead process, which never comes. */
function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}

function unavailable(call: CommitCall, what: string): UnavailableError {
  return new UnavailableError(
    "storage_unavailable",
    `planned fault: commit ${call.number} (${call.description}): ${what}`,
  );
}

/** The changes of a commit, in one line. */
export function describeChanges(changes: readonly Change[]): string {
  return changes.map(describeChange).join("; ");
}

function describeChange(change: Change): string {
  const { type } = change;
  switch (change.type) {
    case "create_session":
    case "import_session":
    case "import_tree":
    case "pause_session":
    case "resume_session":
    case "set_budget":
    case "set_title":
    case "release_claim":
    case "delete_session":
    case "begin_move":
    case "end_move":
      return `${type} ${change.sessionId}`;
    case "send_signal":
      return `${type} ${change.sessionId} ${change.name}`;
    case "request_cancel":
      return `${type} ${change.sessionId} ${change.mode}`;
    case "commit_batch": {
      const records = change.records.map((record) => record.type).join(", ");
      const becomes = change.session === undefined ? "" : ` → ${change.session.status}`;
      const effects = (change.effects ?? []).map((effect) => `; with ${describeChange(effect)}`).join("");
      return `${type} ${change.sessionId} at ${change.firstSeq} [${records}]${becomes}${effects}`;
    }
    case "remove_ended":
      return `${type} ${change.sessionIds.join(" ")}`;
    case "trim_audit":
      return type;
    case "put_schedule":
      return `${type} ${change.schedule.scheduleId}`;
    case "remove_schedule":
    case "fire_schedule":
      return `${type} ${change.scheduleId}`;
    case "put_document":
    case "remove_document":
      return `${type} ${change.collection} ${change.id}`;
    case "audited": {
      const what = change.change === undefined ? "" : `: ${describeChange(change.change)}`;
      return `${type} ${change.audit.action} ${change.audit.object}${what}`;
    }
  }
}
