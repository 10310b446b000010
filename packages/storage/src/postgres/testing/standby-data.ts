// copyData: a copy of a running server's data, from which a standby of this server starts.
//
// The server is told of the copy, as `pg_basebackup` would do it, which not every package of PostgreSQL has.

import { spawnSync, type SpawnOptions } from "node:child_process";
import { chownSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";

/** @param how as the user whose files they are. */
export async function copyData(
  from: { readonly url: string; readonly folder: string },
  to: string,
  how: SpawnOptions,
): Promise<void> {
  const client = new Client({ connectionString: from.url });
  await client.connect();
  try {
    await client.query("SELECT pg_backup_start('standby', true)");
    // Files that the server removes meanwhile are no part of the copy, and `cp` complains.
    spawnSync("cp", ["-r", join(from.folder, "data"), to], { ...how, stdio: "ignore" });
    const { rows } = await client.query<{ labelfile: string }>("SELECT labelfile FROM pg_backup_stop(false)");
    for (const name of ["postmaster.pid", "postmaster.opts"]) rmSync(join(to, name), { force: true });
    const { hostname, port, username } = new URL(from.url);
    const primary = `host=${hostname} port=${port} user=${username} application_name=standby`;
    const owner = statSync(to);
    for (const [name, text] of [
      ["backup_label", rows[0]!.labelfile],
      ["standby.signal", ""],
      ["postgresql.auto.conf", `primary_conninfo = '${primary}'\n`],
    ] as const) {
      writeFileSync(join(to, name), text);
      chownSync(join(to, name), owner.uid, owner.gid);
    }
  } finally {
    await client.end();
  }
}
