// One group of changes, worked out in memory: look up, ask the rules, note what is to be written. What a change means for other
// sessions is the core's (`cascade.ts`); this is its door.
//
//   working-set-1. It runs in one go, over what is known. Where something is not, it throws `Need`; its caller undoes
//       it, finds that, and runs the group anew. So a group is worked out as often as it needs to learn something,
//       mostly once.
//   working-set-2. Everything it looked at is in `consulted`, and checked when it is written; what changed has another
//       version afterwards.
//   working-set-3. What is not known to exist is taken not to, as long as the database refuses the row that would be
//       the second one. Only after it has refused (`isCareful`) is that asked beforehand: new sessions and new signals
//       are the rule.
//   working-set-4. A change to the list of a session's children, and a pause for want of a payer's budget, is a change
//       of the parent's and the payer's version: whoever read those lists is told that they are others now.
//   working-set-5. All that can be refused is refused before the first write of its change (as in the core's cascade-1).
//   working-set-6. What is written and taken back within the group is not written at all.

import {
  encodeRecords,
  invariant,
  isEnded,
  type Account,
  type Amount,
  type Arrival,
  type AuditLink,
  type AuditRow,
  type ChangeResult,
  type CommitBatch,
  type CreateSession,
  type Hold,
  type ImportSession,
  type JournalRecord,
  type ReleaseClaim,
  type Schedule,
  type SeenSignals,
  type SendSignal,
  type Session,
  type StoredDocument,
} from "@holdfast/core";
import {
  applyBatch,
  createSession,
  decideRelease,
  decideSignal,
  findImportProblem,
  firstBatch,
  isAnsweredBy,
  isSameRecords,
  nextClaim,
  NO_CLAIM,
  isProof,
  provenClaim,
  refuseBatch,
  refuseCreation,
  releasedClaim,
  type Applied,
  type BatchLookups,
  type CascadeDoor,
  type Claim,
  type ChildRow,
} from "@holdfast/core/internal";
import { partsOf } from "../../journal-parts.ts";
import {
  findBatchProblem,
  findDocumentProblem,
  findImportTextProblem,
  findScheduleProblem,
  findSessionProblem,
  findSignalProblem,
} from "../../texts.ts";
import { keyOf, Need, type Facts } from "./group-facts.ts";
import { noWrites } from "./group-writes.ts";
import { isBelow, Pending, withoutContent, type Head, type Heads } from "../tables/heads.ts";
import { AUDIT, documentKind, keepText, marksOf, sha256, type Item } from "../tables/rows.ts";

export interface WorkingSetOptions {
  readonly heads: Heads;
  readonly facts: Facts;
  readonly lanes: number;
  /** A number above all it answered before, and above those of processes that ended before this one began. */
  readonly stamp: () => number;
  readonly laneOf: (sessionId: string) => number;
}

/** Items are of these kinds. */
export const SCHEDULE = "schedule";

export class WorkingSet implements CascadeDoor {
  /** What listeners hear of when it is written. */
  readonly arrived: Arrival[] = [];
  readonly consulted = new Map<string, Head>();
  readonly hash = sha256;
  readonly writes = noWrites();
  readonly #options: WorkingSetOptions;
  /** How to put heads back, the last first. */
  readonly #undo: (() => void)[] = [];

  constructor(options: WorkingSetOptions) {
    this.#options = options;
  }

  get isWriting(): boolean {
    const { created, changed, removed, items } = this.writes;
    return created.size > 0 || changed.size > 0 || removed.size > 0 || items.size > 0;
  }

  /** Heads are as they were before. */
  undo(): void {
    for (const back of this.#undo.toReversed()) back();
    this.#undo.length = 0;
  }

  // ---- looking up ------------------------------------------------------------------------------------------------

  session(sessionId: string): Session | undefined {
    return this.#look(sessionId)?.session;
  }

  claimOf(sessionId: string): Claim {
    return this.#find(sessionId).claim;
  }

  children(sessionId: string): readonly ChildRow[] {
    const head = this.#look(sessionId);
    if (head === undefined) return [];
    if (head.childIds === undefined) throw new Need({ type: "children", head });
    return head.childIds.map((childId) => this.#childRow(childId));
  }

  #childRow(childId: string): ChildRow {
    const { session } = this.#find(childId);
    const { status, parent, placement } = session;
    invariant(parent !== undefined, `session ${childId} has no parent and is a child`);
    return { sessionId: childId, status, onEnd: parent.onEnd, owner: placement?.owner };
  }

  exhaustedBy(payer: string): readonly string[] {
    const stored = this.#options.facts.exhausted.get(payer);
    if (stored === undefined) throw new Need({ type: "exhausted", payer });
    const paused = [...this.writes.changed, ...this.#newHeads()]
      .filter(({ session }) => session.status === "paused" && session.exhausted?.payer === payer)
      .map(({ sessionId }) => sessionId);
    return [...new Set([...stored, ...paused])];
  }

  holds(sessionId: string): readonly Hold[] {
    const { holds } = this.#find(sessionId);
    return [...holds].map(([task, amount]) => ({ task, amount })).sort((a, b) => a.task - b.task);
  }

  held(sessionId: string, task: number): Amount | undefined {
    return this.#find(sessionId).holds.get(task);
  }

  isPending(sessionId: string, signalId: string): boolean {
    return this.#find(sessionId).pending.has(signalId);
  }

  schedule(scheduleId: string): Schedule | undefined {
    const item = this.#item(SCHEDULE, scheduleId);
    return item === undefined ? undefined : readSchedule(item.body);
  }

  #item(kind: string, key: string): Pick<Item, "body"> | undefined {
    const written = this.writes.items.get(keyOf(kind, key));
    if (written !== undefined) return written.item;
    const { items } = this.#options.facts;
    if (!items.has(keyOf(kind, key))) throw new Need({ type: "item", kind, key });
    return items.get(keyOf(kind, key));
  }

  #look(sessionId: string): Head | undefined {
    const created = this.writes.created.get(sessionId);
    if (created !== undefined) return created.head;
    const consulted = this.consulted.get(sessionId);
    if (consulted !== undefined) return this.writes.removed.has(consulted) ? undefined : consulted;
    const { heads, facts } = this.#options;
    const head = heads.get(sessionId) ?? facts.heads.get(sessionId);
    if (head?.flight !== undefined) throw new Need({ type: "landing", flight: head.flight });
    if (head !== undefined) {
      this.consulted.set(sessionId, head);
      return head;
    }
    const damage = facts.damaged.get(sessionId);
    if (damage !== undefined) throw damage;
    if (facts.absent.has(sessionId)) return undefined;
    throw new Need({ type: "head", sessionId });
  }

  #find(sessionId: string): Head {
    const head = this.#look(sessionId);
    invariant(head !== undefined, `session ${sessionId} is gone in the middle of a change`);
    return head;
  }

  #newHeads(): Head[] {
    return [...this.writes.created.values()].map(({ head }) => head);
  }

  /** working-set-3. */
  #exists(sessionId: string): boolean {
    const { heads, facts } = this.#options;
    const isKnown =
      this.writes.created.has(sessionId) ||
      this.consulted.has(sessionId) ||
      heads.get(sessionId) !== undefined ||
      facts.heads.has(sessionId) ||
      facts.damaged.has(sessionId);
    return (isKnown || facts.isCareful) && this.#look(sessionId) !== undefined;
  }

  /** write-statement-3 of `write-statement.ts`. A group that does it is halved until it is two. */
  #refuseRemoved(sessionId: string): void {
    invariant(
      !this.consulted.has(sessionId),
      `session ${sessionId} is removed and made anew in one statement`,
    );
  }

  // ---- creating --------------------------------------------------------------------------------------------------

  create(change: CreateSession, now: number, forerunner?: Session): Applied {
    const { sessionId, claimFor, parent } = change;
    const problem = findSessionProblem(change);
    if (problem !== undefined) return refused({ status: "invalid", reason: problem });
    if (this.#exists(sessionId)) return refused({ status: "exists" });
    this.#refuseRemoved(sessionId);
    const refusal = refuseCreation(change, now, {
      asker: (id) => this.#look(id),
      hasSeen: (id, signalId) => this.#hasSeen(this.#find(id), `i:${signalId}`),
    });
    if (refusal !== undefined) return refused(refusal);

    const above = parent === undefined ? undefined : this.#look(parent.sessionId);
    const head = this.#insert(
      createSession(change, now, above?.session, forerunner),
      above,
      claimFor?.leaseMs,
    );
    const before = head.session;
    if (claimFor === undefined) return { result: { status: "created" }, rows: { before, after: before } };
    const token = this.#options.stamp();
    head.claim = nextClaim(NO_CLAIM, { ...claimFor, now }, token);
    const first = firstBatch(change, token);
    if (first !== undefined) {
      this.#appendRecords(head, first, now);
      head.session = applyBatch(head.session, first, now);
    }
    return { result: { status: "created", token }, rows: { before, after: head.session } };
  }

  import(change: ImportSession): ChangeResult {
    const { sessionId, session, records, entries } = change;
    if (this.#exists(sessionId)) return { status: "exists" };
    this.#refuseRemoved(sessionId);
    const problem = findImportProblem(change) ?? findImportTextProblem(change);
    if (problem !== undefined) return { status: "invalid", reason: `session ${sessionId} ${problem}` };
    const above = session.parent === undefined ? undefined : this.#look(session.parent.sessionId);
    const head = this.#insert(session, above, undefined);
    head.childIds = this.#waitingFor(sessionId);
    this.writes.imported.add(head);
    for (const part of partsOf(records)) this.#appendRow(head, part, session.updatedAt);
    for (const entry of entries) this.writes.entries.push({ head, entry, createdAt: entry.createdAt });
    return { status: "created" };
  }

  /** A family may be brought in one by one, in any order. */
  #waitingFor(sessionId: string): string[] {
    const stored = this.#options.facts.waiting.get(sessionId);
    if (stored === undefined) throw new Need({ type: "waiting", sessionId });
    const made = this.#newHeads().filter((head) => isBelow(head, sessionId));
    const there = stored.filter((id) => this.#look(id) !== undefined);
    return [...there, ...made.map((head) => head.sessionId)];
  }

  #insert(session: Session, above: Head | undefined, leaseMs: number | undefined): Head {
    const { sessionId } = session;
    if (above !== undefined) this.#change(above); // working-set-4.
    const { stamp, laneOf } = this.#options;
    const born = stamp();
    const head: Head = {
      sessionId,
      lane: above?.lane ?? laneOf(sessionId),
      version: born,
      session: withoutContent(session),
      claim: NO_CLAIM,
      until: NO_CLAIM.until,
      answered: false,
      pending: new Pending(),
      childIds: [],
      holds: new Map(),
      outputBlob: undefined,
      flight: undefined,
    };
    if (above?.childIds !== undefined) above.childIds = [...above.childIds, sessionId];
    this.writes.created.set(sessionId, { head, session, born, leaseMs: leaseMs ?? 0 });
    return head;
  }

  // ---- batches ---------------------------------------------------------------------------------------------------

  commitBatch(batch: CommitBatch, now: number): Applied {
    const head = this.#look(batch.sessionId);
    if (head === undefined) return refused({ status: "not_found" });
    const before = head.session;
    const refusal = refuseBatch(before, head.claim, batch, this.#lookupsOf(head));
    if (refusal !== undefined) return refused(refusal);
    const problem = findBatchProblem(batch);
    if (problem !== undefined)
      return refused({ status: "invalid", reason: `session ${before.sessionId}: ${problem}` });

    this.#change(head);
    if (isProof(batch)) this.writes.proven.add(head);
    head.claim = provenClaim(head.claim, batch);
    this.#appendRecords(head, batch, now);
    for (const signalId of batch.consumed) this.#consume(head, signalId);
    this.#setSession(head, applyBatch(before, batch, now));
    return {
      result: { status: "committed", inbox: head.session.inbox },
      rows: { before, after: head.session },
    };
  }

  #lookupsOf(head: Head): BatchLookups {
    return {
      isPending: (signalId) => head.pending.has(signalId),
      holdsRecords: ({ firstSeq, records }) => {
        const held = this.#recordsOf(head, firstSeq, firstSeq + records.length);
        return isSameRecords(held, records);
      },
    };
  }

  /** What the journal holds at these positions: in the database, and behind that what this group appends. */
  #recordsOf(head: Head, from: number, to: number): JournalRecord[] {
    const appended = this.writes.journal.filter((row) => row.head === head).flatMap(({ records }) => records);
    const stored = appended[0]?.seq ?? head.session.nextSeq;
    const mine = appended.filter(({ seq }) => seq >= from && seq < to);
    if (from >= stored) return mine;
    const until = Math.min(to, stored);
    const known = this.#options.facts.journals.get(keyOf(head.sessionId, from, until));
    if (known === undefined) throw new Need({ type: "journal", head, from, to: until });
    return [...known, ...mine];
  }

  #appendRecords(head: Head, { records, entries }: CommitBatch, now: number): void {
    if (records.length > 0) this.#appendRow(head, records, now);
    for (const entry of entries) this.writes.entries.push({ head, entry, createdAt: now });
  }

  /** One row; there is at least one record. */
  #appendRow(head: Head, records: readonly JournalRecord[], committedAt: number): void {
    const keep = this.keepFor(head);
    const body = encodeRecords(records, { put: (text) => keepText(text, keep) });
    this.writes.journal.push({ head, records, body, committedAt });
  }

  /** Where large texts of a session go. */
  keepFor(head: Head): (address: string, text: string) => void {
    return (address, text) => this.writes.texts.set(keyOf(head.sessionId, address), { head, address, text });
  }

  // ---- signals ---------------------------------------------------------------------------------------------------

  send(signal: SendSignal, now: number): ChangeResult {
    const { sessionId, signalId, name, payload, dedupKey } = signal;
    const head = this.#look(sessionId);
    if (head === undefined) return { status: "not_found" };
    const problem = findSignalProblem(signal);
    if (problem !== undefined) return { status: "invalid", reason: problem };
    const marks = marksOf({ ids: [signalId], dedupKeys: dedupKey === undefined ? [] : [[name, dedupKey]] });
    const seen = !isEnded(head.session.status) && marks.some((mark) => this.#hasSeen(head, mark));
    const decision = decideSignal(head.session, signal, { seen, pending: head.pending.size }, now);
    if (!("session" in decision)) return decision.result;

    this.#change(head);
    const { order, awaited } = decision.result;
    const stored = { signalId, name, payload, order, sentAt: now };
    this.writes.signals.set(keyOf(sessionId, order), { head, signal: stored });
    for (const mark of marks) this.writes.seen.set(keyOf(sessionId, mark), { head, mark });
    head.session = decision.session;
    head.pending.add(signalId, order, name);
    this.#undo.push(() => void head.pending.remove(signalId));
    head.answered ||= isAnsweredBy(head.session.waits, name);
    this.arrived.push({ sessionId, awaited });
    return decision.result;
  }

  addSeen(sessionId: string, seen: SeenSignals): void {
    const head = this.#find(sessionId);
    for (const mark of marksOf(seen)) this.writes.seen.set(keyOf(sessionId, mark), { head, mark });
  }

  #hasSeen(head: Head, mark: string): boolean {
    if (this.writes.seen.has(keyOf(head.sessionId, mark))) return true;
    if (this.writes.created.has(head.sessionId)) return false;
    const { facts } = this.#options;
    if (mark.startsWith("i:") && head.pending.has(mark.slice(2))) return true;
    const known = facts.seen.get(keyOf(head.sessionId, mark));
    if (known !== undefined) return known;
    if (facts.isCareful) throw new Need({ type: "seen", head, mark });
    return false; // working-set-3.
  }

  #consume(head: Head, signalId: string): void {
    const signal = head.pending.remove(signalId);
    invariant(signal !== undefined, `signal ${signalId} is not pending`);
    this.#undo.push(() => head.pending.add(signalId, signal.order, signal.name));
    this.#dropSignal(head, signal.order);
  }

  /** working-set-6. */
  #dropSignal(head: Head, order: number): void {
    if (!this.writes.signals.delete(keyOf(head.sessionId, order))) this.writes.consumed.push({ head, order });
  }

  // ---- rows ------------------------------------------------------------------------------------------------------

  release(change: ReleaseClaim): ChangeResult {
    const head = this.#look(change.sessionId);
    if (head === undefined) return { status: "not_found" };
    const status = decideRelease(head.session, head.claim, change);
    if (status === "released") {
      this.#change(head);
      head.claim = releasedClaim(head.claim);
      this.writes.released.add(head);
    }
    return { status };
  }

  replace(session: Session): void {
    const head = this.#find(session.sessionId);
    this.#change(head);
    this.#setSession(head, session);
  }

  setAccount(sessionId: string, account: Account): void {
    const head = this.#find(sessionId);
    this.#change(head);
    head.session = { ...head.session, account };
  }

  setHold(sessionId: string, task: number, amount: Amount | undefined): void {
    const head = this.#find(sessionId);
    this.#change(head);
    const before = head.holds.get(task);
    this.#undo.push(() => setOrDelete(head.holds, task, before));
    setOrDelete(head.holds, task, amount);
    this.writes.holds.set(keyOf(sessionId, task), { head, task, amount });
  }

  putSchedule(schedule: Schedule): ChangeResult {
    const problem = findScheduleProblem(schedule);
    if (problem !== undefined) return { status: "invalid", reason: problem };
    this.#setItem(SCHEDULE, schedule.scheduleId, { body: JSON.stringify(schedule), nextAt: schedule.nextAt });
    return { status: "done", schedule };
  }

  removeSchedule(scheduleId: string): void {
    this.#setItem(SCHEDULE, scheduleId, undefined);
  }

  document(collection: string, id: string): StoredDocument | undefined {
    const item = this.#item(documentKind(collection), id);
    return item === undefined ? undefined : (JSON.parse(item.body) as StoredDocument);
  }

  putDocument(collection: string, document: StoredDocument): ChangeResult | undefined {
    const problem = findDocumentProblem(document);
    if (problem !== undefined) return { status: "invalid", reason: problem };
    this.#setItem(documentKind(collection), document.id, { body: JSON.stringify(document), nextAt: null });
    return undefined;
  }

  removeDocument(collection: string, id: string): void {
    this.#setItem(documentKind(collection), id, undefined);
  }

  lastAudit(): AuditLink | undefined {
    const item = this.#item(AUDIT.kind, AUDIT.key);
    return item === undefined ? undefined : (JSON.parse(item.body) as AuditLink);
  }

  appendAudit(row: AuditRow): void {
    const { seq, hash } = row;
    this.#setItem(AUDIT.kind, AUDIT.key, { body: JSON.stringify({ seq, hash }), nextAt: null });
    this.writes.audit.push(row);
  }

  remove(sessionId: string): void {
    const head = this.#find(sessionId);
    const parent = head.session.parent?.sessionId;
    const above = parent === undefined ? undefined : this.#look(parent);
    if (above !== undefined) this.#change(above); // working-set-4.
    if (above?.childIds !== undefined) above.childIds = above.childIds.filter((id) => id !== sessionId);
    if (!this.writes.created.delete(sessionId)) this.writes.removed.add(head);
  }

  /** It was looked at before, or is now: what stands there decides between a new row and another one. */
  #setItem(kind: string, key: string, item: Omit<Item, "version"> | undefined): void {
    this.#item(kind, key);
    const stamped = item === undefined ? undefined : { ...item, version: this.#options.stamp() };
    this.writes.items.set(keyOf(kind, key), { kind, key, item: stamped });
  }

  announce(sessionId: string, awaited: boolean): void {
    this.arrived.push({ sessionId, awaited });
  }

  #setSession(head: Head, session: Session): void {
    const { exhausted } = session;
    if (exhausted !== undefined && exhausted !== head.session.exhausted) {
      const payer = this.#look(exhausted.payer);
      if (payer !== undefined) this.#change(payer); // working-set-4.
    }
    head.session = session;
    if (isEnded(session.status)) {
      // Terminal is final: nothing will ask for its signals again.
      for (const [signalId] of head.pending.entries) this.#consume(head, signalId);
      head.answered = false;
    } else {
      head.answered = head.pending.answers(session.waits);
    }
  }

  #change(head: Head): void {
    if (this.writes.created.has(head.sessionId) || this.writes.changed.has(head)) return;
    this.writes.changed.add(head);
    const before = { ...head };
    this.#undo.push(() => void Object.assign(head, before));
  }
}

export function readSchedule(body: string): Schedule {
  const schedule = JSON.parse(body) as Schedule;
  const { action } = schedule;
  // JSON leaves out what is `undefined`, and the port has the field.
  return {
    ...schedule,
    action:
      action.type === "start" ? { ...action, input: action.input } : { ...action, payload: action.payload },
  };
}

function setOrDelete<K, V>(map: Map<K, V>, key: K, value: V | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}

function refused(result: ChangeResult): Applied {
  return { result };
}
