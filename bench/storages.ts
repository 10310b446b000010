// Where sessions are kept while they are measured, and how many statements that took.

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { AgentStorage } from "@holdfast/core";
import { MemoryStorage } from "@holdfast/runtime";
import { openPostgresStorage } from "@holdfast/storage/postgres";
import { openSqliteStorage, ownSqliteStorage } from "@holdfast/storage/sqlite";
import { newPlace, readPlace } from "./postgres.ts";

export const STORAGE_KINDS = ["memory", "sqlite", "postgres"] as const;
export type StorageKind = (typeof STORAGE_KINDS)[number];

export interface OpenStorage {
  readonly storage: AgentStorage;
  /** The database's file; `undefined` in memory, and where it is a server's. */
  readonly file: string | undefined;
  /** The place by which another process opens it (`openPlace`); `undefined` in memory. */
  readonly place: string | undefined;
  /** SQL statements run so far; `undefined` where there are none. */
  statements(): number | undefined;
}

/** A folder of its own, gone afterwards. */
export async function withFolder<T>(parent: string, work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(parent, "run-"));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A new, empty storage in a folder of its own, closed and gone afterwards. */
export async function withStorage<T>(
  kind: StorageKind,
  parent: string,
  work: (open: OpenStorage) => Promise<T>,
): Promise<T> {
  return withFolder(parent, async (folder) => {
    const open = await openStorage(kind, join(folder, "bench.db"));
    try {
      return await work(open);
    } finally {
      await open.storage.close();
    }
  });
}

/** Opens the storage that `withStorage` of another, killed process has left. */
export async function withPlace<T>(place: string, work: (open: OpenStorage) => Promise<T>): Promise<T> {
  const storage = await openPlace(place);
  try {
    return await work({ storage, file: undefined, place, statements: () => undefined });
  } finally {
    await storage.close();
  }
}

async function openStorage(kind: StorageKind, file: string): Promise<OpenStorage> {
  switch (kind) {
    case "memory":
      return {
        storage: new MemoryStorage(),
        file: undefined,
        place: undefined,
        statements: () => undefined,
      };
    case "sqlite": {
      const storage = await ownSqliteStorage({ path: file });
      return { storage, file, place: file, statements: () => storage.statementCount };
    }
    case "postgres": {
      const place = newPlace();
      const storage = await openPostgresStorage(readPlace(place)!);
      return { storage, file: undefined, place, statements: () => storage.statementCount };
    }
  }
}

/** A file, or a schema of a server. */
export async function openPlace(place: string): Promise<AgentStorage> {
  const database = readPlace(place);
  return database === undefined ? openSqliteStorage({ path: place }) : openPostgresStorage(database);
}

/** Bytes of all pages of a database, those still in its write-ahead log included. */
export function databaseBytes(file: string): number {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const value = (pragma: string) => Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get()!)[0]);
    return value("page_count") * value("page_size");
  } finally {
    database.close();
  }
}
