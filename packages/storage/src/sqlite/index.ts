// SqliteStorage and the ways to open it: one file, one owner process, all others through the owner or as
// readers.

export {
  askSqliteOwner,
  connectSqliteStorage,
  findSqliteOwner,
  isMarkedDatabase,
  markDatabase,
  openSqliteReader,
  openSqliteStorage,
  ownSqliteStorage,
  watchSqliteDrafts,
  withSqliteStorage,
  type OpenSqlite,
  type SqliteFileReader,
  type SqliteFileStorage,
  type StorageAccess,
} from "./open.ts";
export { type Mark } from "./file/database.ts";
export { assertSqliteVersion } from "./file/driver.ts";
export { type SqliteStorage } from "./engine/sqlite-storage.ts";
export { type VerifyReport } from "../verify-report.ts";
