// The storage that a question needs while it waits for a person.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createRuntime, defineAgent } from "@holdfast/runtime";
import { openSqliteStorage } from "@holdfast/storage/sqlite";
import { TestClock } from "@holdfast/testkit/test-runtime";
import { expect, test } from "vitest";

const DAY_MS = 86_400_000;
const ask = defineAgent({ name: "ask", run: async (ctx) => ctx.requestInput({ prompt: "Deploy?" }) });

/** The rows of every table, and the bytes of all pages. */
function sizeOf(path: string): { readonly rows: number; readonly bytes: number } {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    const rows = tables.map(({ name }) => db.prepare(`SELECT count(*) AS n FROM "${String(name)}"`).get());
    const pages = db
      .prepare("SELECT page_count * page_size AS n FROM pragma_page_count, pragma_page_size")
      .get();
    return { rows: rows.reduce((sum, row) => sum + Number(row?.["n"]), 0), bytes: Number(pages?.["n"]) };
  } finally {
    db.close();
  }
}

test("a question that waits for 30 days adds no row and no byte, and its answer is taken then", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-question-"));
  const path = join(folder, "holdfast.db");
  const clock = new TestClock();
  const storage = await openSqliteStorage({ path });
  const runtime = createRuntime({ storage, clock });
  try {
    const before = sizeOf(path);
    const handle = await runtime.start(ask, null);
    await expect.poll(async () => (await handle.session()).status).toBe("input_required");
    const asked = sizeOf(path);
    expect(asked.rows - before.rows).toBe(4); // All rows of the session.
    for (let day = 0; day < 30; day++) await clock.advance(DAY_MS);
    expect(sizeOf(path)).toEqual(asked);
    await handle.answer({ approved: true });
    expect(await handle.result()).toEqual({ approved: true });
  } finally {
    await runtime.close();
    await storage.close();
    rmSync(folder, { recursive: true });
  }
});
