// Session files as a runtime reads and writes them: `exportLines`, `readSessionFile` and `storeImported`.
// This file splits bytes into lines and has Node's SHA-256; core defines the content of the lines.

import { createHash } from "node:crypto";
import {
  ConflictError,
  CorruptRecordError,
  type Change,
  type ChangeResult,
  type ImportSession,
  type StorageReader,
} from "@holdfast/core";
import { exportLines as linesOfSession, notOurs, SessionFile } from "@holdfast/core/internal";
import { unexpected } from "./session-requests.ts";

/** Nothing we write is longer: payloads have a limit far below. */
const LINE_BYTES_MAX = 256 * 1024 * 1024;

/** The lines of a session's file. @throws NotFoundError */
export function exportLines(reader: StorageReader, sessionId: string): AsyncGenerator<string> {
  return linesOfSession(reader, sessionId, createHash("sha256"));
}

/**
 * Read the session of a file, as a change for storage.
 *
 * @param where names the file in errors.
 * @param wanted an id to store it under, instead of its own.
 * @throws CorruptRecordError when the file is damaged.
 * @throws HoldfastError `version_unsupported` when the file has another version.
 * @throws UsageError when the session cannot have that id.
 */
export async function readSessionFile(
  chunks: AsyncIterable<Uint8Array>,
  where: string,
  wanted?: string,
): Promise<ImportSession> {
  const file = new SessionFile(where, createHash("sha256"));
  let number = 0;
  for await (const line of linesOf(chunks, where)) file.take(decodeText(line, `${where}, line ${++number}`));
  return file.end(wanted);
}

/**
 * Store the session of a file. If storage answers that it exists, but it did not exist before, an earlier
 * answer was lost and the import has succeeded.
 *
 * @throws ConflictError `session_exists`, CorruptRecordError when it cannot be stored.
 */
export async function storeImported(
  reader: StorageReader,
  commit: (change: Change) => Promise<ChangeResult>,
  change: ImportSession,
  where: string,
): Promise<void> {
  const { sessionId, session } = change;
  const before = await reader.session(sessionId);
  const result = await commit(change);
  if (result.status === "created") return;
  if (result.status === "invalid") throw new CorruptRecordError(where, result.reason);
  if (result.status !== "exists") throw unexpected("importing a session", result.status);
  const stored = before === undefined ? await reader.session(sessionId) : undefined;
  if (stored?.seed === session.seed && stored.createdAt === session.createdAt) return;
  throw new ConflictError("session_exists", `there is a session ${sessionId} already`, {
    at: where,
    fix: "import it under another id: --session OTHER, or { sessionId }",
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
async function* linesOf(chunks: AsyncIterable<Uint8Array>, where: string): AsyncGenerator<Uint8Array> {
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
