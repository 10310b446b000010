// A storage watched over: what it answers is compared, step by step, with what it has answered before.
//
// The account is kept beside the storage, from changes and answers alone, and shares no code with it. What it finds wrong is
// told once, under the promise's id (ARCHITECTURE.md): H2 to H5, H7, H8, H10, S1, S3, L1, L2, O1, O2.

import {
  encodeRecords,
  isEnded,
  mayBecome,
  type AgentStorage,
  type Change,
  type ChangeResult,
  type ClaimResult,
  type CommitBatch,
  type JournalRecord,
  type Session,
} from "@holdfast/core";

/** What is known of one session. */
export class SessionAccount {
  readonly sessionId: string;
  row: Session | undefined;
  nextSeq = 0;
  entries = 0;
  turn = 0;
  token = 0;
  owner: string | undefined;
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

  constructor(sessionId: string) {
    this.sessionId = sessionId;
  }
}

export type Violated = (promise: string, what: string) => void;

export class WatchedStorage {
  /** What processes are connected to. */
  readonly storage: AgentStorage;
  readonly accounts = new Map<string, SessionAccount>();
  readonly #inner: AgentStorage;
  readonly #violated: Violated;
  readonly #onRow: (row: Session) => void;
  #last: Promise<unknown> = Promise.resolve();

  /** @param onRow told of every row that has changed. */
  constructor(inner: AgentStorage, violated: Violated, onRow: (row: Session) => void) {
    this.#inner = inner;
    this.#violated = violated;
    this.#onRow = onRow;
    this.storage = {
      name: inner.name,
      durable: inner.durable,
      reader: inner.reader,
      commit: (changes, now) => this.#commit(changes, now),
      claim: (claim) => this.#claim(claim),
      load: (sessionId) => inner.load(sessionId),
      arrivals: (sessionId, after) => inner.arrivals(sessionId, after),
      conversation: (sessionId, leaf) => inner.conversation(sessionId, leaf),
      due: (query) => this.#due(query),
      subscribe: (listener) => inner.subscribe(listener),
      close: () => inner.close(),
    };
  }

  account(sessionId: string): SessionAccount {
    let account = this.accounts.get(sessionId);
    if (account === undefined) this.accounts.set(sessionId, (account = new SessionAccount(sessionId)));
    return account;
  }

  #commit(changes: readonly Change[], now: number): Promise<readonly ChangeResult[]> {
    const committing = this.#inner.commit(changes, now);
    const named = changes.flatMap((change) => ("sessionId" in change ? change.sessionId : []));
    const sessionIds = [...new Set(named)];
    return this.#inOrder(committing, sessionIds, (results) => {
      changes.forEach((change, i) => this.#note(change, results[i]));
    });
  }

  #claim(claim: Parameters<AgentStorage["claim"]>[0]): Promise<ClaimResult> {
    return this.#inOrder(this.#inner.claim(claim), [], (result) => {
      if (result.status === "claimed") this.#noteClaim(claim.sessionId, claim.owner, result.token);
    });
  }

  /** It ends sessions whose cancel is overdue, so any row may change. In an order of ours, as the port promises none. */
  async #due(query: Parameters<AgentStorage["due"]>[0]): ReturnType<AgentStorage["due"]> {
    const due = await this.#inOrder(this.#inner.due(query), [...this.accounts.keys()], () => {});
    return { ...due, sessionIds: due.sessionIds.toSorted() };
  }

  /**
   * Note an answer in the order of the calls, and the rows as they stood when the call returned: every call of a storage in
   * this process is done by then, and nothing can have come in between.
   */
  #inOrder<T>(asking: Promise<T>, sessionIds: readonly string[], note: (answer: T) => void): Promise<T> {
    const reading = Promise.all(sessionIds.map((sessionId) => this.#inner.reader.session(sessionId)));
    const noted = this.#last
      .then(() => Promise.all([asking, reading]))
      .then(([answer, rows]) => {
        note(answer);
        for (const row of rows) if (row !== undefined) this.#compare(row);
        return answer;
      });
    this.#last = noted.catch(() => {});
    return noted;
  }

  #noteClaim(sessionId: string, owner: string, token: number): void {
    const account = this.account(sessionId);
    if (token <= account.token)
      this.#violated("O2", `${sessionId}: claim ${token} is not above ${account.token}`);
    if (account.owner !== undefined && account.owner !== owner)
      this.#violated("O1", `${sessionId}: claimed by ${owner} while ${account.owner} holds it`);
    account.token = token;
    account.owner = owner;
  }

  #note(change: Change, result: ChangeResult | undefined): void {
    if (!("sessionId" in change)) return;
    const account = this.account(change.sessionId);
    switch (change.type) {
      case "create_session":
        if (result?.status !== "created") return;
        if (account.row !== undefined) this.#violated("ST13", `${change.sessionId} was created twice`);
        account.token = result.token ?? 0;
        account.owner = change.claimFor?.owner;
        account.row = undefined;
        if (change.first !== undefined)
          this.#append(account, change.first.records, [], change.first.entries.length);
        return;
      case "commit_batch":
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
      case "import_session":
      case "pause_session":
      case "resume_session":
      case "set_budget":
        return; // The row says what became of it.
    }
  }

  #noteBatch(account: SessionAccount, batch: CommitBatch, result: ChangeResult | undefined): void {
    const { sessionId } = account;
    const isNewest = batch.token === account.token;
    if (result?.status === "fenced" && isNewest && account.owner !== undefined)
      this.#violated("O1", `${sessionId}: the holder of claim ${batch.token} was fenced`);
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
      case "attempt_failed":
      case "attempt_lost": {
        const last = attempts.get(record.task) ?? 0;
        if (record.attempt <= last)
          this.#violated(
            "H8",
            `${sessionId}: attempt ${record.attempt} of task ${record.task} after ${last}`,
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
    if (before !== undefined && isEnded(before.status) && JSON.stringify(before) !== JSON.stringify(row))
      this.#violated("L1", `${sessionId} was ${before.status} and changed`);
    // Several changes of one group may lie between the two: what may follow is at least never what only a start may precede.
    if (before !== undefined && !isEnded(before.status) && !mayBecome(before.status, status))
      this.#violated("L1", `${sessionId} was ${before.status} and became ${status}`);
    if (account.isCancelAcknowledged && !MAY_FOLLOW_A_CANCEL.has(status))
      this.#violated("L2", `${sessionId} is ${status} after its cancellation was acknowledged`);
    if ((status === "waiting" || status === "input_required") && row.waits.length === 0)
      this.#violated("L3", `${sessionId} is ${status} for nothing`);
    if (status === "paused" || status === "failed")
      this.#violated(
        "H5",
        `${sessionId} is ${status}: ${row.error?.message ?? row.pauseReason ?? "for no reason"}`,
      );
    this.#onRow(row);
  }
}

/** Records as a text that is the same for the same records. */
export function journalText(records: readonly JournalRecord[]): string {
  return encodeRecords(records, { put: (text) => text });
}

/** No session of a simulation fails or parks: nothing its agent does is wrong. */
const MAY_FOLLOW_A_CANCEL: ReadonlySet<string> = new Set(["cancelling", "cancelled"]);
