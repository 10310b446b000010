// Large texts, stored once under their own hash.
//
//   B1. A blob is written in the transaction of the row that refers to it, and never changed.
//   B2. What is read back must hash to the address it was asked for by.

import { hash } from "node:crypto";
import {
  CorruptRecordError,
  FORMAT_LIMITS,
  type BlobSink,
  type BlobSource,
  type JsonText,
} from "@holdfast/core";
import type { SqlDriver, SqlStatement } from "./driver.ts";

export class Blobs implements BlobSink, BlobSource {
  readonly #path: string;
  readonly #select: SqlStatement;
  readonly #insert: SqlStatement;

  constructor(driver: SqlDriver, path: string) {
    this.#path = path;
    this.#select = driver.prepare("SELECT content FROM blob WHERE address = ?");
    this.#insert = driver.prepare("INSERT INTO blob (address, content) VALUES (?, ?) ON CONFLICT DO NOTHING");
  }

  put(text: JsonText): string {
    const address = blobAddress(text);
    this.#insert.run(address, text);
    return address;
  }

  get(address: string): JsonText {
    const row = this.#select.get(address);
    const where = `${this.#path}, table blob, row ${address}`;
    if (row === undefined) throw new CorruptRecordError(where, "a large payload is missing");
    const content = row["content"];
    if (typeof content !== "string" || blobAddress(content) !== address) {
      throw new CorruptRecordError(where, "a large payload is not what was stored", {
        expected: `content with SHA-256 ${address}`,
      });
    }
    return content;
  }

  /** The two columns a text takes: itself, or the address of its blob. */
  toColumns(text: JsonText | undefined): [text: string | null, blob: string | null] {
    if (text === undefined) return [null, null];
    return text.length < FORMAT_LIMITS.blobChars ? [text, null] : [null, this.put(text)];
  }

  fromColumns(text: unknown, blob: unknown): JsonText | undefined {
    if (typeof blob === "string") return this.get(blob);
    return typeof text === "string" ? text : undefined;
  }
}

function blobAddress(text: string): string {
  return hash("sha256", text, "base64url");
}
