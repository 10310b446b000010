// Row checksums: SQLite checks the shape of its pages, not the bytes in them, and a flipped bit of a payload
// passes its `quick_check`. CRC-32 finds such accidents; against a forger it is no help, and is not meant to
// be.
//
// The key is part of the sum, so that an intact row in the wrong place is found as well.

import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { SqlValue } from "../file/driver.ts";

export function rowChecksum(values: readonly SqlValue[]): number {
  return crc32(JSON.stringify(values));
}

/**
 * The journal's own: a little arithmetic and one pass over the body, because every step of every agent pays
 * for it.
 */
export function journalChecksum(
  session: number,
  seq: number,
  count: number,
  committedAt: number,
  body: string,
): number {
  const time = Math.imul(committedAt / 2 ** 32, 0x27d4eb2f) ^ committedAt;
  const key =
    Math.imul(session, 0x9e3779b1) ^ Math.imul(seq, 0x85ebca6b) ^ Math.imul(count, 0xc2b2ae35) ^ time;
  return crc32(body, key >>> 0);
}

/** The hash of contents and chains, for which a checksum is too weak. */
export function sha256(text: string): string {
  return hash("sha256", text, "base64url");
}
