// `WorkingSet`: the row port of PostgreSQL. It holds one group of changes in memory: facts that were read,
// and rows to be written.
//
//   - A group is applied in one go over known facts. If a fact is missing, a member throws `Need`. The caller
//     then undoes the group, reads the fact and applies the group again. Most groups are applied once.
//   - `consulted` holds every session that the group looked at. The write checks their versions, and a
//     changed session gets a new version.
//   - A session or signal that is not known is taken for absent, because most are new; the database refuses
//     the second row. Only a group that was refused (`isCareful`) asks beforehand.
//   - A change to a list of children also changes the parent's version, so a reader of the list notices the
//     change. A pause for an exhausted budget likewise changes the payer's version.
//   - A row that the group writes and takes back is not written.
//   working-set-6. The list of sessions that an account has paused is good for one version of the payer. A
//       pause of this process may change the payer while the list is read. The write would not notice that,
//       because it checks the newer version.

import {
  type Amount,
  type Arrival,
  type ChildRow,
  type Claim,
  type CommitBatch,
  encodeRecords,
  invariant,
  isAnsweredBy,
  isEnded,
  isProof,
  isSameRecords,
  type JournalRecord,
  type NewSession,
  nextClaim,
  NO_CLAIM,
  provenClaim,
  type RowPatch,
  type RowPort,
  type SeenSignals,
  type Session,
  type StoredSignal,
} from "@holdfast/core";
import { partsOf } from "../../journal-parts.ts";
import { keyOf, Need, type Facts } from "./group-facts.ts";
import { noWrites } from "./group-writes.ts";
import { WorkingLedger } from "./working-ledger.ts";
import { nextVersion, Pending, withoutContent, type Head, type Heads } from "../tables/heads.ts";
import { keepText, marksOf } from "../tables/rows.ts";

export interface WorkingSetOptions {
  readonly heads: Heads;
  readonly facts: Facts;
  readonly lanes: number;
  /**
   * Answers a number above all its earlier answers, and above those of processes that ended before this one
   * began.
   */
  readonly stamp: () => number;
  readonly laneOf: (sessionId: string) => number;
}

export class WorkingSet implements RowPort {
  /** The arrivals to announce when the group is written. */
  readonly arrived: Arrival[] = [];
  readonly consulted = new Map<string, Head>();
  readonly writes = noWrites();
  readonly ledger: WorkingLedger;
  readonly #options: WorkingSetOptions;
  readonly #stamp: number;
  /** How to restore the heads, the last change first. */
  readonly #undo: (() => void)[] = [];

  constructor(options: WorkingSetOptions) {
    this.#options = options;
    this.#stamp = options.stamp();
    this.ledger = new WorkingLedger(this.writes, options);
  }

  get isWriting(): boolean {
    const { created, changed, removed, items } = this.writes;
    return created.size > 0 || changed.size > 0 || removed.size > 0 || items.size > 0;
  }

  /** The version of a session that this group changes. */
  versionAfter(head: Head): number {
    return nextVersion(head, this.#stamp);
  }

  /** Restore the heads as they were before the group. */
  undo(): void {
    for (const back of this.#undo.toReversed()) back();
    this.#undo.length = 0;
  }

  // ---- reads ----------------------------------------------------------------------------------------------

  find(sessionId: string): Head | undefined {
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

  exists(sessionId: string): boolean {
    const { heads, facts } = this.#options;
    const isKnown =
      this.writes.created.has(sessionId) ||
      this.consulted.has(sessionId) ||
      heads.get(sessionId) !== undefined ||
      facts.heads.has(sessionId) ||
      facts.damaged.has(sessionId);
    return (isKnown || facts.isCareful) && this.find(sessionId) !== undefined;
  }

  children(sessionId: string): readonly ChildRow[] {
    const head = this.find(sessionId);
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
    // mutant: pause-of-older-version-read
    const version = this.writes.created.has(payer) ? 0 : this.#find(payer).version; // working-set-6.
    const stored = this.#options.facts.exhausted.get(keyOf(payer, version));
    if (stored === undefined) throw new Need({ type: "exhausted", payer, version });
    const paused = [...this.writes.changed, ...this.#newHeads()]
      .filter(({ session }) => session.status === "paused" && session.exhausted?.payer === payer)
      .map(({ sessionId }) => sessionId);
    return [...new Set([...stored, ...paused])];
  }

  hasSeen(sessionId: string, seen: SeenSignals): boolean {
    const head = this.#find(sessionId);
    return marksOf(seen).some((mark) => this.#hasSeen(head, mark));
  }

  holdsRecords({ sessionId, firstSeq, records }: CommitBatch): boolean {
    const held = this.#recordsOf(this.#find(sessionId), firstSeq, firstSeq + records.length);
    return isSameRecords(held, records);
  }

  /** The records at these positions: from the database, then from what this group appends. */
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

  #hasSeen(head: Head, mark: string): boolean {
    if (this.writes.seen.has(keyOf(head.sessionId, mark))) return true;
    if (this.writes.created.has(head.sessionId)) return false;
    const { facts } = this.#options;
    if (mark.startsWith("i:") && head.pending.has(mark.slice(2))) return true;
    const known = facts.seen.get(keyOf(head.sessionId, mark));
    if (known !== undefined) return known;
    if (facts.isCareful) throw new Need({ type: "seen", head, mark });
    return false; // Most are new, and the database refuses the second row.
  }

  #find(sessionId: string): Head {
    const head = this.find(sessionId);
    invariant(head !== undefined, `session ${sessionId} is gone in the middle of a change`);
    return head;
  }

  #newHeads(): Head[] {
    return [...this.writes.created.values()].map(({ head }) => head);
  }

  // ---- writes ---------------------------------------------------------------------------------------------

  insert({ session, records, entries, committedAt, claimFor, isImported }: NewSession): Claim {
    const { sessionId, parent } = session;
    // write-statement-3. A group that removes and creates one session is halved until its parts are apart.
    invariant(
      !this.consulted.has(sessionId),
      `session ${sessionId} is removed and created again in one statement`,
    );
    const above = parent === undefined ? undefined : this.find(parent.sessionId);
    // A reader of its children notices the change by the version.
    if (above !== undefined) this.#change(above);
    const { stamp, laneOf } = this.#options;
    const born = stamp();
    const claim =
      claimFor === undefined ? NO_CLAIM : nextClaim(NO_CLAIM, { ...claimFor, now: committedAt }, stamp());
    const head: Head = {
      sessionId,
      lane: above?.lane ?? laneOf(sessionId),
      version: born,
      session: withoutContent(session),
      claim,
      until: NO_CLAIM.until,
      answered: false,
      pending: new Pending(),
      childIds: [],
      holds: new Map(),
      outputBlob: undefined,
      flight: undefined,
    };
    if (above?.childIds !== undefined) above.childIds = [...above.childIds, sessionId];
    this.writes.created.set(sessionId, { head, session, born, leaseMs: claimFor?.leaseMs ?? 0 });
    if (isImported) this.writes.imported.add(head);
    for (const part of isImported ? partsOf(records) : [records])
      this.#appendRecords(head, part, committedAt);
    for (const entry of entries) this.writes.entries.push({ head, entry, createdAt: entry.createdAt });
    return claim;
  }

  commit(batch: CommitBatch, after: Session, now: number): void {
    const head = this.#find(batch.sessionId);
    this.#change(head);
    if (isProof(batch)) this.writes.proven.add(head);
    head.claim = provenClaim(head.claim, batch);
    this.#appendRecords(head, batch.records, now);
    for (const entry of batch.entries) this.writes.entries.push({ head, entry, createdAt: now });
    for (const signalId of batch.consumed) this.#consume(head, signalId);
    this.#setSession(head, after);
  }

  update(sessionId: string, { session, signal, account, hold, claim, seen }: RowPatch): boolean {
    const head = this.#find(sessionId);
    if (signal !== undefined && seen !== undefined && this.hasSeen(sessionId, seen)) return false;
    if (session !== undefined || account !== undefined || hold !== undefined || claim !== undefined)
      this.#change(head);
    if (signal !== undefined) this.#addSignal(head, session ?? head.session, signal);
    else if (session !== undefined) this.#setSession(head, session);
    if (account !== undefined) head.session = { ...head.session, account };
    if (hold !== undefined) this.#setHold(head, hold.task, hold.amount);
    if (claim !== undefined) {
      if (claim.losses > head.claim.losses) this.writes.lost.add(head);
      head.claim = claim;
      this.writes.released.add(head);
    }
    for (const mark of seen === undefined ? [] : marksOf(seen))
      this.writes.seen.set(keyOf(sessionId, mark), { head, mark });
    return true;
  }

  remove(sessionId: string): void {
    const head = this.#find(sessionId);
    const parent = head.session.parent?.sessionId;
    const above = parent === undefined ? undefined : this.find(parent);
    // A reader of its children notices the change by the version.
    if (above !== undefined) this.#change(above);
    if (above?.childIds !== undefined) above.childIds = above.childIds.filter((id) => id !== sessionId);
    if (!this.writes.created.delete(sessionId)) this.writes.removed.add(head);
  }

  announce(sessionId: string, awaited: boolean): void {
    this.arrived.push({ sessionId, awaited });
  }

  /** Where large texts of a session go. */
  keepFor(head: Head): (address: string, text: string) => void {
    return (address, text) => this.writes.texts.set(keyOf(head.sessionId, address), { head, address, text });
  }

  /** One row of the journal; none without records. */
  #appendRecords(head: Head, records: readonly JournalRecord[], committedAt: number): void {
    if (records.length === 0) return;
    const keep = this.keepFor(head);
    const body = encodeRecords(records, { put: (text) => keepText(text, keep) });
    this.writes.journal.push({ head, records, body, committedAt });
  }

  #addSignal(head: Head, session: Session, signal: StoredSignal): void {
    const { signalId, order, name } = signal;
    this.writes.signals.set(keyOf(head.sessionId, order), { head, signal });
    head.session = session;
    head.pending.add(signalId, order, name);
    this.#undo.push(() => void head.pending.remove(signalId));
    head.answered ||= isAnsweredBy(session.waits, name);
  }

  #setHold(head: Head, task: number, amount: Amount | undefined): void {
    const before = head.holds.get(task);
    this.#undo.push(() => setOrDelete(head.holds, task, before));
    setOrDelete(head.holds, task, amount);
    this.writes.holds.set(keyOf(head.sessionId, task), { head, task, amount });
  }

  #consume(head: Head, signalId: string): void {
    const signal = head.pending.remove(signalId);
    invariant(signal !== undefined, `signal ${signalId} is not pending`);
    this.#undo.push(() => head.pending.add(signalId, signal.order, signal.name));
    this.#dropSignal(head, signal.order);
  }

  #dropSignal(head: Head, order: number): void {
    if (!this.writes.signals.delete(keyOf(head.sessionId, order))) this.writes.consumed.push({ head, order });
  }

  #setSession(head: Head, session: Session): void {
    const { exhausted } = session;
    if (exhausted !== undefined && exhausted !== head.session.exhausted) {
      const payer = this.find(exhausted.payer);
      // A pause for its budget changes the payer, so that a raise notices it.
      if (payer !== undefined) this.#change(payer);
    }
    head.session = session;
    if (isEnded(session.status)) {
      // Nothing reads the signals of an ended session.
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

function setOrDelete<K, V>(map: Map<K, V>, key: K, value: V | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}
