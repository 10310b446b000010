// ST5, against a model: whatever is asked in whatever order, a storage answers and holds what a few lists would.
//
// The model is written from the clauses and shares no code with the rules the adapters use. It knows sessions by what a
// reader can see of them; claims by the tokens it was given.

import {
  isEnded,
  mayBecome,
  type Change,
  type ChangeResult,
  type CommitBatch,
  type SessionStatus,
} from "@holdfast/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  cancelling,
  Claimant,
  creating,
  PATCH_TO,
  releasing,
  scheduling,
  signalling,
  tokenOf,
  type Fixture,
} from "./fixture.ts";

export function modelConformance(fixture: Fixture): void {
  test("ST5: any sequence of changes is answered, and leaves, what one after the other would", async () => {
    let clock = 0;
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(STEP, { minLength: 1, maxLength: 25 }), async (steps) => {
        const model = new Model(fixture, `run-${run++}`);
        for (const step of steps) await model.take(step, (clock += step.pauseMs));
        await model.compareAll();
      }),
      { numRuns: 200 },
    );
  }, 60_000);
}

const PATCHED = [
  "working",
  "waiting",
  "input_required",
  "paused",
  "completed",
  "failed",
  "cancelled",
  "cancelling",
] as const;

const SESSION = fc.nat({ max: 1 });
const NAME = fc.constantFrom("go", "other", "answer:0");

const CHANGE = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant("create"), session: SESSION, claimed: fc.boolean() }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant("signal"),
      session: SESSION,
      id: fc.nat({ max: 7 }),
      key: fc.option(fc.nat({ max: 2 }), { nil: undefined }),
      name: NAME,
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("cancel"), session: SESSION, hard: fc.boolean() }) },
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant("batch"),
      session: SESSION,
      /** Which of the tokens that were given out, from the newest back. */
      token: fc.constantFrom(0, 0, 0, 0, 1),
      at: fc.constantFrom("end", "end", "end", "end", "again", "gap", "overwrite"),
      records: fc.nat({ max: 2 }),
      entries: fc.nat({ max: 2 }),
      consumed: fc.uniqueArray(fc.nat({ max: 7 }), { maxLength: 1 }),
      status: fc.option(fc.constantFrom(...PATCHED), { nil: undefined }),
      wakeInMs: fc.option(fc.nat({ max: 40 }), { nil: undefined }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant("release"), session: SESSION, token: fc.constantFrom(0, 0, 1) }),
  },
);

const STEP = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant("group"),
      pauseMs: fc.nat({ max: 20 }),
      changes: fc.array(CHANGE, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant("claim"),
      pauseMs: fc.nat({ max: 20 }),
      session: SESSION,
      owner: fc.constantFrom("owner-1", "owner-2"),
      leaseMs: fc.constantFrom(30, Infinity),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("due"), pauseMs: fc.nat({ max: 20 }) }) },
);

type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never;
type Asked = typeof CHANGE extends fc.Arbitrary<infer T> ? T : never;
type AskedBatch = Extract<Asked, { type: "batch" }>;

/** A token that was never given out. */
const NO_TOKEN = 1_000_077;

/** What is known of one session. */
interface Known {
  status: SessionStatus;
  readonly journal: CommitBatch["records"][number][];
  readonly entries: string[];
  readonly signals: { id: string; name: string; order: number }[];
  readonly seen: Set<string>;
  waits: readonly string[];
  wakeAt: number | undefined;
  inbox: number;
  deadlineAt: number | undefined;
  /** Given out so far, newest last. */
  readonly tokens: number[];
  owner: string | undefined;
  until: number;
  lastBatch: CommitBatch | undefined;
}

class Model {
  readonly #fixture: Fixture;
  readonly #prefix: string;
  readonly #known = new Map<string, Known>();
  #payloads = 0;

  constructor(fixture: Fixture, prefix: string) {
    this.#fixture = fixture;
    this.#prefix = prefix;
  }

  async take(step: Step, now: number): Promise<void> {
    switch (step.type) {
      case "group":
        return this.#takeGroup(step.changes, now);
      case "claim":
        return this.#takeClaim(step, now);
      case "due":
        return this.#takeDue(now);
    }
  }

  /** A group is made against what is known before it, so that its later changes can contradict its earlier ones. */
  async #takeGroup(asked: readonly Asked[], now: number): Promise<void> {
    const changes = asked.map((change) => this.#make(change, now));
    const results = await this.#fixture.storage.commit(changes, now);
    expect(results).toHaveLength(changes.length);
    changes.forEach((change, i) => {
      const expected = this.#expect(change, now);
      expect(results[i], `${change.type} at ${now}`).toMatchObject(expected);
      if (
        change.type === "create_session" &&
        change.claimFor !== undefined &&
        expected.status === "created"
      ) {
        this.#known
          .get(change.sessionId)!
          .tokens.push(tokenOf(results[i] as { status: string; token?: number }));
      }
    });
  }

  #make(asked: Asked, now: number): Change {
    const sessionId = `${this.#prefix}-ses-${asked.session}`;
    const known = this.#known.get(sessionId);
    switch (asked.type) {
      case "create":
        return creating(
          sessionId,
          asked.claimed ? { claimFor: { owner: "owner-1", leaseMs: Infinity } } : {},
        );
      case "signal": {
        const dedup = asked.key === undefined ? {} : { dedupKey: `key-${asked.key}` };
        return signalling(sessionId, `sig-${asked.id}`, { name: asked.name, ...dedup });
      }
      case "cancel":
        return cancelling(sessionId, { mode: asked.hard ? "hard" : "graceful", graceMs: 30 });
      case "release":
        return releasing({ sessionId, token: known?.tokens.at(-1 - asked.token) ?? NO_TOKEN });
      case "batch":
        return this.#makeBatch(asked, sessionId, known, now);
    }
  }

  #makeBatch(asked: AskedBatch, sessionId: string, known: Known | undefined, now: number): CommitBatch {
    const token = known?.tokens.at(-1 - asked.token) ?? NO_TOKEN;
    if (asked.at === "again" && known?.lastBatch !== undefined) return { ...known.lastBatch, token };
    const length = known?.journal.length ?? 0;
    const shift = asked.at === "gap" ? 1 : asked.at === "overwrite" ? -1 : 0;
    const firstSeq = Math.max(0, length + shift);
    const writer = new Claimant(this.#fixture, sessionId, token, firstSeq, known?.entries.length ?? 0);
    return writer.batch({
      records: Array.from({ length: asked.records }, () => scheduling("a", String(this.#payloads++))),
      entries: Array.from({ length: asked.entries }, () => ({ content: String(this.#payloads++) })),
      consumed: asked.consumed.map((n) => `sig-${n}`),
      ...(asked.status === undefined ? {} : { session: patchTo(asked.status, asked.wakeInMs, now) }),
    });
  }

  /** The answer by the clauses; what it says has happened is done here too. */
  #expect(change: Change, now: number): Partial<ChangeResult> {
    const known = this.#known.get(change.sessionId);
    if (change.type === "create_session") {
      if (known !== undefined) return { status: "exists" };
      this.#known.set(change.sessionId, newlyKnown(change.claimFor?.owner));
      return { status: "created" };
    }
    if (known === undefined) return { status: "not_found" };
    const ended = isEnded(known.status);
    switch (change.type) {
      case "send_signal": {
        if (ended) return { status: "ended", sessionStatus: known.status };
        const marks = [
          `id ${change.signalId}`,
          ...(change.dedupKey === undefined ? [] : [`key ${change.dedupKey}`]),
        ];
        if (marks.some((mark) => known.seen.has(mark))) return { status: "duplicate" };
        for (const mark of marks) known.seen.add(mark);
        known.signals.push({ id: change.signalId, name: change.name, order: ++known.inbox });
        const open = known.status === "submitted" || known.status === "working";
        const awaited = open || (known.status !== "paused" && known.waits.includes(change.name));
        return { status: "stored", order: known.inbox, awaited };
      }
      case "request_cancel":
        if (ended) return { status: "ended", sessionStatus: known.status };
        if (change.mode === "hard") {
          known.inbox++;
          end(known, "cancelled");
        } else if (known.deadlineAt === undefined) {
          known.inbox++;
          known.deadlineAt = now + change.graceMs;
          stand(known, "cancelling", [], undefined);
        }
        return { status: "requested", sessionStatus: known.status };
      case "release_claim":
        if (change.token !== known.tokens.at(-1)) return { status: "fenced" };
        known.owner = undefined;
        return { status: "released" };
      case "commit_batch":
        return this.#expectBatch(known, change);
    }
  }

  #expectBatch(known: Known, batch: CommitBatch): Partial<ChangeResult> {
    if (batch.token !== known.tokens.at(-1)) return { status: "fenced" };
    const { firstSeq, records, entries, consumed, session: patch } = batch;
    const held = known.journal.slice(firstSeq, firstSeq + records.length);
    if (
      records.length > 0 &&
      firstSeq < known.journal.length &&
      JSON.stringify(held) === JSON.stringify(records)
    ) {
      return { status: "committed", inbox: known.inbox };
    }
    if (isEnded(known.status)) return { status: "invalid" };
    if (known.owner === undefined) return { status: "fenced" };
    if (firstSeq !== known.journal.length) return { status: "invalid" };
    if (entries.some(({ index }, i) => index !== known.entries.length + i)) return { status: "invalid" };
    if (consumed.some((id) => !known.signals.some((signal) => signal.id === id)))
      return { status: "invalid" };
    const unheard =
      known.deadlineAt !== undefined &&
      ["working", "waiting", "input_required"].includes(patch?.status ?? "");
    const status = unheard ? "cancelling" : (patch?.status ?? known.status);
    if (patch !== undefined && !mayBecome(known.status, status)) return { status: "invalid" };

    known.journal.push(...records);
    known.entries.push(...entries.map(({ content }) => content));
    for (const id of consumed) {
      known.signals.splice(
        known.signals.findIndex((signal) => signal.id === id),
        1,
      );
    }
    known.lastBatch = batch;
    if (patch === undefined) return { status: "committed", inbox: known.inbox };
    if (isEnded(status)) end(known, status);
    else if (unheard) stand(known, "cancelling", [], undefined);
    else {
      const names = patch.waits?.map((wait) => ("name" in wait ? wait.name : ""));
      stand(
        known,
        status,
        names ?? known.waits,
        patch.wakeAt ?? (names === undefined ? known.wakeAt : undefined),
      );
    }
    return { status: "committed", inbox: known.inbox };
  }

  async #takeClaim(step: Extract<Step, { type: "claim" }>, now: number): Promise<void> {
    const sessionId = `${this.#prefix}-ses-${step.session}`;
    const known = this.#known.get(sessionId);
    const { owner, leaseMs } = step;
    const result = await this.#fixture.storage.claim({ sessionId, owner, now, leaseMs });
    if (known === undefined) {
      expect(result).toEqual({ status: "not_found" });
    } else if (isEnded(known.status)) {
      expect(result).toEqual({ status: "ended", sessionStatus: known.status });
    } else if (known.owner !== undefined && known.owner !== owner && known.until > now) {
      expect(result).toEqual({ status: "busy", owner: known.owner });
    } else {
      expect(result.status).toBe("claimed");
      const token = tokenOf(result);
      expect(token).toBeGreaterThan(known.tokens.at(-1) ?? 0);
      known.tokens.push(token);
      known.owner = owner;
      known.until = now + leaseMs;
    }
  }

  async #takeDue(now: number): Promise<void> {
    const { sessionIds } = await this.#fixture.storage.due({ now, limit: 1_000_000 });
    const expected: string[] = [];
    for (const [sessionId, known] of this.#known) {
      if (isEnded(known.status)) continue;
      if (known.deadlineAt !== undefined && known.deadlineAt <= now) end(known, "cancelled");
      else if ((known.owner === undefined || known.until <= now) && isDue(known, now))
        expected.push(sessionId);
    }
    const mine = sessionIds.filter((sessionId) => this.#known.has(sessionId));
    expect([...mine].sort(), `due at ${now}`).toEqual(expected.sort());
  }

  async compareAll(): Promise<void> {
    const { reader } = this.#fixture.storage;
    for (const [sessionId, known] of this.#known) {
      expect(await reader.session(sessionId)).toMatchObject({
        status: known.status,
        nextSeq: known.journal.length,
        entryCount: known.entries.length,
        inbox: known.inbox,
      });
      expect(await reader.journal(sessionId, 0, 1_000)).toEqual(known.journal);
      expect((await reader.entries(sessionId, 0, 1_000)).map(({ content }) => content)).toEqual(
        known.entries,
      );
      if (isEnded(known.status)) continue; // Its signals may be kept or not.
      const { signals } = await this.#fixture.storage.arrivals(sessionId, 0);
      expect(signals.map(({ signalId, name, order }) => ({ id: signalId, name, order }))).toEqual(
        known.signals,
      );
    }
  }
}

function patchTo(
  status: (typeof PATCHED)[number],
  wakeInMs: number | undefined,
  now: number,
): NonNullable<CommitBatch["session"]> {
  const patch = status === "cancelling" ? { status } : PATCH_TO[status];
  return wakeInMs === undefined ? patch : { ...patch, wakeAt: now + wakeInMs };
}

function newlyKnown(owner: string | undefined): Known {
  return {
    status: "submitted",
    journal: [],
    entries: [],
    signals: [],
    seen: new Set(),
    waits: [],
    wakeAt: undefined,
    inbox: 0,
    deadlineAt: undefined,
    tokens: [],
    owner,
    until: Infinity,
    lastBatch: undefined,
  };
}

function stand(
  known: Known,
  status: SessionStatus,
  waits: readonly string[],
  wakeAt: number | undefined,
): void {
  known.status = status;
  known.waits = waits;
  known.wakeAt = wakeAt;
}

function end(known: Known, status: SessionStatus): void {
  stand(known, status, [], undefined);
}

function isDue({ status, waits, wakeAt, signals }: Known, now: number): boolean {
  if (status === "submitted" || status === "working") return true;
  if (status === "paused") return false;
  if (status === "cancelling" && waits.length === 0) return true;
  return (wakeAt !== undefined && wakeAt <= now) || signals.some(({ name }) => waits.includes(name));
}
