// `changeOf` and `readOf` parse requests of runtimes elsewhere in the form of the storage port. Every field
// is checked.

import { UsageError, type Change, type StorageReader } from "@holdfast/core";
import { isStorageCall, parseChange } from "@holdfast/core/internal";
import { textOf } from "../call/json-field.ts";

/** A method of the port's reader with its arguments. */
export type Read =
  | { readonly query: "sessions"; readonly params: Parameters<StorageReader["sessions"]>[0] }
  | {
      readonly query: "session" | "pendingSignals" | "seenSignals";
      readonly params: { readonly sessionId: string };
    }
  | {
      readonly query: "journal";
      readonly params: { readonly sessionId: string; readonly fromSeq: number; readonly limit: number };
    }
  | {
      readonly query: "entries";
      readonly params: { readonly sessionId: string; readonly from: number; readonly limit: number };
    }
  | { readonly query: "schedules"; readonly params: object }
  | { readonly query: "document"; readonly params: { readonly collection: string; readonly id: string } }
  | { readonly query: "documents"; readonly params: Parameters<StorageReader["documents"]>[0] }
  | { readonly query: "audit"; readonly params: Parameters<StorageReader["audit"]>[0] };

/** @throws UsageError */
export function changeOf(bytes: Uint8Array, index: number): Change {
  const at = `changes/${index}`;
  const change = parseChange(JSON.parse(textOf(bytes, at) ?? "null"));
  if (change !== undefined) return change;
  throw new UsageError("the request is no change of the storage port", {
    at,
    expected: "a change in the format of this version of Holdfast",
    fix: "use the same version on both sides",
  });
}

/** @throws UsageError */
export function readOf(query: string, text: string | undefined): Read {
  const params: unknown = JSON.parse(text ?? "{}");
  if (isStorageCall(`reader.${query}`, params)) return { query, params } as Read;
  throw new UsageError(`the arguments do not fit "${query}"`, {
    at: "params",
    expected: "its arguments in the format of this version of Holdfast",
    fix: "use the same version on both sides",
  });
}
