import { storageConformance } from "@holdfast/testkit/storage-conformance";
import { openForWriting } from "../file/database.ts";
import { SqliteStorage } from "../engine/sqlite-storage.ts";
import { newFolder } from "../testing/folder.ts";

// Rows are derived from the journal, the entries and the signals whenever they are not at hand. With no room to keep any,
// that is always.
storageConformance({
  name: "sqlite that keeps no unclaimed session at hand",
  follows: true,
  open: async () => {
    const path = `${newFolder()}/test.db`;
    return new SqliteStorage({ driver: openForWriting(path, true), path, headsMax: 0 });
  },
});
