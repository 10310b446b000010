// Works on a database until the work is done, whichever process owns the database (`acrossOwners`).
//
//   across-owners-2. The owner of the database may end while this process works over the owner's socket. This
//       process then continues as after a crash of its own. It opens the storage again, as the owner or as a
//       client of the next owner, and starts from the last commit. A database that disappeared with its owner
//       is lost. An empty one in its place would hide the loss.

import { existsSync } from "node:fs";
import { HoldfastError, type AgentStorage } from "@holdfast/core";
import type { Io } from "../frame/command.ts";
import { showWarnings, withStorage, type Access } from "./find-session.ts";
import { guardOwner, type GuardedStorage } from "./owner-guard.ts";
import type { Database } from "./project.ts";

/** @param work may be called again; answers `undefined` when it noticed that the owner is gone. */
export async function acrossOwners<T>(
  database: Database,
  io: Io,
  work: (storage: AgentStorage, owner?: GuardedStorage) => Promise<T | undefined>,
): Promise<T> {
  for (let isFirst = true; ; isFirst = false) {
    const attempt = async (access: Access): Promise<T | undefined> => {
      showWarnings(access, io);
      if (access.role !== "client") return work(access.storage);
      const owner = guardOwner(access.storage);
      try {
        return await work(owner.storage, owner);
      } catch (error) {
        // At any moment: a command that only owned the database for its one signal is gone as soon as it has answered us.
        if (await owner.look()) throw error;
        return undefined;
      }
    };
    const done = await withStorage(database, attempt, isFirst).catch((error: unknown) => {
      throw isFirst || existsSync(database.path) ? error : databaseLost(database, error);
    });
    if (done !== undefined) return done;
    io.note(io.notes.paint.dim("the process that owned the database has ended; continuing in this process"));
  }
}

/** The error for a database that disappeared while another process owned it. */
export function databaseLost({ path }: Pick<Database, "path">, cause?: unknown): HoldfastError {
  return new HoldfastError(
    "storage_lost",
    `the database was removed or replaced while it was in use: ${path}`,
    {
      at: path,
      expected: "the database that another process owned",
      fix: "restore it from the copy that the owning process named when it ended",
      cause,
    },
  );
}
