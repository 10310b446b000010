import { storageConformance } from "@holdfast/testkit/storage-conformance";
import { openSqliteStorage } from "./index.ts";
import type { SqliteStorage } from "./sqlite-storage.ts";
import { newFolder } from "./testing/folder.ts";

storageConformance({
  name: "sqlite",
  follows: true,
  open: () => openSqliteStorage({ path: `${newFolder()}/test.db` }),
  reopen: async (storage) => {
    const { path } = storage as SqliteStorage;
    await storage.close();
    return openSqliteStorage({ path });
  },
});
