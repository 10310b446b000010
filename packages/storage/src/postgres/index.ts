// PostgreSQL storage: one database, any number of processes.

export { openPostgresStorage, type OpenPostgres } from "./open.ts";
export { type PostgresStorage } from "./postgres-storage.ts";
