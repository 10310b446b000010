// assertServer: refuses a server that a new connection leads to, and that is none for us.

import { UnavailableError } from "@holdfast/core";
import { shownUrl } from "./pg-errors.ts";

/** SQL for the columns of a `ServerRow`. */
export const SERVER_COLUMNS = "pg_is_in_recovery() AS is_standby";

export interface ServerRow {
  readonly is_standby: boolean;
}

/**
 * @param isReader whether nothing is decided by what is read, so that a standby will do.
 * @throws HoldfastError `storage_unavailable` for a standby (postgres-database-6).
 */
export function assertServer(server: ServerRow, url: string, isReader: boolean): void {
  const at = shownUrl(url);
  if (server.is_standby && !isReader)
    throw new UnavailableError("storage_unavailable", `the PostgreSQL server is a standby: ${at}`, {
      at,
      got: "a server in recovery (pg_is_in_recovery)",
      expected: "the primary server",
      fix: "promote it, or have the address lead to the primary; processes that are open then go on",
    });
}
