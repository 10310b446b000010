// Databases as SQL text, to be run in an empty file or schema. Left out is what names the machine: paths and marks of processes.

import { DatabaseSync } from "node:sqlite";
import { runSql } from "@holdfast/storage/postgres-testing";

type Row = Readonly<Record<string, unknown>>;

/** From here on a row of equal letters is written as its length. */
const SAME_LETTERS = /(x)\1{999,}/g;

/** The rows of one table, each a statement. Values come quoted. */
function inserts(table: string, rows: readonly Row[], repeated: (count: number) => string): string[] {
  return rows.map((row) => {
    const values = Object.values(row).map((value) =>
      String(value).replace(SAME_LETTERS, (letters) => `' || ${repeated(letters.length)} || '`),
    );
    return `INSERT INTO ${table} VALUES (${values.join(", ")});`;
  });
}

export function dumpSqlite(path: string): string {
  const database = new DatabaseSync(path, { readOnly: true });
  const all = (sql: string): Row[] => database.prepare(sql).all();
  const made = all("SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid");
  const lines = made.map(({ sql }) => `${String(sql).replaceAll(/\s+/g, " ")};`);
  for (const { name } of made.filter(({ type }) => type === "table")) {
    const columns = all(`PRAGMA table_info(${String(name)})`).map(
      ({ name: column }) => `quote(${String(column)})`,
    );
    const where = name === "meta" ? "WHERE key <> 'path'" : "";
    const rows = all(`SELECT ${columns.join(", ")} FROM ${String(name)} ${where}`);
    lines.push(...inserts(String(name), rows, (count) => `replace(hex(zeroblob(${count})), '00', 'x')`));
  }
  for (const pragma of ["user_version", "application_id"])
    lines.push(`PRAGMA ${pragma} = ${String(all(`PRAGMA ${pragma}`)[0]![pragma])};`);
  database.close();
  return `${lines.join("\n")}\n`;
}

export async function dumpPostgres(url: string, schema: string): Promise<string> {
  const inSchema = `'${schema}'::regnamespace`;
  const columns = await runSql(
    url,
    `SELECT c.relname AS "table", a.attname AS name, format('%I %s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
        CASE WHEN a.attcollation <> t.typcollation THEN ' COLLATE "C"' ELSE '' END,
        coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), ''), CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END) AS text,
        coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '') AS settings
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
      WHERE c.relnamespace = ${inSchema} AND c.relkind = 'r' ORDER BY c.oid, a.attnum`,
  );
  const tables = Map.groupBy(columns, ({ table }) => String(table));
  const lines: string[] = [];
  for (const [table, of] of tables) {
    lines.push(
      `CREATE TABLE ${table} (${of.map(({ text }) => String(text)).join(", ")})${String(of[0]!["settings"])};`,
    );
  }
  const keys = await runSql(
    url,
    `SELECT format('ALTER TABLE %I ADD %s;', c.relname, pg_get_constraintdef(k.oid)) AS text
      FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid WHERE k.connamespace = ${inSchema} AND k.contype = 'p'
      ORDER BY c.oid`,
  );
  const indexes = await runSql(
    url,
    `SELECT pg_get_indexdef(i.indexrelid) || ';' AS text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
      WHERE c.relnamespace = ${inSchema} AND NOT i.indisprimary ORDER BY i.indexrelid`,
  );
  lines.push(...[...keys, ...indexes].map(({ text }) => String(text).replaceAll(`${schema}.`, "")));
  for (const [table, of] of tables) {
    const values = of.map(({ name }) =>
      name === "presence" ? "'NULL' AS presence" : `quote_nullable(${String(name)}::text) AS ${String(name)}`,
    );
    const rows = await runSql(
      url,
      `SELECT ${values.join(", ")} FROM ${schema}.${table} ORDER BY ${table}::text`,
    );
    lines.push(...inserts(table, rows, (count) => `repeat('x', ${count})`));
  }
  return `${lines.join("\n")}\n`;
}
