// Traces in a database of their own: asked with SQL, bounded, and never in the way.

import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { TraceEvent } from "@holdfast/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ownSqliteStorage } from "../sqlite/index.ts";
import { sqliteTracer, type SqliteTracer } from "./index.ts";

let folder: string;
let path: string;
let tracer: SqliteTracer | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-trace-"));
  path = join(folder, "trace.db");
});
afterEach(async () => {
  await tracer?.close();
  rmSync(folder, { recursive: true, force: true });
});

const committed = (nextSeq: number): TraceEvent => ({
  sessionId: "ses_1",
  at: 1,
  type: "committed",
  records: 1,
  nextSeq,
});
const started: TraceEvent = {
  sessionId: "ses_1",
  at: 2,
  type: "task_started",
  taskId: "ses_1-0",
  kind: "k",
  attempt: 1,
  input: '"secret"',
};

function rows(sql: string): Record<string, unknown>[] {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    return database.prepare(sql).all();
  } finally {
    database.close();
  }
}

test("events are rows in order with columns to search by, in a private file and without users' data", async () => {
  tracer = sqliteTracer({ path });
  tracer.trace(committed(1));
  tracer.trace(started);
  await tracer.flush();
  expect(rows("SELECT type, session_id, task_id, attempt, at FROM trace_event ORDER BY id")).toEqual([
    { type: "committed", session_id: "ses_1", task_id: null, attempt: null, at: 1 },
    { type: "task_started", session_id: "ses_1", task_id: "ses_1-0", attempt: 1, at: 2 },
  ]);
  expect(JSON.stringify(rows("SELECT event FROM trace_event"))).not.toContain("secret");
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("events are not written while they are traced, but later and at the close", async () => {
  tracer = sqliteTracer({ path });
  for (let i = 0; i < 1_200; i++) tracer.trace(committed(i));
  expect(rows("SELECT count(*) AS n FROM trace_event")).toEqual([{ n: 0 }]);
  await tracer.close();
  expect(rows("SELECT count(*) AS n FROM trace_event")).toEqual([{ n: 1_200 }]);
});

test("events beyond the limit are dropped, reported once, and counted in the file", async () => {
  const problems: string[] = [];
  tracer = sqliteTracer({ path, eventsMax: 10, onProblem: (message) => problems.push(message) });
  for (let i = 0; i < 25; i++) tracer.trace(committed(i));
  await tracer.flush();
  expect(rows("SELECT count(*) AS n FROM trace_event")).toEqual([{ n: 10 }]);
  expect(rows("SELECT events FROM dropped")).toEqual([{ events: 15 }]);
  expect(problems).toHaveLength(1);
});

test("a file that another process has locked costs events and no time", async () => {
  const problems: string[] = [];
  tracer = sqliteTracer({ path, onProblem: (message) => problems.push(message) });
  const other = new DatabaseSync(path);
  other.exec("BEGIN IMMEDIATE");
  tracer.trace(committed(1));
  await tracer.flush();
  expect(problems).toEqual([expect.stringContaining("locked")]);
  other.exec("ROLLBACK");
  other.close();
  tracer.trace(committed(2));
  await tracer.flush();
  expect(rows("SELECT events FROM dropped")).toEqual([{ events: 1 }]);
  expect(rows("SELECT count(*) AS n FROM trace_event")).toEqual([{ n: 1 }]);
});

test("the tracer keeps only the youngest events", async () => {
  tracer = sqliteTracer({ path, rowsMax: 3 });
  for (let i = 0; i < 10; i++) tracer.trace(committed(i));
  await tracer.flush();
  expect(rows("SELECT event ->> 'nextSeq' AS seq FROM trace_event ORDER BY id")).toEqual([
    { seq: 7 },
    { seq: 8 },
    { seq: 9 },
  ]);
});

test("the database of the sessions is refused and not touched", async () => {
  const storage = await ownSqliteStorage({ path });
  await storage.close();
  const before = readFileSync(path);
  expect(() => sqliteTracer({ path })).toThrow(/it is the database of something else/);
  expect(readFileSync(path).equals(before)).toBe(true);
  expect(() => sqliteTracer({ path: join(folder, "no", "such.db") })).toThrow(/no trace can be written/);
});
