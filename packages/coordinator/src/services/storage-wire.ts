// `changeOf` and `readOf` parse requests of runtimes elsewhere in the form of the storage port, and
// `readLines` the lines of a session file. Every field is checked.

import {
  type Change,
  type FileImport,
  isStorageCall,
  parseChange,
  SessionFile,
  type StorageReader,
  toHoldfastError,
  UsageError,
} from "@holdfast/core";
import { createHash } from "node:crypto";

/** A method of the port's reader with its arguments. */
export type Read =
  | { readonly query: "sessions"; readonly params: Parameters<StorageReader["sessions"]>[0] }
  | { readonly query: "counts"; readonly params: Parameters<StorageReader["counts"]>[0] }
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

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** @param bytes JSON, as the constraints of the contract have found. @throws UsageError */
export function changeOf(bytes: Uint8Array, index: number): Change {
  const change = parseChange(JSON.parse(UTF8.decode(bytes)));
  if (change !== undefined) return change;
  throw new UsageError("the request is no change of the storage port", {
    at: `changes/${index}`,
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

/** The sender must repair a damaged file. */
export function readLines(lines: readonly Uint8Array[], wanted: string | undefined): FileImport {
  try {
    const file = new SessionFile("lines", createHash("sha256"));
    for (const line of lines) file.take(new TextDecoder("utf-8", { fatal: true }).decode(line));
    return file.end(wanted);
  } catch (thrown) {
    const error = toHoldfastError(thrown);
    if (error.code !== "corrupt_record" && error.code !== "internal") throw error;
    throw new UsageError(error.message, { at: "lines", fix: "export the session again", cause: thrown });
  }
}
