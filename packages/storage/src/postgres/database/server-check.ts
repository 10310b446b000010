// assertServer: refuses a server that a new connection leads to, and that is none for us.

import { HoldfastError, UnavailableError } from "@holdfast/core";
import { shownUrl } from "./pg-errors.ts";

/** Version 13 is the first one with `pg_current_snapshot` (`arrival-poll.ts`). */
const LEAST_VERSION = 13;

/** SQL for the columns of a `ServerRow`. */
export const SERVER_COLUMNS =
  "pg_is_in_recovery() AS is_standby, current_setting('server_version') AS version, current_setting('server_version_num')::int AS number";

export interface ServerRow {
  readonly is_standby: boolean;
  readonly version: string;
  /** The first version has ten thousand times its number. */
  readonly number: number;
}

/**
 * @param isReader whether nothing is decided by what is read, so that a standby will do.
 * @throws HoldfastError `version_unsupported`, or `storage_unavailable` for a standby
 *   (postgres-database-6).
 */
export function assertServer(server: ServerRow, url: string, isReader: boolean): void {
  const at = shownUrl(url);
  if (server.number < LEAST_VERSION * 10_000)
    throw new HoldfastError("version_unsupported", `the PostgreSQL server is too old: ${at}`, {
      at,
      got: `PostgreSQL ${server.version}`,
      expected: `PostgreSQL ${LEAST_VERSION} or newer`,
      fix: "upgrade the server; nothing was changed in it",
    });
  if (server.is_standby && !isReader)
    throw new UnavailableError("storage_unavailable", `the PostgreSQL server is a standby: ${at}`, {
      at,
      got: "a server in recovery (pg_is_in_recovery)",
      expected: "the primary server",
      fix: "promote it, or have the address lead to the primary; processes that are open then go on",
    });
}
