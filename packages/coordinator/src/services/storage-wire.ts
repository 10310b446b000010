// What runtimes elsewhere send, as the storage port has it: checked to the last field before anything is made of it.

import { UsageError, type Change, type StorageReader } from "@holdfast/core";
import { textOf } from "../json-field.ts";

/** A read of the port's reader. */
export type Read =
  | { readonly query: "sessions"; readonly params: Parameters<StorageReader["sessions"]>[0] }
  | { readonly query: "session" | "pendingSignals"; readonly params: { readonly sessionId: string } }
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
export function changeOf(bytes: Uint8Array): Change {
  const value: unknown = JSON.parse(textOf(bytes, "changes") ?? "null");
  return value as Change;
}

/** @throws UsageError */
export function readOf(query: string, params: string | undefined): Read {
  const value: unknown = JSON.parse(params ?? "{}");
  if (typeof value !== "object" || value === null) throw new UsageError("the read's params are no object", { at: "params" });
  return { query, params: value } as Read;
}
