// Reads: every query that only reads.
//
//   - Each method is one statement, or several of one snapshot, or several whose later ones read rows that
//     never change again. No transaction is held open between calls.
//   - A second query fetches the large texts that the rows of the first one refer to.

import {
  type AuditRow,
  CorruptRecordError,
  decodeRecords,
  type Entry,
  type Hold,
  type JournalRecord,
  type JsonText,
  NotFoundError,
  type Schedule,
  type SeenSignals,
  type Session,
  type StorageReader,
  type StoredDocument,
  type StoredSignal,
  unlessCorrupt,
} from "@holdfast/core";
import type { Database, Row, Statement } from "../database/database.ts";
import { gather } from "../database/gather.ts";
import { Pending, withoutContent, type Head } from "../tables/heads.ts";
import {
  CLAIM_COLUMNS,
  corruptRow,
  ENTRY_COLUMNS,
  FROM_SESSION,
  JOURNAL_COLUMNS,
  readClaim,
  readEntry,
  readHold,
  readJournal,
  readSession,
  readSignal,
  SESSION_COLUMNS,
  SIGNAL_COLUMNS,
  Texts,
  readMarks,
} from "../tables/rows.ts";
import { documentKind, readSchedule, SCHEDULE, readAudit, readItem, type Item } from "../tables/items.ts";
import { pageOf } from "./session-page.ts";

/** Rows fetched at a time where it is not known how many will be needed. */
const PAGE_ROWS = 256;

const OF_SESSION = "lane = s.lane AND session_id = s.session_id";

/** Holds and pending signals are arrays beside the session's row, and so of the same moment. */
const HEAD_COLUMNS = `${SESSION_COLUMNS}, ${CLAIM_COLUMNS},
  EXISTS (SELECT 1 FROM session c WHERE c.parent = s.session_id) AS has_children,
  ARRAY(SELECT ord FROM signal WHERE ${OF_SESSION} ORDER BY ord) AS orders,
  ARRAY(SELECT signal_id FROM signal WHERE ${OF_SESSION} ORDER BY ord) AS signal_ids,
  ARRAY(SELECT name FROM signal WHERE ${OF_SESSION} ORDER BY ord) AS names,
  ARRAY(SELECT task FROM hold WHERE ${OF_SESSION} ORDER BY task) AS tasks,
  ARRAY(SELECT amount FROM hold WHERE ${OF_SESSION} ORDER BY task) AS amounts,
  ARRAY(SELECT checksum FROM hold WHERE ${OF_SESSION} ORDER BY task) AS hold_checksums`;

const HEADS: Statement = {
  name: "heads",
  text: `SELECT ${HEAD_COLUMNS} ${FROM_SESSION} WHERE s.session_id = ANY($1)`,
};

/** A session and all below it. */
const TREE: Statement = {
  name: "tree",
  text: `WITH RECURSIVE tree (session_id) AS (
      SELECT $1::text COLLATE "C" UNION SELECT c.session_id FROM tree JOIN session c ON c.parent = tree.session_id)
    SELECT s.parent, ${HEAD_COLUMNS} ${FROM_SESSION} WHERE s.session_id IN (SELECT session_id FROM tree)
     ORDER BY s.born, s.session_id`,
};

const SESSION: Statement = {
  name: "session",
  text: `SELECT v.nth, ${SESSION_COLUMNS} FROM unnest($1::int4[], $2::text[]) AS v (nth, session_id)
    JOIN session s ON s.session_id = v.session_id JOIN state t ON t.lane = s.lane AND t.session_id = s.session_id`,
};

/** From the row that holds the position, which is seldom the first of its row. */
const FROM_SEQ = `FROM session s JOIN journal j ON j.lane = s.lane AND j.session_id = s.session_id
  WHERE s.session_id = $1 AND j.seq >= coalesce((SELECT max(k.seq) FROM journal k
    WHERE k.lane = s.lane AND k.session_id = s.session_id AND k.seq <= $2), 0)`;

const ofJournal = JOURNAL_COLUMNS.split(", ")
  .map((column) => `j.${column}`)
  .join(", ");

/** Positions have no gaps, so a page is those up to another one. */
const JOURNAL: Statement = {
  name: "journal",
  text: `WITH page AS MATERIALIZED (SELECT v.nth, v.to_seq, s.lane, s.session_id, coalesce((SELECT max(k.seq) FROM journal k
        WHERE k.lane = s.lane AND k.session_id = s.session_id AND k.seq <= v.from_seq), 0) AS from_seq
      FROM unnest($1::int4[], $2::text[], $3::int8[], $4::int8[]) AS v (nth, session_id, from_seq, to_seq)
      JOIN session s ON s.session_id = v.session_id)
    SELECT p.nth, ${ofJournal} FROM page p JOIN journal j ON j.lane = p.lane AND j.session_id = p.session_id
       AND j.seq >= p.from_seq AND j.seq < p.to_seq ORDER BY p.nth, j.seq`,
};

interface Page {
  readonly sessionId: string;
  readonly from: number;
  readonly to: number;
}

/** From the last checkpoint on, which the row of the same snapshot says. */
const JOURNAL_TAIL: Statement = {
  name: "journal_tail",
  text: `SELECT ${ofJournal} FROM session s JOIN journal j ON j.lane = s.lane AND j.session_id = s.session_id
    WHERE s.session_id = $1 AND j.seq >= coalesce((SELECT max(k.seq) FROM journal k
      WHERE k.lane = s.lane AND k.session_id = s.session_id AND k.checkpoint = 1), 0) ORDER BY j.seq`,
};

const CHECKPOINTS: Statement = {
  name: "checkpoints",
  text: `SELECT ${ofJournal} ${FROM_SEQ} AND j.seq <= $3 AND j.checkpoint = 1 ORDER BY j.seq`,
};

const SIGNALS: Statement = {
  name: "signals",
  text: `SELECT ${SIGNAL_COLUMNS.split(", ")
    .map((column) => `g.${column}`)
    .join(", ")} FROM session s JOIN signal g ON g.lane = s.lane AND g.session_id = s.session_id
    WHERE s.session_id = $1 AND g.ord > $2 ORDER BY g.ord`,
};

const ofEntry = ENTRY_COLUMNS.split(", ")
  .map((column) => `e.${column}`)
  .join(", ");
const FROM_ENTRIES =
  "FROM session s JOIN entry e ON e.lane = s.lane AND e.session_id = s.session_id WHERE s.session_id = $1";

const ENTRIES: Statement = {
  name: "entries",
  text: `SELECT ${ofEntry} ${FROM_ENTRIES} ORDER BY e.seq LIMIT $2 OFFSET $3`,
};
const BRANCH: Statement = {
  name: "branch",
  text: `SELECT ${ofEntry} ${FROM_ENTRIES} AND e.seq <= $2 ORDER BY e.seq DESC LIMIT ${PAGE_ROWS}`,
};

export const TEXTS: Statement = {
  name: "texts",
  text: `SELECT b.address, b.content FROM session s JOIN blob b ON b.lane = s.lane AND b.session_id = s.session_id
    WHERE s.session_id = ANY($1) AND b.address = ANY($2)`,
};

const EXHAUSTED: Statement = {
  name: "exhausted",
  text: `SELECT t.session_id FROM state t JOIN session s ON s.session_id = t.session_id
    WHERE t.exhausted = $1 ORDER BY s.born, s.session_id`,
};

const SEEN: Statement = {
  name: "seen",
  text: "SELECT 1 FROM seen WHERE lane = $1 AND session_id = $2 AND mark = $3",
};

const ALL_SEEN: Statement = {
  name: "all seen",
  text: "SELECT n.mark FROM session s JOIN seen n ON n.lane = s.lane AND n.session_id = s.session_id WHERE s.session_id = $1",
};

const ITEM: Statement = {
  name: "item",
  text: "SELECT kind, key, version, next_at, body, checksum FROM item WHERE kind = $1 AND key = $2",
};

const SCHEDULES: Statement = {
  name: "schedules",
  text: `SELECT kind, key, version, next_at, body, checksum FROM item WHERE kind = '${SCHEDULE}' ORDER BY next_at, key`,
};

/** A session with all that its next driver needs. */
export interface Loaded {
  readonly session: Session;
  readonly records: readonly JournalRecord[];
  readonly signals: readonly StoredSignal[];
  readonly states: readonly JsonText[];
  readonly holds: readonly Hold[];
}

export class Reads {
  readonly #db: Database;
  readonly #instance: string;
  /** Reads many sessions together, as streams that were notified of a commit all read at once. */
  readonly #session: (sessionId: string) => Promise<readonly Row[]>;
  readonly #page: (page: Page) => Promise<readonly Row[]>;
  /** The database, as errors name it. */
  readonly at: string;

  /** @param instance the instance that reads; its own claims count as alive. */
  constructor(db: Database, at: string, instance: string) {
    this.#db = db;
    this.at = at;
    this.#instance = instance;
    this.#session = gather(db, SESSION, [["text", (sessionId) => sessionId]]);
    this.#page = gather(db, JOURNAL, [
      ["text", ({ sessionId }) => sessionId],
      ["int8", ({ from }) => from],
      ["int8", ({ to }) => to],
    ]);
  }

  // ---- heads -----------------------------------------------------------------------------------------------------

  /** The heads of these sessions, or the errors of reading them, by id. */
  async heads(sessionIds: readonly string[]): Promise<Map<string, Head | Error>> {
    const rows = await this.#db.run(HEADS, [sessionIds]);
    return this.#headsOf(rows);
  }

  /** The heads of a session and of all below it, each knowing its children. */
  async tree(sessionId: string): Promise<Map<string, Head | Error>> {
    const rows = await this.#db.run(TREE, [sessionId]);
    const heads = this.#headsOf(rows);
    for (const head of heads.values()) if (!(head instanceof Error)) head.childIds = [];
    for (const row of rows) {
      const parent = heads.get((row["parent"] as string | null) ?? "");
      if (parent !== undefined && !(parent instanceof Error))
        parent.childIds?.push(row["session_id"] as string);
    }
    return heads;
  }

  #headsOf(rows: readonly Row[]): Map<string, Head | Error> {
    return new Map(rows.map((row) => [row["session_id"] as string, this.#headOf(row)]));
  }

  #headOf(row: Row): Head | Error {
    try {
      const { lane, version, session, outputBlob } = readSession(row, this.at, new Texts(this.at));
      const pending = new Pending();
      const [orders, names] = [row["orders"] as number[], row["names"] as string[]];
      (row["signal_ids"] as string[]).forEach((id, i) => pending.add(id, orders[i]!, names[i]!));
      const { output: _output, ...kept } = withoutContent(session);
      return {
        sessionId: session.sessionId,
        lane,
        version,
        // An output that is kept apart was not read.
        session: outputBlob === undefined ? withoutContent(session) : kept,
        claim: readClaim(row, this.#instance),
        until: row["until"] as number,
        answered: pending.answers(session.waits),
        pending,
        childIds: row["has_children"] === true ? undefined : [],
        holds: new Map(this.#holdsOf(row).map(({ task, amount }) => [task, amount])),
        outputBlob,
        flight: undefined,
      };
    } catch (error) {
      if (error instanceof CorruptRecordError) return error;
      throw error;
    }
  }

  #holdsOf(row: Row): Hold[] {
    const [tasks, amounts, sums] = [
      row["tasks"] as number[],
      row["amounts"] as string[],
      row["hold_checksums"] as number[],
    ];
    return tasks.map((task, i) =>
      readHold(row["session_id"] as string, task, amounts[i]!, sums[i]!, this.at),
    );
  }

  async exhaustedBy(payer: string): Promise<string[]> {
    return (await this.#db.run(EXHAUSTED, [payer])).map((row) => row["session_id"] as string);
  }

  async hasSeen({ lane, sessionId }: Head, mark: string): Promise<boolean> {
    return (await this.#db.run(SEEN, [lane, sessionId, mark])).length > 0;
  }

  async item(kind: string, key: string): Promise<Item | undefined> {
    const [row] = await this.#db.run(ITEM, [kind, key]);
    return row === undefined ? undefined : readItem(row, this.at);
  }

  // ---- sessions --------------------------------------------------------------------------------------------------

  async session(sessionId: string): Promise<Session | undefined> {
    const [session] = await this.#sessionsOf(await this.#session(sessionId));
    return session;
  }

  #sessionsOf(rows: readonly Row[]): Promise<Session[]> {
    const ids = rows.map((row) => row["session_id"] as string);
    return this.decode(ids, (texts) => rows.map((row) => readSession(row, this.at, texts).session));
  }

  /** Read what large texts it takes, and decode once more. */
  async decode<T>(sessionIds: readonly string[], decode: (texts: Texts) => T): Promise<T> {
    const texts = new Texts(this.at);
    const decoded = decode(texts);
    if (texts.missing.size === 0) return decoded;
    texts.supply(await this.#db.run(TEXTS, [sessionIds, [...texts.missing]]));
    return decode(texts);
  }

  async load(sessionId: string): Promise<Loaded | undefined> {
    const [heads, tail, pending] = await this.#db.readAll([
      [HEADS, [[sessionId]]],
      [JOURNAL_TAIL, [sessionId]],
      [SIGNALS, [sessionId, 0]],
    ]);
    const [row] = heads!;
    if (row === undefined) return undefined;
    const loaded = await this.decode([sessionId], (texts) => {
      const { session } = readSession(row, this.at, texts);
      const records = this.#recordsOf(tail!, texts, session.checkpointSeq ?? 0);
      return {
        session,
        records,
        signals: pending!.map((signal) => readSignal(signal, this.at, texts)),
        holds: this.#holdsOf(row),
      };
    });
    const { nextSeq, checkpointSeq } = loaded.session;
    const count = nextSeq - (checkpointSeq ?? 0);
    if (loaded.records.length !== count) {
      throw corruptRow(
        this.at,
        "journal",
        sessionId,
        "rows of the journal are missing",
        `${loaded.records.length} records of ${count}`,
      );
    }
    const [first] = loaded.records;
    const base = first?.type === "checkpoint" ? first.base : undefined;
    return { ...loaded, states: base === undefined ? [] : await this.#states(sessionId, base, first!.seq) };
  }

  #recordsOf(rows: readonly Row[], texts: Texts, fromSeq: number): JournalRecord[] {
    const records: JournalRecord[] = [];
    let next: number | undefined;
    for (const row of rows) {
      const seq = row["seq"] as number;
      if (seq !== (next ?? seq))
        throw corruptRow(this.at, "journal", `${String(row["session_id"])}/${next}`, "the row is missing");
      for (const record of readJournal(row, this.at, texts)) if (record.seq >= fromSeq) records.push(record);
      next = seq + (row["count"] as number);
    }
    return records;
  }

  /** Records from `fromSeq` on, at most `limit`. */
  async journal(sessionId: string, fromSeq: number, limit: number): Promise<JournalRecord[]> {
    const rows = await this.#page({
      sessionId,
      from: fromSeq,
      to: Math.min(fromSeq + limit, Number.MAX_SAFE_INTEGER),
    });
    const records = await this.decode([sessionId], (texts) => this.#recordsOf(rows, texts, fromSeq));
    return records.slice(0, limit);
  }

  /** ST33. Payloads of the checkpoints from `base` on, up to the one before `checkpoint`. */
  async #states(sessionId: string, base: number, checkpoint: number): Promise<JsonText[]> {
    const rows = await this.#db.run(CHECKPOINTS, [sessionId, base, checkpoint]);
    const found = await this.decode([sessionId], (texts) =>
      rows
        .flatMap((row) => this.#checkpointsOf(row, texts))
        .filter(({ seq }) => seq >= base && seq < checkpoint),
    );
    if (found[0]?.seq !== base)
      throw corruptRow(
        this.at,
        "journal",
        `${sessionId}/${base}`,
        "a checkpoint that others build on is missing",
      );
    return found.map(({ payload }) => payload ?? "null");
  }

  /** Only these lines are decoded: there may be thousands of rows, and most of each is something else. */
  #checkpointsOf(row: Row, texts: Texts): JournalRecord[] {
    const lines = (row["body"] as string).split("\n").filter((line) => line.includes('"type":"checkpoint"'));
    const where = `${this.at}, table journal, row ${String(row["session_id"])}/${String(row["seq"])}`;
    return decodeRecords(lines.join("\n"), texts, where).filter(({ type }) => type === "checkpoint");
  }

  async signals(sessionId: string, after: number): Promise<StoredSignal[]> {
    const rows = await this.#db.run(SIGNALS, [sessionId, after]);
    return this.decode([sessionId], (texts) => rows.map((row) => readSignal(row, this.at, texts)));
  }

  async seenSignals(sessionId: string): Promise<SeenSignals> {
    const rows = await this.#db.run(ALL_SEEN, [sessionId]);
    return readMarks(rows.map((row) => row["mark"] as string));
  }

  async sessions(query: Parameters<StorageReader["sessions"]>[0]): Promise<Session[]> {
    const { before } = query;
    const rows = await this.#db.run(...pageOf(query));
    if (rows.length === 0 && before !== undefined && (await this.session(before)) === undefined)
      throw new NotFoundError("session_not_found", `there is no session ${before}`);
    return this.#sessionsOf(rows);
  }

  // ---- entries ---------------------------------------------------------------------------------------------------

  async entries(sessionId: string, from: number, limit: number): Promise<Entry[]> {
    const rows = await this.#db.run(ENTRIES, [sessionId, limit, from]);
    return this.#entriesOf(sessionId, rows);
  }

  #entriesOf(sessionId: string, rows: readonly Row[]): Promise<Entry[]> {
    return this.decode([sessionId], (texts) => rows.map((row) => readEntry(row, this.at, texts)));
  }

  /** From the root to `leaf`. Most conversations are a line, so one range read finds all of it; branches are passed over. */
  async conversation(sessionId: string, leaf: number): Promise<Entry[]> {
    const branch: Entry[] = [];
    let wanted: number | undefined = leaf;
    while (wanted !== undefined) {
      const page = await this.#entriesOf(sessionId, await this.#db.run(BRANCH, [sessionId, wanted]));
      if (page[0]?.id !== wanted) await this.#refuseLeaf(sessionId, wanted);
      for (const entry of page) {
        if (entry.id !== wanted) continue;
        branch.push(entry);
        wanted = entry.parent;
      }
    }
    return branch.reverse();
  }

  async #refuseLeaf(sessionId: string, wanted: number): Promise<never> {
    if ((await this.session(sessionId)) === undefined) throw sessionNotFound(sessionId);
    throw corruptRow(
      this.at,
      "entry",
      `${sessionId}/${wanted}`,
      "an entry that a conversation refers to is missing",
    );
  }

  // ---- schedules -------------------------------------------------------------------------------------------------

  async schedules(): Promise<Schedule[]> {
    return (await this.#db.run(SCHEDULES)).map((row) => readSchedule(readItem(row, this.at).body));
  }

  async document(collection: string, id: string): Promise<StoredDocument | undefined> {
    const item = await this.item(documentKind(collection), id);
    return item === undefined ? undefined : (JSON.parse(item.body) as StoredDocument);
  }

  async documents(collection: string, after: string, limit: number): Promise<StoredDocument[]> {
    const found: StoredDocument[] = [];
    for (let behind = after; found.length < limit;) {
      const asked = limit - found.length;
      const rows = await this.#db.run(ITEMS, [documentKind(collection), behind, asked]);
      const items = rows.flatMap((row) => unlessCorrupt(() => readItem(row, this.at)) ?? []);
      found.push(...items.map(({ body }) => JSON.parse(body) as StoredDocument));
      if (rows.length < asked) break;
      behind = rows.at(-1)!["key"] as string;
    }
    return found;
  }

  async audit(after: number, limit: number): Promise<AuditRow[]> {
    return (await this.#db.run(AUDIT_ROWS, [after, limit])).map((row) => readAudit(row, this.at));
  }
}

/** The items of one kind, in the order of their keys. */
const ITEMS: Statement = {
  name: "items",
  text: `SELECT kind, key, version, next_at, body, checksum FROM item
    WHERE kind = $1 AND key > $2 ORDER BY key LIMIT $3`,
};

const AUDIT_ROWS: Statement = {
  name: "audit_rows",
  text: "SELECT seq, body, checksum FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2",
};

export function sessionNotFound(sessionId: string): NotFoundError {
  return new NotFoundError("session_not_found", `there is no session ${sessionId}`);
}
