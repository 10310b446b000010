// The journal's bytes: one line of JSON per record, its payload last and exactly as it was recorded.
//
//   F1. Decoding gives back the payload's very text: header and payload are cut apart at the first `,"payload":`, which
//       cannot occur inside a header, because JSON escapes the quotes of every string value.
//   F2. A payload of `FORMAT_LIMITS.blobChars` or more is replaced by `"blob":"<sha256>"`; the storage keeps the text
//       under that name. Decoding asks the storage for it.
//   F3. A line that is not ours is a `CorruptRecordError` naming the place; there are no defaults.

import { CorruptRecordError } from "../errors.ts";
import type { JsonText } from "../json.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { isRecordType, type JournalRecord } from "./record.ts";

/** Where large payloads go. `put` answers the text's content address; neither may be asynchronous. */
export interface BlobSink {
  put(text: JsonText): string;
}

export interface BlobSource {
  /** @throws CorruptRecordError when there is no blob of that address or its content does not match it. */
  get(address: string): JsonText;
}

const PAYLOAD_MARK = ',"payload":';

export function encodeRecords(records: readonly JournalRecord[], blobs: BlobSink): string {
  let body = "";
  for (const record of records) {
    if (body !== "") body += "\n";
    body += encodeRecord(record, blobs);
  }
  return body;
}

function encodeRecord(record: JournalRecord, blobs: BlobSink): string {
  const { payload, ...header } = record;
  const text = JSON.stringify(header);
  if (payload === undefined) return text;
  if (payload.length >= FORMAT_LIMITS.blobChars)
    return `${text.slice(0, -1)},"blob":"${blobs.put(payload)}"}`;
  return `${text.slice(0, -1)}${PAYLOAD_MARK}${payload}}`;
}

/**
 * The records of one stored body.
 *
 * @param where names the body in errors, for example `journal of ses_… at 12`.
 */
export function decodeRecords(body: string, blobs: BlobSource, where: string): JournalRecord[] {
  return body.split("\n").map((line) => decodeRecord(line, blobs, where));
}

function decodeRecord(line: string, blobs: BlobSource, where: string): JournalRecord {
  const cut = line.indexOf(PAYLOAD_MARK);
  if (!line.endsWith("}"))
    throw new CorruptRecordError(where, "a journal line is cut off", { got: line.slice(0, 80) });
  const header = parseHeader(cut === -1 ? line : `${line.slice(0, cut)}}`, where);
  if (cut !== -1)
    return { ...header, payload: line.slice(cut + PAYLOAD_MARK.length, -1) } as unknown as JournalRecord;
  const { blob, ...rest } = header;
  return (typeof blob === "string"
    ? { ...rest, payload: blobs.get(blob) }
    : header) as unknown as JournalRecord;
}

function parseHeader(text: string, where: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw new CorruptRecordError(where, "a journal line is not JSON", { got: text.slice(0, 80), cause });
  }
  if (typeof parsed === "object" && parsed !== null && "seq" in parsed && "type" in parsed) {
    const { seq, type } = parsed;
    if (Number.isSafeInteger(seq) && (seq as number) >= 0 && isRecordType(type)) return parsed;
  }
  throw new CorruptRecordError(where, "a journal line is no record", {
    got: text.slice(0, 80),
    expected: "a position, and a type that this version knows",
  });
}
