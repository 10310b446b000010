// Session files as a runtime reads and writes them: `exportLines`, `readSessionFile` and `storeImported`.
// This file splits bytes into lines and has Node's SHA-256; core defines the content of the lines.

import { createHash } from "node:crypto";
import {
  type Change,
  type ChangeResult,
  ConflictError,
  CorruptRecordError,
  exportLines as linesOf,
  type ExportOptions,
  type FileImport,
  HoldfastError,
  importedBy,
  isSameSession,
  MIB,
  notOurs,
  SessionFile,
  type StorageReader,
} from "@holdfast/core";
import { unexpected } from "./session-requests.ts";

/** Nothing we write is longer: payloads have a limit far below. */
const LINE_BYTES_MAX = 256 * MIB;

/** The lines of the file of a session, or of a tree, as `exportLines` of core writes them. */
export function exportLines(
  reader: StorageReader,
  sessionId: string,
  options?: ExportOptions,
): AsyncGenerator<string> {
  return linesOf(reader, sessionId, createHash("sha256"), options);
}

/**
 * Read the sessions of a file, as a change for storage.
 *
 * @param where names the file in errors.
 * @param treeChars the most text of a tree, in UTF-16 code units.
 * @param wanted an id to store the session under, instead of its own.
 * @throws CorruptRecordError when the file is damaged.
 * @throws HoldfastError `version_unsupported` when the file has another version.
 * @throws HoldfastError `too_large` when the file has a larger tree.
 * @throws UsageError when the session cannot have that id.
 */
export async function readSessionFile(
  chunks: AsyncIterable<Uint8Array>,
  where: string,
  treeChars: number,
  wanted?: string,
): Promise<FileImport> {
  const file = new SessionFile(where, createHash("sha256"), treeChars);
  let number = 0;
  for await (const line of splitLines(chunks, where))
    file.take(decodeText(line, `${where}, line ${++number}`));
  return file.end(wanted);
}

/**
 * Store the sessions of a file. Returns whether this call stored them: `false` when all of them are there
 * already, at whatever point they are. If storage answers that they exist, but the first one did not exist
 * before, an earlier answer was lost and the import has succeeded.
 *
 * @throws ConflictError `session_exists` when other sessions have their ids, or only some of them are there.
 * @throws CorruptRecordError when they cannot be stored, HoldfastError `too_large` when storage refuses their
 *   size.
 */
export async function storeImported(
  reader: StorageReader,
  commit: (change: Change) => Promise<ChangeResult>,
  change: FileImport,
  where: string,
): Promise<boolean> {
  const before = await reader.session(change.sessionId);
  const result = await commit(change);
  if (result.status === "created") return true;
  if (result.status === "invalid" && result.isTooLarge === true) throw tooLarge(change, result.reason, where);
  if (result.status === "invalid") throw new CorruptRecordError(where, result.reason);
  if (result.status !== "exists") throw unexpected("importing a session", result.status);
  await refuseUnlessThere(reader, change, where);
  return before === undefined;
}

/** @throws ConflictError unless storage has each session of the file. */
async function refuseUnlessThere(reader: StorageReader, change: FileImport, where: string): Promise<void> {
  const missing: string[] = [];
  for (const imported of importedBy(change)) {
    const { sessionId } = imported;
    const stored = await reader.session(sessionId);
    if (stored === undefined) missing.push(sessionId);
    else if (!isSameSession(stored, imported))
      throw new ConflictError("session_exists", `there is another session ${sessionId} already`, {
        at: where,
        got: `a session of agent "${stored.agent.name}"`,
        expected: "no session, or the session of the file",
        fix:
          change.type === "import_tree"
            ? "import the file into another database"
            : "import it under another id: --session OTHER, or { sessionId }",
      });
  }
  if (missing.length > 0)
    throw new ConflictError("session_exists", "only a part of the sessions of the file is there already", {
      at: where,
      got: `no session ${missing[0]} (${missing.length} of ${importedBy(change).length} are missing)`,
      expected: "none of the sessions, or all of them",
      fix: "import the file into another database",
    });
}

function tooLarge({ sessionId }: FileImport, reason: string, where: string): HoldfastError {
  return new HoldfastError("too_large", `session ${sessionId} is too large to import: ${reason}`, {
    at: where,
    fix: "have the coordinator's limits.batchBytes raised",
  });
}

function decodeText(bytes: Uint8Array, at: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new CorruptRecordError(at, "a line is not UTF-8", {
      expected: "what `holdfast export` wrote",
      fix: "export the session again",
      cause,
    });
  }
}

/** Lines without their line breaks. Text after the last line break is a line too, unless it is empty. */
async function* splitLines(chunks: AsyncIterable<Uint8Array>, where: string): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, from)) {
      yield Buffer.concat([...parts, chunk.subarray(from, end)]);
      parts = [];
      size = 0;
      from = end + 1;
    }
    if (from === chunk.length) continue;
    parts.push(chunk.subarray(from));
    size += chunk.length - from;
    if (size > LINE_BYTES_MAX) throw notOurs(where, `a line of more than ${LINE_BYTES_MAX} bytes`);
  }
  if (parts.length > 0) yield Buffer.concat(parts);
}

const LF = 10;
