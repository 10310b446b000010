// SQLite storage: one file, one owner process, everyone else through the owner or as a reader.

export {
  connectSqliteStorage,
  openSqliteReader,
  openSqliteStorage,
  withSqliteStorage,
  type OpenSqlite,
  type SqliteFileReader,
  type StorageAccess,
} from "./open.ts";
export { makeFolders } from "./paths.ts";
export { type OwnerInfo } from "./ownership.ts";
export { type SqliteStorage } from "./sqlite-storage.ts";
export { type VerifyProblem, type VerifyReport } from "../verify-report.ts";
