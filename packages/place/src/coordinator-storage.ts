// Where a coordinator keeps its sessions: what `--storage` names, and the folder that what belongs to it lies
// in.

import { dirname, join, resolve } from "node:path";
import { HoldfastError, UsageError, type AgentStorage } from "@holdfast/core";
import { MemoryStorage } from "@holdfast/runtime";
import { dataFolder, makePrivateFolder } from "@holdfast/system";
import type { Io } from "@holdfast/terminal/frame/command";

export interface CoordinatorStorage {
  readonly storage: AgentStorage;
  /** As it may be shown: without a password. */
  readonly name: string;
  /** For the admin's token. */
  readonly folder: string;
}

/**
 * Open what is named, or a SQLite file in the user's data folder.
 *
 * @throws UsageError for what is no storage, ConflictError `locked` when another process has the file,
 *   HoldfastError when it cannot be
 * opened.
 */
export async function openCoordinatorStorage(
  wanted: string | undefined,
  io: Pick<Io, "env" | "cwd">,
): Promise<CoordinatorStorage> {
  const folder = dataFolder(io);
  const named = readStorageUrl(wanted ?? usualStorage(io), io);
  switch (named.type) {
    case "sqlite": {
      const { path } = named;
      const { ownSqliteStorage } = await import("@holdfast/storage/sqlite");
      if (wanted === undefined) makePrivateFolder(folder);
      return { storage: await ownSqliteStorage({ path }), name: `sqlite:${path}`, folder: dirname(path) };
    }
    case "postgres": {
      const { url } = named;
      const { openPostgresStorage, shownUrl } = await importPostgres();
      makePrivateFolder(folder);
      // Several coordinators, on machines whose clocks nobody keeps together: the database's time counts.
      const storage = await openPostgresStorage({ url, clock: "database" });
      return { storage, name: shownUrl(url), folder };
    }
    case "memory":
      makePrivateFolder(folder);
      return { storage: new MemoryStorage(), name: "memory:", folder };
  }
}

function usualStorage(io: Pick<Io, "env">): string {
  return `sqlite:${join(dataFolder(io), "coordinator.db")}`;
}

/** The file of a storage as `openCoordinatorStorage` opens it; `undefined` where it has none. */
export function databaseFile(wanted: string | undefined, io: Pick<Io, "env" | "cwd">): string | undefined {
  const named = readStorageUrl(wanted ?? usualStorage(io), io);
  return named.type === "sqlite" ? named.path : undefined;
}

/**
 * The PostgreSQL storage, whose driver is an optional package. @throws HoldfastError `config_invalid` when
 * the driver is not installed.
 */
export async function importPostgres(): Promise<typeof import("@holdfast/storage/postgres")> {
  try {
    return await import("@holdfast/storage/postgres");
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code !== "ERR_MODULE_NOT_FOUND" || !message.includes("'pg'")) throw cause;
    throw new HoldfastError("config_invalid", "PostgreSQL needs the package pg, and it is not installed", {
      at: "--storage",
      fix: "install it beside holdfast: npm install pg",
      cause,
    });
  }
}

export type NamedStorage =
  | { readonly type: "sqlite"; readonly path: string }
  | { readonly type: "postgres"; readonly url: string }
  | { readonly type: "memory" };

/** The storage that `--storage` names. @throws UsageError for any other text. */
export function readStorageUrl(url: string, { cwd }: Pick<Io, "cwd">): NamedStorage {
  const [, scheme = "", rest = ""] = /^([a-z]+):(.*)$/s.exec(url) ?? [];
  if (scheme === "sqlite" && rest !== "") return { type: "sqlite", path: resolve(cwd, rest) };
  if (scheme === "postgres" || scheme === "postgresql") return { type: "postgres", url };
  if (scheme === "memory" && rest === "") return { type: "memory" };
  throw notAStorage(url);
}

function notAStorage(url: string): UsageError {
  // Any part behind the scheme may be a password.
  return new UsageError(`"${url.replace(/:\/\/.*$/s, "://…")}" is no storage`, {
    at: "--storage",
    expected: "sqlite:PATH, postgres://USER@HOST/DATABASE or memory:",
  });
}
