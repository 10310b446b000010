// `withReaders`: reads every place that a command line means, which is a database and perhaps the local stack
// beside it.

import type { StorageReader } from "@holdfast/core";
import { withReader } from "../place/find-session.ts";
import type { Database } from "../place/project.ts";

export type Readers = readonly { readonly place: Database; readonly reader: StorageReader }[];

export function placesOf(database: Database): readonly Database[] {
  return database.stack === undefined ? [database] : [database, database.stack];
}

/** Opens all places. A place without a database is left out. */
export async function withReaders<T>(
  [first, ...rest]: readonly Database[],
  work: (readers: Readers) => Promise<T>,
  open: Readers = [],
): Promise<T> {
  if (first === undefined) return work(open);
  return withReader(first, (reader) =>
    withReaders(rest, work, reader === undefined ? open : [...open, { place: first, reader }]),
  );
}
