// The audit in the file: `verify` checks its chain as well, even where each row is sound.

import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { rowChecksum } from "./checksum.ts";
import { ownSqliteStorage } from "../index.ts";
import { newFolder } from "../testing/folder.ts";

test("the check finds an audit row that was changed with its checksum, and a missing audit row", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  for (let n = 1; n <= 5; n++) {
    const audit = { actor: "anna", action: "a", object: `ses-${n}` };
    await storage.commit([{ type: "audited", audit }], n);
  }
  expect((await storage.verify()).problems).toEqual([]);
  expect((await storage.verify()).rows).toMatchObject({ audit: 5 });
  await storage.close();
  const database = new DatabaseSync(path);
  const { checksum: _checksum, ...row } = database.prepare("SELECT * FROM audit WHERE seq = 2").get()!;
  const forged = Object.values({ ...row, actor: "bert" }) as (string | number | null)[];
  database.prepare("UPDATE audit SET actor = 'bert', checksum = ? WHERE seq = 2").run(rowChecksum(forged));
  database.exec("DELETE FROM audit WHERE seq = 4");
  database.close();
  const again = await ownSqliteStorage({ path });
  const { problems } = await again.verify();
  expect(problems.map(({ table, message }) => [table, message.slice(0, 30)])).toEqual([
    ["audit", "row 2 does not follow from the"],
    ["audit", "row 5 does not follow from the"],
  ]);
  await again.close();
});

test("the check accepts an audit whose old rows were removed, and finds one that is gone otherwise", async () => {
  const path = `${newFolder()}/test.db`;
  const storage = await ownSqliteStorage({ path });
  for (let n = 1; n <= 5; n++)
    await storage.commit([{ type: "audited", audit: { actor: "anna", action: "a", object: "o" } }], n);
  await storage.commit([{ type: "trim_audit", before: 3, limit: 9, actor: "coordinator" }], 6);
  expect((await storage.verify()).problems).toEqual([]);
  expect((await storage.verify()).rows).toMatchObject({ audit: 4 });
  const database = new DatabaseSync(path);
  database.exec("DELETE FROM audit WHERE seq = 3");
  database.close();
  expect((await storage.verify()).problems).toMatchObject([
    { table: "audit", message: expect.stringMatching(/^row 4 does not follow/) },
  ]);
  await storage.close();
});
