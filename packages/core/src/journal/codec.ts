// `encodeRecords`, `decodeRecords`: the journal's bytes. Each record is one line of JSON, with its payload
// last and exactly as recorded.
//
//   - Decoding returns the payload's exact text. Header and payload are separated at the first `,"payload":`.
//     It cannot occur inside a header, because JSON escapes the quotes of every string value.
//   - A payload of `FORMAT_LIMITS.blobChars` or more is replaced by `"blob":"<sha256>"`; the storage keeps
//     the text under that name. Decoding asks the storage for it.
//   - A line in another format is a `CorruptRecordError` that names the place; there are no defaults.

import { CorruptRecordError } from "../errors/errors.ts";
import type { JsonText } from "../json/json.ts";
import { FORMAT_LIMITS } from "../limits.ts";
import { isRecordType, type JournalRecord } from "./record.ts";

/** The store of large payloads. `put` returns the text's content address; neither may be asynchronous. */
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
  const { payload } = record;
  if (payload === undefined) return encodeLine(record, undefined);
  const header = { ...record, payload: undefined }; // JSON leaves it out: cheaper than a copy without it.
  if (payload.length >= FORMAT_LIMITS.blobChars)
    return `${JSON.stringify(header).slice(0, -1)},"blob":"${blobs.put(payload)}"}`;
  return encodeLine(header, payload);
}

/** One line: our header, and last the user's text, whatever its size. */
export function encodeLine(header: object, payload: JsonText | undefined): string {
  const text = JSON.stringify(header);
  return payload === undefined ? text : `${text.slice(0, -1)}${PAYLOAD_MARK}${payload}}`;
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
  const { header, payload } = decodeLine(line, where);
  const { seq, type } = header;
  if (!Number.isSafeInteger(seq) || (seq as number) < 0 || !isRecordType(type)) {
    throw new CorruptRecordError(where, "a journal line is no record", {
      got: line.slice(0, 80),
      expected: "a position, and a type that this version knows",
    });
  }
  if (payload !== undefined) return { ...header, payload } as unknown as JournalRecord;
  const { blob, ...rest } = header; // Properties keep their order: encoded again, they give the same text.
  return (typeof blob === "string"
    ? { ...rest, payload: blobs.get(blob) }
    : header) as unknown as JournalRecord;
}

/** The arguments of `encodeLine`. @throws CorruptRecordError */
export function decodeLine(
  line: string,
  where: string,
): { readonly header: Readonly<Record<string, unknown>>; readonly payload: JsonText | undefined } {
  const cut = line.indexOf(PAYLOAD_MARK);
  if (!line.endsWith("}"))
    throw new CorruptRecordError(where, "a journal line is cut off", { got: line.slice(0, 80) });
  const header = parseHeader(cut === -1 ? line : `${line.slice(0, cut)}}`, where);
  return { header, payload: cut === -1 ? undefined : line.slice(cut + PAYLOAD_MARK.length, -1) };
}

function parseHeader(text: string, where: string): Readonly<Record<string, unknown>> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw new CorruptRecordError(where, "a journal line is not JSON", { got: text.slice(0, 80), cause });
  }
  if (typeof parsed === "object" && parsed !== null) return parsed as Readonly<Record<string, unknown>>;
  throw new CorruptRecordError(where, "a journal line is no record", { got: text.slice(0, 80) });
}

/** Whether two lists hold the same records, byte for byte. A large payload is compared by its content. */
export function isSameRecords(some: readonly JournalRecord[], others: readonly JournalRecord[]): boolean {
  return encodeRecords(some, INLINE_BLOBS) === encodeRecords(others, INLINE_BLOBS);
}

const INLINE_BLOBS = { put: (text: string) => text };
