// `watchDatabase` records each change of a claim and each batch, in the order in which they were committed to
// their sessions.
//
// Triggers record them in the same transaction. The server's wall clock is this machine's, and its times are
// converted to monotonic ones. The product does not know these triggers.

import { openPostgresStorage } from "@holdfast/storage/postgres";
import { runSql } from "@holdfast/storage/postgres-testing";
import { defined, type JournalRecord, type Session, type StorageReader } from "@holdfast/core";
import { monotonicMs, type Batch, type ClaimChange, type FinalSession } from "./observed.ts";

const SQL = `
  CREATE SCHEMA nemesis;
  CREATE TABLE nemesis.claim (n bigserial, at float8, session_id text, token int8, holder text, ended int4,
    token_before int8, holder_before text, until_before float8);
  CREATE TABLE nemesis.batch (n bigserial, at float8, session_id text, seq int8, count int4, token int8);
  CREATE FUNCTION nemesis.now_ms() RETURNS float8 LANGUAGE sql AS
    $$ SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 $$;
  CREATE FUNCTION nemesis.claim_made() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO nemesis.claim (at, session_id, token, holder, ended, token_before, holder_before, until_before)
      VALUES (nemesis.now_ms(), NEW.session_id, NEW.token, NEW.holder, NEW.ended, 0, NULL, '-Infinity');
    RETURN NULL; END $$;
  CREATE FUNCTION nemesis.claim_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO nemesis.claim (at, session_id, token, holder, ended, token_before, holder_before, until_before)
      VALUES (nemesis.now_ms(), NEW.session_id, NEW.token, NEW.holder, NEW.ended, OLD.token, OLD.holder, OLD.until);
    RETURN NULL; END $$;
  CREATE FUNCTION nemesis.committed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO nemesis.batch (at, session_id, seq, count, token)
      SELECT nemesis.now_ms(), NEW.session_id, NEW.seq, NEW.count, token FROM holdfast.state
      WHERE lane = NEW.lane AND session_id = NEW.session_id;
    RETURN NULL; END $$;
  CREATE TRIGGER nemesis_made AFTER INSERT ON holdfast.state FOR EACH ROW
    WHEN (NEW.holder IS NOT NULL) EXECUTE FUNCTION nemesis.claim_made();
  CREATE TRIGGER nemesis_changed AFTER UPDATE ON holdfast.state FOR EACH ROW
    WHEN (OLD.token <> NEW.token OR OLD.holder IS DISTINCT FROM NEW.holder) EXECUTE FUNCTION nemesis.claim_changed();
  CREATE TRIGGER nemesis_committed AFTER INSERT ON holdfast.journal FOR EACH ROW EXECUTE FUNCTION nemesis.committed();
`;

export const JOURNAL_MAX = 100_000;
const PAGE = 1_000;

export async function watchDatabase(url: string): Promise<void> {
  await runSql(url, SQL);
}

interface Readable {
  readonly reader: Pick<StorageReader, "sessions">;
}

export interface DatabaseSeen {
  readonly claims: readonly ClaimChange[];
  readonly batches: readonly Batch[];
  readonly sessions: readonly FinalSession[];
}

export async function readDatabase(url: string): Promise<DatabaseSeen> {
  const storage = await openPostgresStorage({ url, clock: "database" });
  try {
    const tasks = new Map<string, TasksOf>();
    const sessions: FinalSession[] = [];
    for (const session of await allSessions(storage)) {
      const records = await storage.reader.journal(session.sessionId, 0, JOURNAL_MAX);
      tasks.set(session.sessionId, tasksOf(records));
      sessions.push(finalOf(session, records));
    }
    const offset = Date.now() - monotonicMs();
    const claims = await runSql(url, "SELECT * FROM nemesis.claim ORDER BY n");
    const batches = await runSql(url, "SELECT * FROM nemesis.batch ORDER BY n");
    return {
      sessions,
      claims: claims.map((row) => claimOf(row, offset)),
      batches: batches.map((row) => batchOf(row, offset, tasks)),
    };
  } finally {
    await storage.close();
  }
}

/** The sessions as they are now, without their journals. */
export async function readSessions(url: string): Promise<readonly FinalSession[]> {
  const storage = await openPostgresStorage({ url, clock: "database" });
  try {
    return (await allSessions(storage)).map((session) => finalOf(session, undefined));
  } finally {
    await storage.close();
  }
}

export async function allSessions({ reader }: Readable): Promise<readonly Session[]> {
  const all: Session[] = [];
  for (let before: string | undefined; ; before = all.at(-1)!.sessionId) {
    const page = await reader.sessions({ limit: PAGE, ...defined({ before }) });
    all.push(...page);
    if (page.length < PAGE) return all;
  }
}

/** The positions of records about a session's tasks, each with its task. */
interface TasksOf {
  readonly asked: ReadonlyMap<number, number>;
  readonly done: ReadonlyMap<number, number>;
}

function tasksOf(records: readonly JournalRecord[]): TasksOf {
  const asked = new Map<number, number>();
  const done = new Map<number, number>();
  for (const record of records) {
    if (record.type === "schedule_task") asked.set(record.seq, record.id);
    if (record.type === "task_completed" || record.type === "task_failed") done.set(record.seq, record.task);
  }
  return { asked, done };
}

export function finalOf(session: Session, records: readonly JournalRecord[] | undefined): FinalSession {
  const { sessionId, agent, status, pauseReason, error, waits, output, nextSeq, parent } = session;
  const input = session.input === undefined ? undefined : (JSON.parse(session.input) as unknown);
  return {
    sessionId,
    agent: agent.name,
    key: (input as { readonly key?: string } | undefined)?.key,
    isChild: parent !== undefined,
    status,
    pauseReason,
    error: error?.message,
    waits: waits.map((wait) => ("name" in wait ? `${wait.type} ${wait.name}` : wait.type)),
    output: output === undefined ? undefined : (JSON.parse(output) as unknown),
    input,
    isJournalWhole:
      records === undefined || (records.length === nextSeq && records.every(({ seq }, i) => seq === i)),
    handedOver: (records ?? []).flatMap((record) =>
      record.type === "attempt_failed" && record.handedOver === "running" ? [record.task] : [],
    ),
  };
}

type Row = Readonly<Record<string, unknown>>;

function claimOf(row: Row, offset: number): ClaimChange {
  return {
    at: Number(row["at"]) - offset,
    sessionId: String(row["session_id"]),
    token: Number(row["token"]),
    holder: (row["holder"] as string | null) ?? undefined,
    before: {
      token: Number(row["token_before"]),
      holder: (row["holder_before"] as string | null) ?? undefined,
      until: Number(row["until_before"]) - offset,
    },
    isEnded: Number(row["ended"]) !== 0,
  };
}

function batchOf(row: Row, offset: number, tasks: ReadonlyMap<string, TasksOf>): Batch {
  const sessionId = String(row["session_id"]);
  const [seq, count] = [Number(row["seq"]), Number(row["count"])];
  const own = tasks.get(sessionId);
  const within = (of: ReadonlyMap<number, number> = new Map()): number[] =>
    [...of].filter(([at]) => at >= seq && at < seq + count).map(([, task]) => task);
  return {
    at: Number(row["at"]) - offset,
    sessionId,
    seq,
    count,
    token: Number(row["token"]),
    asked: within(own?.asked),
    done: within(own?.done),
  };
}
