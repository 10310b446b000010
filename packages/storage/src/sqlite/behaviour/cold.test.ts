import { isCampaign } from "@holdfast/testkit/campaign";
import { storageConformance, type StorageSubject } from "@holdfast/testkit/storage-conformance";
import { openForWriting } from "../file/database.ts";
import { SqliteStorage } from "../engine/sqlite-storage.ts";
import { newFolder } from "../testing/folder.ts";

// Rows are derived from the journal, the entries and the signals whenever they are not cached. Here no room
// is left to cache any, so every row is derived.
//
// `npm test` runs the parts whose changes depend on stored rows. The conformance campaign runs all parts
// (`HOLDFAST_CAMPAIGN`).
const READING_ROWS = isCampaign ? undefined : (["claims", "signals", "what is due", "any sequence"] as const);

const subject: StorageSubject = {
  name: "sqlite that keeps no unclaimed session at hand",
  follows: true,
  sequences: isCampaign ? 300 : 30,
  open: async () => {
    const path = `${newFolder()}/test.db`;
    return new SqliteStorage({ driver: openForWriting(path, true), path, headsMax: 0 });
  },
};
storageConformance(subject, READING_ROWS);
