// `WatchedStorage`: a storage whose answers are compared, step by step, with its earlier answers.
//
// It keeps an account of each session from changes and answers alone, and shares no code with the storage.
// It reports a violation once, under its promise: H2 to H5, H7, H8, H10, S1, S3, S4, L1, L2, B1 to B3, O1,
// O2. After every call it reads the rows and their pending signals, which show parents, children and their
//     events.

import {
  type AgentStorage,
  type Change,
  type ChangeResult,
  type ChildEvent,
  type ClaimResult,
  type CommitBatch,
  decodeJson,
  type Effect,
  encodeRecords,
  type FireSchedule,
  importedBy,
  isEnded,
  isLastEvent,
  type JournalRecord,
  mayBecome,
  type ParentRef,
  type Session,
  storageWith,
  type StoredSignal,
} from "@holdfast/core";
import { checkAccount, checkSpending, type Step, type Violated } from "./account-checks.ts";
import type { Watcher } from "./watcher.ts";

/** The expected state of one session. */
export class SessionAccount {
  readonly sessionId: string;
  row: Session | undefined;
  nextSeq = 0;
  entries = 0;
  turn = 0;
  token = 0;
  owner: string | undefined;
  /** When its lease passes, by the storage's clock. */
  until = 0;
  isCancelAcknowledged = false;
  readonly records: JournalRecord[] = [];
  /** Signals stored and not consumed, by name, in the order they were stored. */
  readonly pending = new Map<string, string[]>();
  /** Ids of consumed signals. */
  readonly consumed = new Set<string>();
  /** Outcomes in the journal, by the number of their task. */
  readonly outcomes = new Map<number, string>();
  readonly attempts = new Map<number, number>();
  readonly timers = new Map<number, number>();
  inbox = 0;
  /** Last words of children, by the name of their signal. */
  readonly ends = new Map<string, number>();
  reportedTokens = 0; // By attempts in the journal.

  constructor(sessionId: string) {
    this.sessionId = sessionId;
  }
}

export class WatchedStorage {
  /** The storage that processes connect to. */
  readonly storage: AgentStorage;
  readonly accounts = new Map<string, SessionAccount>();
  readonly #inner: AgentStorage;
  readonly #violated: Violated;
  readonly #watcher: Watcher;
  /** Times for which schedules that are there have fired. */
  readonly #fired = new Map<string, Set<number>>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(inner: AgentStorage, violated: Violated, watcher: Watcher) {
    this.#inner = inner;
    this.#violated = violated;
    this.#watcher = watcher;
    this.storage = storageWith(inner, {
      commit: (changes, now) => this.#commit(changes, now),
      claim: (claim) => this.#claim(claim),
      renew: (renewal) => this.#renew(renewal),
      due: (query) => this.#due(query),
    });
  }

  account(sessionId: string): SessionAccount {
    let account = this.accounts.get(sessionId);
    if (account === undefined) this.accounts.set(sessionId, (account = new SessionAccount(sessionId)));
    return account;
  }

  /**
   * B1 compares reservations with the limits of their moment. A group with a change of limits is therefore
   * committed in parts, and the rows are read after each. All parts are called at once without faults between
   * them, so other processes see one group.
   */
  #commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    const at = changes.length === 1 ? -1 : changes.findIndex(setsLimits);
    if (at === -1) return this.#commitPart(changes, now);
    const parts = [changes.slice(0, at), changes.slice(at, at + 1), changes.slice(at + 1)];
    const committing = parts.filter(({ length }) => length > 0).map((part) => this.#commit(part, now));
    return Promise.all(committing).then((results) => results.flat());
  }

  #commitPart(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    const committing = this.#inner.commit(changes, now);
    const named = changes.flatMap(namedBy);
    const note = (results: readonly ChangeResult[]): void =>
      changes.forEach((change, i) => this.#note(change, results[i]));
    return this.#inOrder(committing, named, note, now);
  }

  #claim(claim: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    return this.#inOrder(this.#inner.claim(claim), undefined, (result) => {
      if (result.status === "claimed") this.#noteClaim(claim, result.token);
    });
  }

  #renew(renewal: Parameters<AgentStorage["renew"]>[0]): ReturnType<AgentStorage["renew"]> {
    return this.#inOrder(this.#inner.renew(renewal), [], () => {
      for (const account of this.accounts.values()) {
        if (account.owner === renewal.owner && renewal.sessionIds?.includes(account.sessionId) !== false)
          this.#noteRenewed(account, renewal);
      }
    });
  }

  #noteRenewed(
    account: SessionAccount,
    { now, leaseMs }: { readonly now: number; readonly leaseMs: number },
  ): void {
    account.until = Math.max(account.until, now + leaseMs);
  }

  /**
   * `due` ends sessions whose cancel is overdue, so any row may change. The result is sorted, as the port
   * promises no order.
   */
  async #due(query: Parameters<AgentStorage["due"]>[0]): ReturnType<AgentStorage["due"]> {
    const due = await this.#inOrder(this.#inner.due(query), [], () => {});
    return { ...due, sessionIds: due.sessionIds.toSorted() };
  }

  /**
   * Note the answers in the order of the calls, each with the rows at the time when the call returned. A
   * storage in this process has performed the call by then, and no other call can come in between.
   */
  #inOrder<T>(
    asking: Promise<T>,
    named: readonly string[] | undefined,
    note: (answer: T) => void,
    now = 0,
  ): Promise<T> {
    const { reader } = this.#inner;
    // A change reaches sessions above and below, so all rows are read, also those that an earlier call makes
    // and nobody has noted.
    for (const sessionId of named ?? []) this.account(sessionId);
    const sessionIds = named === undefined ? [] : [...this.accounts.keys()];
    const reading = Promise.all(
      sessionIds.map(async (sessionId) => {
        const [row, signals] = await Promise.all([
          reader.session(sessionId),
          reader.pendingSignals(sessionId),
        ]);
        return row === undefined ? [] : [{ row, signals }];
      }),
    );
    const noted = this.#last
      .then(() => Promise.all([asking, reading]))
      .then(([answer, found]) => {
        note(answer);
        this.#look(found.flat(), now);
        return answer;
      });
    this.#last = noted.catch(() => {});
    return noted;
  }

  /** @param now the time of the commit after which the rows were read; 0 after another call. */
  #look(
    found: readonly { readonly row: Session; readonly signals: readonly StoredSignal[] }[],
    now: number,
  ): void {
    const steps: Step[] = [];
    for (const { row, signals } of found) {
      const { row: before } = this.account(row.sessionId);
      for (const signal of signals) this.#noteFound(row.sessionId, signal);
      this.#compare(row);
      if (before === row) continue;
      steps.push({ before, after: row });
      if (before === undefined) this.#watcher.born(row);
    }
    for (const { before, after } of steps) checkAccount({ before, after }, now, this.#violated);
    for (const step of steps) this.#judgeFamily(step);
    for (const { before, after } of steps) checkSpending({ before, after }, this.#violated);
    for (const { after } of steps) this.#watcher.changed(after);
  }

  /** Note a pending signal, which another session may have sent. */
  #noteFound(sessionId: string, { signalId, name, payload }: StoredSignal): void {
    const { pending, consumed, ends } = this.account(sessionId);
    const waiting = pending.get(name) ?? [];
    if (waiting.includes(signalId) || consumed.has(signalId)) return;
    pending.set(name, [...waiting, signalId]);
    if (!isLastWord(name, payload)) return;
    const count = (ends.get(name) ?? 0) + 1;
    ends.set(name, count);
    if (count > 1) this.#violated("S4", `${sessionId} was told the end of ${name} ${count} times`);
  }

  /** S4. The consequences of a session's step for the sessions above and below it are stored in the same transaction. */
  #judgeFamily({ before, after }: Step): void {
    const { sessionId, parent, handedOffTo, cancel } = after;
    const isNews = isEnded(after.status) && (before === undefined || !isEnded(before.status));
    if (isNews && parent !== undefined && handedOffTo === undefined) {
      const above = this.account(parent.sessionId);
      const isListening = above.row !== undefined && !isEnded(above.row.status);
      for (const name of [`child:${parent.child}`, `child-end:${parent.child}`]) {
        if (isListening && !above.ends.has(name))
          this.#violated("S4", `${sessionId} has ended, and ${parent.sessionId} was not told by ${name}`);
      }
    }
    if (before === undefined && parent !== undefined) this.#judgePlace(sessionId, parent);
    const isCancelled = cancel !== undefined && before?.cancel === undefined && before !== undefined;
    const above = before === undefined ? this.account(parent?.sessionId ?? "").row : undefined;
    if (above?.cancel !== undefined && cancel === undefined)
      this.#violated("S4", `${sessionId} was asked for by ${above.sessionId}, which was being cancelled`);
    const isHard = isNews && cancel?.mode === "hard";
    if (!isNews && !isCancelled) return;
    for (const { row } of this.accounts.values()) {
      if (row === undefined || isEnded(row.status)) continue;
      const isBelow = this.#isBelow(row, sessionId);
      if (isBelow && isHard)
        this.#violated("S4", `${row.sessionId} goes on, and ${sessionId} was cancelled hard`);
      if (isBelow && isCancelled && row.cancel === undefined && !this.#isCutOff(row, sessionId))
        this.#violated("S4", `the cancel of ${sessionId} did not reach ${row.sessionId}`);
      if (!isNews || row.parent?.sessionId !== sessionId) continue;
      const { onEnd } = row.parent;
      if (onEnd === "cancel" && row.cancel === undefined)
        this.#violated("S4", `${row.sessionId} goes on, and its parent ${sessionId} has ended`);
      if (onEnd === "wait" && after.status === "completed")
        this.#violated("S4", `${sessionId} has completed, and was to wait for ${row.sessionId}`);
    }
  }

  /**
   * At most one active session at a time is a given child of its parent: a successor begins when its
   * predecessor has ended.
   */
  #judgePlace(sessionId: string, { sessionId: above, child }: ParentRef): void {
    for (const { row } of this.accounts.values()) {
      if (row?.parent?.sessionId !== above || row.parent.child !== child) continue;
      if (row.sessionId !== sessionId && !isEnded(row.status))
        this.#violated("S4", `${sessionId} took over from ${row.sessionId}, which goes on`);
    }
  }

  /** Whether a session between this one and `top` has a cancel of its own, whose end reaches this session too. */
  #isCutOff({ parent }: Session, top: string): boolean {
    for (let id = parent?.sessionId; id !== undefined && id !== top;) {
      const above = this.accounts.get(id)?.row;
      if (above?.cancel !== undefined && above.cancel.cause !== "parent") return true;
      id = above?.parent?.sessionId;
    }
    return false;
  }

  #isBelow(row: Session, sessionId: string): boolean {
    let above = row.parent;
    while (above !== undefined) {
      if (above.sessionId === sessionId) return true;
      above = this.accounts.get(above.sessionId)?.row?.parent;
    }
    return false;
  }

  #noteClaim({ sessionId, owner, now, leaseMs }: Parameters<AgentStorage["claim"]>[0], token: number): void {
    const account = this.account(sessionId);
    if (token <= account.token)
      this.#violated("O2", `${sessionId}: claim ${token} is not above ${account.token}`);
    if (account.owner !== undefined && account.owner !== owner && account.until > now)
      this.#violated("O1", `${sessionId}: claimed by ${owner} while ${account.owner} holds it`);
    const before = account.owner === owner ? undefined : account.owner;
    account.token = token;
    account.owner = owner;
    account.until = now + leaseMs;
    this.#watcher.claimed?.(sessionId, owner, before);
  }

  #note(change: Change, result: ChangeResult | undefined): void {
    if (change.type === "audited" && change.change !== undefined) return this.#note(change.change, result);
    if (change.type === "fire_schedule" && result?.status === "done") this.#noteFiring(change);
    if (change.type === "remove_schedule") this.#fired.delete(change.scheduleId);
    if (change.type === "remove_ended" && result?.status === "deleted")
      // Only the storage knows which are gone if some stayed.
      if (result.sessions === change.sessionIds.length)
        for (const sessionId of change.sessionIds) this.accounts.delete(sessionId);
    if (!("sessionId" in change)) return;
    const account = this.account(change.sessionId);
    switch (change.type) {
      case "create_session":
        if (result?.status !== "created") return;
        if (account.row !== undefined) this.#violated("ST13", `${change.sessionId} was created twice`);
        account.token = result.token ?? 0;
        account.owner = change.claimFor?.owner;
        account.until = Infinity;
        account.row = undefined;
        if (change.first !== undefined)
          this.#append(account, change.first.records, [], change.first.entries.length);
        return;
      case "commit_batch":
        this.#noteTimers(account, change);
        this.#noteBatch(account, change, result);
        return;
      case "send_signal":
        if (result?.status !== "stored") return;
        if (result.order <= account.inbox)
          this.#violated("S1", `${change.sessionId}: signal ${result.order} after ${account.inbox}`);
        account.inbox = result.order;
        account.pending.set(change.name, [...(account.pending.get(change.name) ?? []), change.signalId]);
        return;
      case "request_cancel":
        account.isCancelAcknowledged ||= result?.status === "requested";
        return;
      case "release_claim":
        if (result?.status === "released") account.owner = undefined;
        return;
      case "delete_session":
        if (result?.status === "deleted") this.accounts.delete(change.sessionId);
        return;
      case "import_session":
      case "import_tree":
        for (const { sessionId, records, entries } of result?.status === "created" ? importedBy(change) : [])
          this.#append(this.account(sessionId), records, [], entries.length);
        account.reportedTokens = 0; // The origin has spent them.
        return;
      case "pause_session":
      case "begin_move":
      case "end_move":
      case "resume_session":
      case "set_budget":
      case "set_title":
        return; // The row shows the effect.
    }
  }

  /**
   * K10c. A schedule fires once for a time. A schedule that is put again after its removal counts as another
   *     one. An old request
   * can give both a time in common; the id of an effect contains the time, so it is applied once (S5, ST9).
   */
  #noteFiring({ scheduleId, dueAt }: FireSchedule): void {
    const times = this.#fired.get(scheduleId) ?? new Set<number>();
    if (times.has(dueAt)) this.#violated("K10c", `schedule ${scheduleId} for ${dueAt} fired twice`);
    this.#fired.set(scheduleId, times.add(dueAt));
  }

  #noteBatch(account: SessionAccount, batch: CommitBatch, result: ChangeResult | undefined): void {
    const { sessionId } = account;
    const isNewest = batch.token === account.token;
    if (result?.status === "fenced" && isNewest && account.owner !== undefined)
      this.#violated("O1", `${sessionId}: the holder of claim ${batch.token} was fenced`);
    if (result?.status === "invalid" && account.isCancelAcknowledged) this.#watcher.refused?.(sessionId);
    if (result?.status !== "committed") return;
    if (!isNewest)
      this.#violated("O1", `${sessionId}: committed under ${batch.token}, and ${account.token} is newest`);
    if (batch.firstSeq < account.nextSeq && batch.records.length > 0) {
      this.#noteResent(account, batch);
      return;
    }
    if (batch.firstSeq !== account.nextSeq)
      this.#violated("H4", `${sessionId}: a batch at ${batch.firstSeq}, the journal has ${account.nextSeq}`);
    this.#append(account, batch.records, batch.consumed, batch.entries.length);
  }

  /** S3. No batch records that a timer has fired before its time by storage's clock. */
  #noteTimers({ sessionId, timers }: SessionAccount, { records }: CommitBatch): void {
    const now = this.#watcher.servedAt?.() ?? Infinity;
    for (const record of records) {
      const fireAt = record.type === "timer_fired" ? timers.get(record.timer) : undefined;
      if (fireAt !== undefined && now < fireAt)
        this.#violated("S3", `${sessionId}: a timer was told to have fired ${fireAt - now} ms early`);
    }
  }

  /** H3. */
  #noteResent(account: SessionAccount, { firstSeq, records }: CommitBatch): void {
    const held = account.records.slice(firstSeq, firstSeq + records.length);
    if (journalText(held) !== journalText(records))
      this.#violated("H3", `${account.sessionId}: other records at ${firstSeq} were answered with committed`);
  }

  #append(
    account: SessionAccount,
    records: readonly JournalRecord[],
    consumed: readonly string[],
    entries: number,
  ): void {
    for (const record of records) this.#noteRecord(account, record);
    for (const signalId of consumed) this.#noteConsumed(account, signalId);
    account.nextSeq += records.length;
    account.entries += entries;
  }

  #noteRecord(account: SessionAccount, record: JournalRecord): void {
    const { sessionId, attempts, outcomes, timers } = account;
    if (record.seq !== account.records.length)
      this.#violated("H4", `${sessionId}: record ${record.seq} where ${account.records.length} is next`);
    account.records.push(record);
    this.#watcher.recorded?.(sessionId, record);
    const isKnown = "task" in record && outcomes.has(record.task); // Kept before it was delivered.
    if ("usage" in record && record.usage !== undefined && !isKnown)
      account.reportedTokens += record.usage.inputTokens + record.usage.outputTokens;
    switch (record.type) {
      case "start_timer":
        timers.set(record.id, record.fireAt);
        return;
      case "timer_fired": {
        const fireAt = timers.get(record.timer) ?? Infinity;
        if (record.at < fireAt)
          this.#violated("S3", `${sessionId}: timer ${record.timer} fired ${fireAt - record.at} ms early`);
        timers.delete(record.timer); // Twice is before its time.
        return;
      }
      case "checkpoint":
        if (record.turn <= account.turn)
          this.#violated("H10", `${sessionId}: checkpoint ${record.turn} after ${account.turn}`);
        account.turn = record.turn;
        return;
      case "forked":
        attempts.clear(); // The fork schedules open tasks again, also a failed task whose failure was not delivered.
        for (const [task, outcome] of outcomes) if (outcome.startsWith("task_failed")) outcomes.delete(task);
        return;
      case "attempt_failed":
      case "attempt_lost": {
        if (record.type === "attempt_lost" ? record.begins === true : record.handedOver === "waiting") return;
        if (record.attempt <= (attempts.get(record.task) ?? 0))
          this.#violated(
            "H8",
            `${sessionId}: attempt ${record.attempt} of task ${record.task} after ${attempts.get(record.task)}`,
          );
        attempts.set(record.task, record.attempt);
        return;
      }
      case "outcome_kept":
      case "task_completed":
      case "task_failed": {
        const type = record.type === "outcome_kept" ? record.outcome : record.type;
        const outcome = `${type} ${record.payload ?? ""}`;
        const known = outcomes.get(record.task);
        if (known !== undefined && known !== outcome)
          this.#violated("H7", `${sessionId}: task ${record.task} ended as ${known} and then as ${outcome}`);
        outcomes.set(record.task, outcome);
        return;
      }
      default:
        return;
    }
  }

  /** S1: once, and the oldest of its name first. */
  #noteConsumed(account: SessionAccount, signalId: string): void {
    const { sessionId, consumed, pending } = account;
    if (consumed.has(signalId)) this.#violated("S1", `${sessionId}: signal ${signalId} was consumed twice`);
    consumed.add(signalId);
    for (const [name, waiting] of pending) {
      const at = waiting.indexOf(signalId);
      if (at === -1) continue;
      if (at > 0) this.#violated("S1", `${sessionId}: signal "${name}" overtook ${at} older ones`);
      waiting.splice(at, 1);
      return;
    }
    this.#violated("S1", `${sessionId}: consumed ${signalId}, which was never stored`);
  }

  #compare(row: Session): void {
    const account = this.account(row.sessionId);
    const before = account.row;
    if (before === row) return;
    account.row = row;
    const { sessionId, status } = row;
    if (row.nextSeq !== account.nextSeq || row.entryCount !== account.entries)
      this.#violated(
        "H2",
        `${sessionId}: ${row.nextSeq} records and ${row.entryCount} entries, and ${account.nextSeq} and ${account.entries} were committed`,
      );
    if (before !== undefined && isEnded(before.status) && endText(before) !== endText(row))
      this.#violated("L1", `${sessionId} was ${before.status} and changed`);
    // Several changes of one group may lie between the two: what may follow is at least never what only a
    // start may precede.
    if (before !== undefined && !isEnded(before.status) && !mayBecome(before.status, status))
      this.#violated("L1", `${sessionId} was ${before.status} and became ${status}`);
    account.isCancelAcknowledged ||= row.cancel !== undefined;
    if (account.isCancelAcknowledged && !MAY_FOLLOW_A_CANCEL.has(status))
      this.#violated("L2", `${sessionId} is ${status} after its cancellation was acknowledged`);
    if ((status === "waiting" || status === "input_required") && row.waits.length === 0)
      this.#violated("L3", `${sessionId} is ${status} for nothing`);
    if (status === "paused" && !FIXED_BY_PEOPLE.has(row.pauseReason) && !isStoppedTooOften(row))
      this.#violated(
        "H5",
        `${sessionId} is paused: ${row.error?.message ?? row.pauseReason ?? "for no reason"}`,
      );
  }
}

function setsLimits(change: Change): boolean {
  return change.type === "set_budget" || (change.type === "audited" && change.change?.type === "set_budget");
}

/** The row of an ended session without its account, which the sessions that it left may still spend. */
function endText({ account: _account, ...row }: Session): string {
  return JSON.stringify(row);
}

function namedBy(change: Change): readonly string[] {
  if (change.type === "audited") return change.change === undefined ? [] : namedBy(change.change);
  const effects = effectsOf(change).map(({ sessionId }) => sessionId);
  return "sessionId" in change ? [change.sessionId, ...effects] : effects;
}

function effectsOf(change: Change): readonly Effect[] {
  if (change.type === "commit_batch") return change.effects ?? [];
  if (change.type === "fire_schedule") return [change.effect];
  return change.type === "create_session" ? (change.first?.effects ?? []) : [];
}

function isLastWord(name: string, payload: string | undefined): boolean {
  if (name.startsWith("child-end:")) return true;
  if (!name.startsWith("child:") || payload === undefined) return false;
  return isLastEvent(decodeJson(payload) as ChildEvent);
}

/** Records as a text that is the same for the same records. */
export function journalText(records: readonly JournalRecord[]): string {
  return encodeRecords(records, { put: (text) => text });
}

/** A task was handed over ten times: processes here stop in order again and again, and give no grace. */
export function isStoppedTooOften({ pauseReason, error }: Session): boolean {
  return pauseReason === "agent_fault" && error?.code === "session_paused";
}

/** The cause of `poison` here is the network, which costs runners their sessions again and again. */
const FIXED_BY_PEOPLE: ReadonlySet<string | undefined> = new Set(["by_user", "budget_exceeded", "poison"]);
const MAY_FOLLOW_A_CANCEL: ReadonlySet<string> = new Set(["cancelling", "cancelled", "paused", "failed"]);
