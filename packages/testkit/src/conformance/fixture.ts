// A storage per test, and short ways to say what the tests are about: a session that is claimed, and batches
// that continue its journal. Knows nothing of any adapter.

import {
  type AgentStorage,
  type Amount,
  type Budget,
  type Change,
  type ChangeResult,
  type Charge,
  type CommitBatch,
  type CreateSession,
  defined,
  type Effect,
  type JournalRecord,
  type NewEntry,
  type ReleaseClaim,
  type RequestCancel,
  type SendSignal,
  type Session,
  type SessionPatch,
  type SessionStatus,
} from "@holdfast/core";
import { afterEach, beforeEach, expect } from "vitest";
import type { StorageSubject } from "./storage-subject.ts";

export const LEASE_MS = 1_000;

/** Any refusal of a batch for what it says. */
export const INVALID = expect.objectContaining({
  status: "invalid",
  reason: expect.any(String) as string,
}) as unknown;

/** The answer of a storage to one change. */
type Status = ChangeResult["status"];

export interface Fixture {
  /** The storage of this test. */
  readonly storage: AgentStorage;
  readonly subject: StorageSubject;
  /** One change in a group of its own. */
  apply(change: Change, now?: number): Promise<ChangeResult>;
  /** A session, stored and claimed by `owner` without an end, with an empty journal. */
  createClaimed(sessionId?: string, owner?: string): Promise<Claimant>;
  /** A session in this status, with the claim that brought it there. */
  createIn(status: SessionStatus, sessionId?: string): Promise<Claimant>;
  claim(sessionId: string, owner: string, now: number, leaseMs?: number): Promise<Claimant>;
  /** The row; the session must exist. */
  session(sessionId: string): Promise<Session>;
  /** Everything a reader and a loader can see of a session, for asserting that nothing changed. */
  everything(sessionId: string): Promise<unknown>;
  /**
   * A session made by an effect of another one, under the number of the command that asked, and claimed. With
   * two levels the parent is the child of the level above.
   */
  spawn(parent: Claimant, sessionId: string, more?: Partial<CreateSession>): Promise<Claimant>;
  /** Names and payloads of what a session was told and has not consumed. */
  sent(sessionId: string): Promise<readonly (readonly [name: string, payload: unknown])[]>;
  /** Close the storage and open it again. Only where the subject can. */
  reopen(): Promise<void>;
}

export function useStorage(subject: StorageSubject): Fixture {
  let storage: AgentStorage;
  beforeEach(async () => void (storage = await subject.open()));
  afterEach(() => storage.close());

  const fixture: Fixture = {
    subject,
    get storage() {
      return storage;
    },
    async apply(change, now = 1) {
      const results = await storage.commit([change], now);
      expect(results).toHaveLength(1);
      return results[0]!;
    },
    async createClaimed(sessionId = "ses-1", owner = "owner-1") {
      const created = await fixture.apply(creating(sessionId, { claimFor: { owner, leaseMs: Infinity } }), 0);
      expect(created).toEqual({ status: "created", token: expect.any(Number) });
      return new Claimant(fixture, sessionId, tokenOf(created));
    },
    async createIn(status, sessionId = "ses-1") {
      const claimant = await fixture.createClaimed(sessionId);
      if (status === "submitted") return claimant;
      if (status === "cancelling") {
        expect(await fixture.apply(cancelling(sessionId))).toMatchObject({ status: "requested" });
      } else {
        expect(await claimant.commit({ session: PATCH_TO[status] })).toMatchObject({ status: "committed" });
      }
      expect((await fixture.session(sessionId)).status).toBe(status);
      return claimant;
    },
    async claim(sessionId, owner, now, leaseMs = LEASE_MS) {
      const claimed = await storage.claim({ sessionId, owner, now, leaseMs });
      expect(claimed, `${sessionId} is not to be claimed by ${owner} at ${now}`).toMatchObject({
        status: "claimed",
      });
      const { nextSeq, entryCount } = await fixture.session(sessionId);
      return new Claimant(fixture, sessionId, tokenOf(claimed), nextSeq, entryCount);
    },
    async session(sessionId) {
      const session = await storage.reader.session(sessionId);
      expect(session, `there is no session ${sessionId}`).toBeDefined();
      return session!;
    },
    async everything(sessionId) {
      const { reader } = storage;
      return {
        loaded: await storage.load(sessionId),
        session: await reader.session(sessionId),
        journal: await reader.journal(sessionId, 0, 10_000),
        entries: await reader.entries(sessionId, 0, 10_000),
        signals: await reader.pendingSignals(sessionId),
      };
    },
    async spawn(parent, sessionId, more = {}) {
      const child = parent.nextSeq;
      const effect = creating(sessionId, {
        parent: { sessionId: parent.sessionId, child, onEnd: "cancel" },
        ...more,
      });
      expect(await parent.commit({ records: [spawning("agent")], effects: [effect] })).toMatchObject({
        status: "committed",
      });
      return fixture.claim(sessionId, "owner-1", 1, Infinity);
    },
    async sent(sessionId) {
      const signals = await storage.reader.pendingSignals(sessionId);
      return signals.map(({ name, payload }) => [name, JSON.parse(payload ?? "null")] as const);
    },
    async reopen() {
      expect(subject.reopen, "only durable adapters are opened again").toBeDefined();
      storage = await subject.reopen!(storage);
    },
  };
  return fixture;
}

/** Patches that lead from `submitted` to a status. */
export const PATCH_TO: { readonly [status in Exclude<SessionStatus, "cancelling">]: SessionPatch } = {
  submitted: { status: "submitted" },
  working: { status: "working" },
  waiting: { status: "waiting", waits: [{ type: "signal", id: 0, name: "go" }] },
  input_required: {
    status: "input_required",
    waits: [{ type: "input", id: 0, name: "answer:0", prompt: "Go on?" }],
  },
  paused: { status: "paused", pauseReason: "by_user" },
  completed: { status: "completed", output: '"done"' },
  failed: { status: "failed", error: { name: "Error", message: "no" } },
  cancelled: { status: "cancelled" },
};

export const ENDINGS = ["completed", "failed", "cancelled"] as const satisfies readonly SessionStatus[];

export type NewRecord = JournalRecord extends infer R
  ? R extends JournalRecord
    ? Omit<R, "seq" | "id">
    : never
  : never;

export interface Parts {
  readonly records?: readonly NewRecord[];
  /** Appended behind the records, each with its `append_entry`. */
  readonly entries?: readonly Pick<NewEntry, "content" | "parent">[];
  readonly consumed?: readonly string[];
  readonly session?: SessionPatch;
  readonly effects?: readonly Effect[];
  readonly charges?: readonly Charge[];
}

/** One holder of a claim, and how long it believes the journal to be. */
export class Claimant {
  readonly #fixture: Fixture;
  readonly sessionId: string;
  readonly token: number;
  nextSeq: number;
  entryCount: number;

  constructor(fixture: Fixture, sessionId: string, token: number, nextSeq = 0, entryCount = 0) {
    this.#fixture = fixture;
    this.sessionId = sessionId;
    this.token = token;
    this.nextSeq = nextSeq;
    this.entryCount = entryCount;
  }

  /** The batch that would continue the journal with these parts. */
  batch(parts: Parts): CommitBatch {
    let seq = this.nextSeq;
    const records = (parts.records ?? []).map(
      (record) => ({ ...record, id: seq, seq: seq++ }) as JournalRecord,
    );
    const entries = (parts.entries ?? []).map((entry, i): NewEntry => {
      return { ...entry, id: seq++, index: this.entryCount + i, role: "user", turn: 0 };
    });
    const appended = entries.map((entry): JournalRecord => {
      return { type: "append_entry", seq: entry.id, id: entry.id, role: entry.role, hash: `h${entry.id}` };
    });
    const { sessionId, token, nextSeq: firstSeq } = this;
    const { consumed = [], session, effects, charges } = parts;
    const more = defined({ session, effects, charges });
    return {
      type: "commit_batch",
      sessionId,
      token,
      firstSeq,
      records: [...records, ...appended],
      entries,
      consumed,
      ...more,
    };
  }

  /** Commit it, and go on behind it if it was committed. */
  async commit(parts: Parts, now = 1): Promise<ChangeResult> {
    const batch = this.batch(parts);
    const result = await this.#fixture.apply(batch, now);
    if (result.status === "committed") this.follow(batch);
    return result;
  }

  /** Go on behind a batch that was committed in some other way. */
  follow(batch: CommitBatch): void {
    this.nextSeq = batch.firstSeq + batch.records.length;
    this.entryCount += batch.entries.length;
  }

  release(): Promise<ChangeResult> {
    return this.#fixture.apply(releasing(this));
  }
}

export function creating(sessionId: string, more: Partial<CreateSession> = {}): CreateSession {
  const agent = { name: "agent", version: "1" };
  return {
    type: "create_session",
    sessionId,
    agent,
    input: '{"n":1}',
    seed: 7,
    flags: 0,
    format: 1,
    ...more,
  };
}

export function signalling(sessionId: string, signalId: string, more: Partial<SendSignal> = {}): SendSignal {
  return { type: "send_signal", sessionId, signalId, name: "go", payload: '{"ok":true}', ...more };
}

export function cancelling(sessionId: string, more: Partial<RequestCancel> = {}): RequestCancel {
  return { type: "request_cancel", sessionId, mode: "graceful", graceMs: 10_000, ...more };
}

export function releasing({ sessionId, token }: Pick<Claimant, "sessionId" | "token">): ReleaseClaim {
  return { type: "release_claim", sessionId, token };
}

export const STARTED: NewRecord = { type: "started", at: 1 };

export function scheduling(kind: string, payload?: string): NewRecord {
  return { type: "schedule_task", kind, hash: `hash of ${kind}`, payload };
}

export function spawning(agent: string): NewRecord {
  return { type: "spawn_child", agent, hash: `hash of ${agent}` };
}

export function checkpointing(state: string, base?: number): NewRecord {
  const built = base === undefined ? {} : { base };
  return { type: "checkpoint", at: 1, turn: 1, entryCount: 0, ...built, payload: state };
}

export function pausing(sessionId: string): Change {
  return { type: "pause_session", sessionId };
}

export function resuming(sessionId: string): Change {
  return { type: "resume_session", sessionId };
}

export function raising(sessionId: string, limits: Budget): Change {
  return { type: "set_budget", sessionId, limits };
}

export function tokens(count: number): Amount {
  return { tokens: count, costMicroUsd: 0, steps: 0, turns: 0 };
}

export function reserving(task: number, count: number): Charge {
  return { type: "reserve", task, amount: tokens(count) };
}

export function settling(task: number, count: number): Charge {
  return { type: "settle", task, used: tokens(count) };
}

export function statuses(results: readonly ChangeResult[]): readonly Status[] {
  return results.map(({ status }) => status);
}

export function tokenOf(result: { readonly status: string; readonly token?: number }): number {
  expect(result.token, `${result.status} came without a token`).toBeTypeOf("number");
  return result.token!;
}
