// A storage of which single calls fail: any adapter, any of its calls, counted by their names.
//
// `faulty-storage.ts` plans the death of a process at a commit. Here the process lives, and must continue.

import { type AgentStorage, type StorageReader, storageWith } from "@holdfast/core";

const CALLS = ["commit", "claim", "renew", "heldClaims", "load", "arrivals", "conversation", "due"] as const;
const READS = [
  "sessions",
  "counts",
  "session",
  "journal",
  "entries",
  "pendingSignals",
  "seenSignals",
  "schedules",
  "document",
  "documents",
  "audit",
] as const;

/** @param error what the call number `n` (from 1) of `method` rejects with; nothing lets it through. */
export function failingCalls(
  storage: AgentStorage,
  error: (method: string, n: number) => Error | undefined,
): { readonly storage: AgentStorage; readonly counts: ReadonlyMap<string, number> } {
  const counts = new Map<string, number>();
  const failing = <T extends object>(target: T, methods: readonly (keyof T & string)[]): Partial<T> =>
    Object.fromEntries(
      methods.map((method) => [
        method,
        (...args: unknown[]): unknown => {
          const n = (counts.get(method) ?? 0) + 1;
          counts.set(method, n);
          const planned = error(method, n);
          if (planned !== undefined) return Promise.reject(planned);
          return (target[method] as (...given: unknown[]) => unknown).call(target, ...args);
        },
      ]),
    ) as Partial<T>;
  const { reader } = storage;
  return {
    storage: storageWith(storage, {
      ...failing(storage, CALLS),
      reader: failing(reader, READS) as StorageReader,
    }),
    counts,
  };
}
