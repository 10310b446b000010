// Where sessions are kept while they are measured, and how many statements that took.

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { AgentStorage } from "@holdfast/core";
import { MemoryStorage } from "@holdfast/runtime";
import { openSqliteStorage } from "@holdfast/storage/sqlite";

export const STORAGE_KINDS = ["memory", "sqlite"] as const;
export type StorageKind = (typeof STORAGE_KINDS)[number];

export interface OpenStorage {
  readonly storage: AgentStorage;
  /** The database's file; `undefined` in memory. */
  readonly file: string | undefined;
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

async function openStorage(kind: StorageKind, file: string): Promise<OpenStorage> {
  switch (kind) {
    case "memory":
      return { storage: new MemoryStorage(), file: undefined, statements: () => undefined };
    case "sqlite": {
      const storage = await openSqliteStorage({ path: file });
      return { storage, file, statements: () => storage.statementCount };
    }
  }
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
