import { storageConformance, type StorageSubject } from "@holdfast/testkit/storage-conformance";
import { openForWriting } from "../file/database.ts";
import { SqliteStorage } from "../engine/sqlite-storage.ts";
import { newFolder } from "../testing/folder.ts";

// Rows are derived from the journal, the entries and the signals whenever they are not at hand. With no room to keep any,
// that is always.
//
// `npm test` runs the parts whose changes read what stands in the rows before; the conformance campaign runs all parts
// (`HOLDFAST_CAMPAIGN`).
const READING_ROWS =
  process.env["HOLDFAST_CAMPAIGN"] === undefined
    ? ([
        "transitions",
        "claims",
        "signals",
        "cancelling and ending",
        "parents and children",
        "budgets",
        "what is due",
        "any sequence",
      ] as const)
    : undefined;

const subject: StorageSubject = {
  name: "sqlite that keeps no unclaimed session at hand",
  follows: true,
  open: async () => {
    const path = `${newFolder()}/test.db`;
    return new SqliteStorage({ driver: openForWriting(path, true), path, headsMax: 0 });
  },
};
storageConformance(subject, READING_ROWS);
