// PostgresStorage and the ways to open it: one database, any number of processes.

export {
  openPostgresReader,
  openPostgresStorage,
  type OpenPostgres,
  type PostgresDatabaseReader,
} from "./open.ts";
export { shownUrl } from "./database/pg-errors.ts";
export { type PostgresStorage } from "./postgres-storage.ts";
