// Whether the sessions of a database may run on this machine (`withOwnStorage`, `requireOwnDatabase`).
//
//   own-database-1. A session has the rights of its start. In a database that came with a clone somebody else
//       gave them. A database inside of a project therefore bears a mark of its user. Without it nothing in it runs until the user has seen these rights (`holdfast agents trust
//       --sessions`). Reading and answering start nothing. Databases of coordinators, and outside of a project, are their operator's.

import { existsSync, realpathSync } from "node:fs";
import { dirname, sep } from "node:path";
import { HoldfastError } from "@holdfast/core";
import type { Io } from "@holdfast/terminal/frame/command";
import { showWarnings, withStorage, type Access } from "./find-session.ts";
import type { Database } from "./project.ts";

/** Run sessions of a database, whichever process owns it. @throws as `requireOwnDatabase` and `withStorage` do. */
export async function withOwnStorage<T>(
  database: Database,
  io: Io,
  work: (access: Access) => Promise<T>,
): Promise<T> {
  await requireOwnDatabase(database);
  return withStorage(database, (access) => {
    showWarnings(access, io);
    return work(access);
  });
}

/** @throws HoldfastError `policy_denied` for a database whose sessions this user may not have started. */
export async function requireOwnDatabase(database: Database): Promise<void> {
  if (await isOwnDatabase(database)) return;
  const { path } = database;
  throw new HoldfastError(
    "policy_denied",
    "the database of this project was not made by you on this machine",
    {
      at: path,
      got: "sessions that bring their own rights, without the mark of your data folder",
      expected: "a database that you have made, or whose sessions you have trusted",
      fix: "run `holdfast agents trust --sessions`, which shows their rights, or move the file away, or use --db",
    },
  );
}

/** own-database-1. */
export async function isOwnDatabase({ path, coordinator, own }: Database): Promise<boolean> {
  if (coordinator !== undefined || own === undefined || !existsSync(path) || !isInside(path, own.project))
    return true;
  const { isMarkedDatabase } = await import("@holdfast/storage/sqlite");
  return isMarkedDatabase(path, own.mark);
}

function isInside(path: string, project: string): boolean {
  const folder = realpathSync(dirname(path));
  const root = realpathSync(project);
  return folder === root || folder.startsWith(`${root}${sep}`);
}
