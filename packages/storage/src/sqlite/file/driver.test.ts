// openDriver: a statement is compiled once.

import { constants, DatabaseSync } from "node:sqlite";
import { expect, test, vi } from "vitest";
import { openDriver } from "./driver.ts";

// Node 22 has no authorizer, which alone shows that a statement is compiled.
test.skipIf(!("setAuthorizer" in DatabaseSync.prototype))(
  "a statement is compiled once, whatever its values",
  () => {
    const prepare = vi.spyOn(DatabaseSync.prototype, "prepare");
    const driver = openDriver(":memory:", { mode: "write", busyTimeoutMs: 0 });
    try {
      driver.exec(
        "CREATE TABLE a (id INTEGER PRIMARY KEY, name TEXT UNIQUE); CREATE TABLE b (a INTEGER, seq INTEGER)",
      );
      const asked: readonly (readonly [sql: string, parameters: number])[] = [
        ["SELECT a.id, b.seq FROM a LEFT JOIN b ON b.a = a.id WHERE a.name = ?", 1],
        ["SELECT a.id, b.seq FROM a LEFT JOIN b ON b.a = a.id WHERE a.name=?1", 1],
        ["SELECT seq FROM b WHERE a = ? ORDER BY seq", 1],
        ["SELECT seq FROM b WHERE a >= ? AND a < ? ORDER BY a, seq", 2],
      ];
      const run = (value: number): void => {
        for (const [sql, parameters] of asked)
          driver.prepare(sql).all(...Array.from({ length: parameters }, () => value));
      };
      run(0);
      let compiled = 0;
      (prepare.mock.contexts[0] as DatabaseSync).setAuthorizer(() => {
        compiled++;
        return constants.SQLITE_OK;
      });
      run(1); // A new authorizer compiles each statement once more.
      expect(compiled).toBeGreaterThan(0);
      compiled = 0;
      run(2);
      run(3);
      expect(compiled).toBe(0);
    } finally {
      prepare.mockRestore();
      driver.close();
    }
  },
);
