// ST5, against a model: whatever is asked in whatever order, a storage answers and holds what a few lists
// would.
//
// The model is written from the clauses and shares no code with the rules the adapters use. It knows sessions
// by what a reader can see of them; claims by the tokens it was given.

import {
  isEnded,
  LIMITS,
  mayBecome,
  type ChangeResult,
  type CommitBatch,
  type Charge,
  type CreateSession,
  type DeleteSession,
  type Effect,
  type PauseSession,
  type ReleaseClaim,
  type RequestCancel,
  type ResumeSession,
  type SendSignal,
  type SetBudget,
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
  reserving,
  scheduling,
  settling,
  signalling,
  tokenOf,
  type Fixture,
} from "./fixture.ts";
import { isDue, isNotification, newlyKnown, stand, type Known } from "./model-session.ts";
import { STEP, type Asked, type AskedBatch, type PATCHED, type Step } from "./model-steps.ts";

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
      { numRuns: fixture.subject.sequences ?? 300 },
    );
  }, 60_000);
}

type Made =
  | CreateSession
  | SendSignal
  | RequestCancel
  | PauseSession
  | ResumeSession
  | SetBudget
  | CommitBatch
  | ReleaseClaim
  | DeleteSession;

/** A token that was never given out. */
const NO_TOKEN = 1_000_077;

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
      case "renew":
        return this.#takeRenewal(step, now);
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
      const isClaimed = change.type === "create_session" && change.claimFor !== undefined;
      if (isClaimed && expected.status === "created") {
        const token = tokenOf(results[i] as { status: string; token?: number });
        this.#known.get(change.sessionId)!.tokens.push(token);
      }
    });
  }

  #make(asked: Asked, now: number): Made {
    const sessionId = `${this.#prefix}-ses-${asked.session}`;
    const known = this.#known.get(sessionId);
    switch (asked.type) {
      case "create":
        return creating(sessionId, {
          ...(asked.claimed ? { claimFor: { owner: "owner-1", leaseMs: Infinity } } : {}),
          ...(asked.lifeMs === undefined ? {} : { deadlineAt: now + asked.lifeMs }),
          ...(asked.budget === undefined ? {} : { budget: { maxTokens: asked.budget } }),
        });
      case "pause":
        return { type: "pause_session", sessionId };
      case "resume":
        return { type: "resume_session", sessionId };
      case "budget":
        return { type: "set_budget", sessionId, limits: { maxTokens: asked.tokens } };
      case "signal": {
        const dedup = asked.key === undefined ? {} : { dedupKey: `key-${asked.key}` };
        return signalling(sessionId, `sig-${asked.id}`, { name: asked.name, ...dedup });
      }
      case "cancel":
        return cancelling(sessionId, { mode: asked.hard ? "hard" : "graceful", graceMs: 30 });
      case "release":
        return releasing({ sessionId, token: known?.tokens.at(-1 - asked.token) ?? NO_TOKEN });
      case "delete":
        return { type: "delete_session", sessionId, subtree: asked.all ? "delete" : "refuse" };
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
      ...(asked.effect === undefined ? {} : { effects: [this.#makeEffect(asked.effect, sessionId)] }),
      ...(asked.charges.length === 0
        ? {}
        : {
            charges: asked.charges.map(({ type, task, tokens }) =>
              (type === "settle" ? settling : reserving)(task, tokens),
            ),
          }),
    });
  }

  #makeEffect(asked: NonNullable<AskedBatch["effect"]>, parent: string): Effect {
    const sessionId = `${this.#prefix}-ses-${asked.session}`;
    switch (asked.type) {
      case "spawn": {
        const onEnd = asked.leave ? "leave" : "cancel";
        return creating(sessionId, { parent: { sessionId: parent, child: 0, onEnd } });
      }
      case "signal":
        return signalling(sessionId, `sig-${asked.id}`);
      case "cancel":
        return cancelling(sessionId, { mode: asked.hard ? "hard" : "graceful", graceMs: 30 });
    }
  }

  /** The answer by the clauses; what it says has happened is done here too. */
  #expect(change: Made, now: number): Partial<ChangeResult> {
    const { sessionId } = change;
    const known = this.#known.get(sessionId);
    if (change.type === "create_session") {
      if (known !== undefined) return { status: "exists" };
      this.#create(change);
      return { status: "created" };
    }
    if (known === undefined) return { status: "not_found" };
    const ended = isEnded(known.status);
    switch (change.type) {
      case "send_signal": {
        if (ended) return { status: "ended", sessionStatus: known.status };
        const marks = [
          `id ${change.signalId}`,
          ...(change.dedupKey === undefined ? [] : [`key ${change.dedupKey} of ${change.name}`]),
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
        this.#cancel(sessionId, change.mode, change.graceMs, now);
        return { status: "requested", sessionStatus: known.status };
      case "pause_session":
        if (ended) return { status: "ended", sessionStatus: known.status };
        if (known.deadlineAt === undefined && known.status !== "paused") {
          known.inbox++;
          known.status = "paused";
          this.#notify(known, ["child:0"]);
        }
        return { status: "requested", sessionStatus: known.status };
      case "resume_session":
        if (ended) return { status: "ended", sessionStatus: known.status };
        if (known.status === "paused") {
          known.inbox++;
          stand(known, known.deadlineAt === undefined ? "working" : "cancelling", [], undefined);
        }
        return { status: "requested", sessionStatus: known.status };
      case "set_budget": {
        if (ended && (known.account === undefined || !this.#livesBelow(known)))
          return { status: "ended", sessionStatus: known.status };
        const { account } = known;
        if (account === undefined) return { status: "invalid" };
        account.max = change.limits.maxTokens!;
        account.isLow &&= (account.max - account.spent) * 10 < account.max;
        return { status: "requested", sessionStatus: known.status };
      }
      case "release_claim":
        if (change.token !== known.tokens.at(-1)) return { status: "fenced" };
        known.owner = undefined;
        return { status: "released" };
      case "commit_batch":
        return this.#expectBatch(known, change, now);
      case "delete_session":
        return this.#delete(sessionId, known, change.subtree === "delete");
    }
  }

  #delete(sessionId: string, { status, children, parent }: Known, all: boolean): Partial<ChangeResult> {
    if (!isEnded(status)) return { status: "not_ended", sessionId, sessionStatus: status };
    if (!all && children.length > 0) return { status: "has_children" };
    const gone = [sessionId];
    for (const id of gone) gone.push(...this.#known.get(id)!.children);
    if (gone.some((id) => !isEnded(this.#known.get(id)!.status))) return { status: "not_ended" };
    for (const id of gone) this.#known.delete(id);
    const siblings = this.#known.get(parent?.sessionId ?? "")?.children;
    siblings?.splice(siblings.indexOf(sessionId), 1);
    return { status: "deleted", sessions: gone.length };
  }

  #create({ sessionId, claimFor, deadlineAt, budget, parent }: CreateSession): void {
    const above = parent === undefined ? undefined : this.#known.get(parent.sessionId);
    above?.children.push(sessionId);
    const account =
      budget === undefined ? undefined : { max: budget.maxTokens!, spent: 0, reserved: 0, isLow: false };
    this.#known.set(sessionId, {
      ...newlyKnown(claimFor?.owner),
      lifeUntil: deadlineAt ?? Infinity,
      parent: parent && { sessionId: parent.sessionId, isLeft: parent.onEnd === "leave" },
      account,
      payers: [...(account === undefined ? [] : [sessionId]), ...(above?.payers ?? [])],
    });
  }

  #cancel(sessionId: string, mode: "graceful" | "hard", graceMs: number, now: number): void {
    const known = this.#known.get(sessionId)!;
    if (mode === "hard") {
      known.inbox++;
      this.#end(known, "cancelled", true, now);
    } else if (known.deadlineAt === undefined) {
      known.inbox++;
      known.deadlineAt = now + graceMs;
      stand(known, "cancelling", [], undefined);
      this.#cancelBelow(known, mode, graceMs, true, now);
    }
  }

  #livesBelow(known: Known): boolean {
    return known.children
      .map((sessionId) => this.#known.get(sessionId)!)
      .some((child) => !isEnded(child.status) || this.#livesBelow(child));
  }

  #cancelBelow(known: Known, mode: "graceful" | "hard", graceMs: number, all: boolean, now: number): void {
    for (const sessionId of known.children) {
      const child = this.#known.get(sessionId)!;
      if (child.parent?.isLeft === true && !all) continue;
      if (!isEnded(child.status)) this.#cancel(sessionId, mode, graceMs, now);
      else if (all) this.#cancelBelow(child, mode, graceMs, all, now);
    }
  }

  #end(known: Known, status: SessionStatus, isHard: boolean, now: number): void {
    stand(known, status, [], undefined);
    for (const [task, tokens] of known.holds) this.#settle(known, task, tokens);
    this.#notify(known, ["child:0", "child-end:0"]);
    this.#cancelBelow(known, isHard ? "hard" : "graceful", LIMITS.cancelGraceMs, isHard, now);
  }

  #notifyTaken(asker: Known, { sessionId, parent }: CreateSession): 0 | 1 {
    if (this.#known.get(sessionId)?.parent?.sessionId === parent?.sessionId) return 1; // Counted before.
    const mark = `taken ${sessionId}`; // A parent that asks for the same id again is notified once.
    if (parent && !asker.seen.has(mark))
      this.#notify({ parent: { ...parent, isLeft: false } }, ["child:0", "child-end:0"]);
    asker.seen.add(mark);
    return 0;
  }

  #notify({ parent }: Pick<Known, "parent">, names: readonly string[]): void {
    const above = parent === undefined ? undefined : this.#known.get(parent.sessionId);
    if (above === undefined || isEnded(above.status)) return;
    for (const name of names) above.signals.push({ id: "told", name, order: ++above.inbox });
  }

  #charge(known: Known, charges: readonly Charge[]): unknown[] {
    const admissions: unknown[] = [];
    for (const charge of charges) {
      if (charge.type === "settle") this.#settle(known, charge.task, charge.used.tokens);
      else if (charge.type === "reserve")
        admissions.push(this.#reserve(known, charge.task, charge.amount.tokens));
    }
    for (const payer of known.payers) {
      const above = this.#known.get(payer)!;
      const { max, spent, isLow } = above.account!;
      if (isLow || (max - spent) * 10 >= max) continue;
      above.account!.isLow = true;
      if (!isEnded(above.status)) this.#notify(above, ["child:0"]);
    }
    return admissions;
  }

  #reserve(known: Known, task: number, tokens: number): unknown {
    if (known.payers.length === 0 || known.holds.has(task)) return { status: "admitted" };
    const accounts = known.payers.map((payer) => [payer, this.#known.get(payer)!.account!] as const);
    for (const [payer, { max, spent }] of accounts) {
      if (tokens > 0 && spent + tokens > max)
        return { status: "refused", payer, limit: "maxTokens", used: spent, max, then: "park" };
    }
    const isTight = accounts.some(([, { max, spent, reserved }]) => spent + reserved + tokens > max);
    if (tokens > 0 && isTight) return { status: "queued" };
    known.holds.set(task, tokens);
    for (const [, account] of accounts) account.reserved += tokens;
    return { status: "admitted" };
  }

  #settle(known: Known, task: number, used: number): void {
    const held = known.holds.get(task);
    if (held === undefined) return;
    known.holds.delete(task);
    for (const payer of known.payers) {
      const account = this.#known.get(payer)!.account!;
      account.reserved -= held;
      account.spent += used;
    }
  }

  /** The other fields of the answer to a committed batch. */
  #paid(known: Known, admissions: readonly unknown[] | undefined): object {
    const left = known.payers.map((payer) => {
      const { max, spent, reserved } = this.#known.get(payer)!.account!;
      return Math.max(0, max - spent - reserved);
    });
    return {
      ...(admissions === undefined ? {} : { admissions }),
      ...(left.length === 0 ? {} : { remaining: { tokens: Math.min(...left) } }),
    };
  }

  #expectBatch(known: Known, batch: CommitBatch, now: number): Partial<ChangeResult> {
    if (batch.token !== known.tokens.at(-1)) return { status: "fenced" };
    const { firstSeq, records, entries, consumed, session: patch, effects = [], charges } = batch;
    const held = known.journal.slice(firstSeq, firstSeq + records.length);
    if (
      records.length > 0 &&
      firstSeq < known.journal.length &&
      JSON.stringify(held) === JSON.stringify(records)
    ) {
      const again = charges
        ?.filter(({ type }) => type === "reserve")
        .map((charge) => {
          const isHeld =
            known.payers.length === 0 || (charge.type === "reserve" && known.holds.has(charge.task));
          return { status: isHeld ? "admitted" : "queued" };
        });
      return { status: "committed", inbox: known.inbox, ...this.#paid(known, again) };
    }
    if (isEnded(known.status)) return { status: "invalid" };
    if (known.owner === undefined) return { status: "fenced" };
    if (firstSeq !== known.journal.length) return { status: "invalid" };
    if (entries.some(({ index }, i) => index !== known.entries.length + i)) return { status: "invalid" };
    if (consumed.some((id) => !known.signals.some((signal) => signal.id === id)))
      return { status: "invalid" };
    const isCancelled = known.deadlineAt !== undefined;
    const keepsPause = known.status === "paused" && patch !== undefined && !isEnded(patch.status);
    const unaware = isCancelled && ["working", "waiting", "input_required"].includes(patch?.status ?? "");
    const status = keepsPause ? "paused" : unaware ? "cancelling" : (patch?.status ?? known.status);
    if (isCancelled && status === "completed") return { status: "invalid" };
    if (patch !== undefined && !mayBecome(known.status, status)) return { status: "invalid" };

    known.losses = 0;
    known.journal.push(...records);
    known.entries.push(...entries.map(({ content }) => content));
    for (const id of consumed) {
      known.signals.splice(
        known.signals.findIndex((signal) => signal.id === id),
        1,
      );
    }
    known.lastBatch = batch;
    const wasPaused = known.status === "paused";
    if (patch !== undefined && !isEnded(status)) {
      const names = patch.waits?.map((wait) => ("name" in wait ? wait.name : ""));
      if (unaware && !keepsPause) stand(known, status, [], undefined);
      else {
        stand(
          known,
          status,
          names ?? known.waits,
          patch.wakeAt ?? (names === undefined ? known.wakeAt : undefined),
        );
      }
    }
    if (isEnded(status)) known.status = status; // Effects find it ended.
    const admissions = charges === undefined ? undefined : this.#charge(known, charges);
    known.births += effects.filter(({ type }) => type === "create_session").length;
    for (const effect of effects) {
      const { status: became } = this.#expect(effect, now);
      const graceMs = Math.max(0, (known.deadlineAt ?? 0) - now);
      if (became === "exists" && effect.type === "create_session")
        known.births -= this.#notifyTaken(known, effect);
      if (became === "created" && isCancelled) this.#cancel(effect.sessionId, "graceful", graceMs, now);
    }
    if (isEnded(status)) this.#end(known, status, false, now);
    else if (status === "paused" && !wasPaused) this.#notify(known, ["child:0"]);
    return { status: "committed", inbox: known.inbox, ...this.#paid(known, admissions) };
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
      if (known.owner !== undefined && known.until <= now) known.losses++;
      expect(result).toMatchObject({ status: "claimed", losses: known.losses });
      const token = tokenOf(result);
      expect(token).toBeGreaterThan(known.tokens.at(-1) ?? 0);
      known.tokens.push(token);
      known.owner = owner;
      known.until = now + leaseMs;
    }
  }

  async #takeRenewal({ owner, leaseMs }: Extract<Step, { type: "renew" }>, now: number): Promise<void> {
    let held = 0;
    for (const known of this.#known.values()) {
      if (known.owner !== owner || known.until === Infinity || isEnded(known.status)) continue;
      known.until = Math.max(known.until, now + leaseMs);
      held++;
    }
    const { sessions } = await this.#fixture.storage.renew({ owner, now, leaseMs });
    // Claims of earlier runs of this storage are renewed as well.
    expect(sessions).toBeGreaterThanOrEqual(held);
  }

  async #takeDue(now: number): Promise<void> {
    const { sessionIds } = await this.#fixture.storage.due({ now, limit: 1_000_000 });
    // In the order of their times, as one after another would have been found.
    const overdueAt = (known: Known) =>
      isEnded(known.status) ? Infinity : (known.deadlineAt ?? known.lifeUntil);
    const overdue = [...this.#known].filter(([, known]) => overdueAt(known) <= now);
    for (const [sessionId, known] of overdue.toSorted(([, a], [, b]) => overdueAt(a) - overdueAt(b))) {
      if (overdueAt(known) > now) continue;
      if (known.deadlineAt === undefined) this.#cancel(sessionId, "graceful", LIMITS.cancelGraceMs, now);
      else this.#end(known, "cancelled", false, now);
    }
    const expected: string[] = [];
    for (const [sessionId, known] of this.#known) {
      if (isEnded(known.status)) continue;
      if ((known.owner === undefined || known.until <= now) && isDue(known, now)) expected.push(sessionId);
    }
    const mine = sessionIds.filter((sessionId) => this.#known.has(sessionId));
    expect([...mine].sort(), `due at ${now}`).toEqual(expected.sort());
  }

  async compareAll(): Promise<void> {
    const { reader } = this.#fixture.storage;
    for (const [sessionId, known] of this.#known) {
      const { account, parent, payers } = known;
      expect(await reader.session(sessionId)).toMatchObject({
        status: known.status,
        nextSeq: known.journal.length,
        entryCount: known.entries.length,
        payers,
        children: known.births,
        ...(parent === undefined ? {} : { parent: { sessionId: parent.sessionId } }),
        ...(account === undefined
          ? {}
          : { account: { spent: { tokens: account.spent }, reserved: { tokens: account.reserved } } }),
      });
      const { holds } = (await this.#fixture.storage.load(sessionId))!;
      expect(new Map(holds.map(({ task, amount }) => [task, amount.tokens]))).toEqual(known.holds);
      expect(await reader.journal(sessionId, 0, 1_000)).toEqual(known.journal);
      expect((await reader.entries(sessionId, 0, 1_000)).map(({ content }) => content)).toEqual(
        known.entries,
      );
      if (isEnded(known.status)) continue; // Its signals may be kept or not.
      const { signals, inbox } = await this.#fixture.storage.arrivals(sessionId, 0);
      expect(inbox).toBe(known.inbox);
      // Two children that end at the same time have no order.
      const notifications = (all: readonly { readonly name: string }[]) =>
        all
          .filter(({ name }) => isNotification(name))
          .map(({ name }) => name)
          .toSorted();
      expect(notifications(signals)).toEqual(notifications(known.signals));
      expect(
        signals
          .filter(({ name }) => !isNotification(name))
          .map(({ signalId, name, order }) => ({ id: signalId, name, order })),
      ).toEqual(known.signals.filter(({ name }) => !isNotification(name)));
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
