// Blobs: large texts, stored once under their own hash.
//
//   - A blob is written in the transaction of the row that refers to it, and never changed.
//   - Text that is read back must hash to the address by which it was requested.
//   - The sessions that use a blob are stored with it. The blob is removed with the last of these sessions,
//     and not before.

import {
  CorruptRecordError,
  FORMAT_LIMITS,
  type BlobSink,
  type BlobSource,
  type JsonText,
} from "@holdfast/core";
import { sha256 } from "./checksum.ts";
import type { SqlDriver, SqlStatement } from "../file/driver.ts";

const INSERT_BLOB = "INSERT INTO blob (address, content) VALUES (?, ?) ON CONFLICT DO NOTHING";
const INSERT_USE = "INSERT INTO blob_use (address, session) VALUES (?, ?) ON CONFLICT DO NOTHING";
// mutant: shared-content-deleted
const DELETE_BLOBS = `DELETE FROM blob WHERE address IN (SELECT address FROM blob_use WHERE session = ?1)
  AND NOT EXISTS (SELECT 1 FROM blob_use u WHERE u.address = blob.address AND u.session <> ?1)`;

export class Blobs implements BlobSource {
  readonly #driver: SqlDriver;
  readonly #path: string;
  readonly #select: SqlStatement;
  readonly #insert: SqlStatement;
  readonly #insertUse: SqlStatement;
  readonly #sink = { number: 0, put: (text: JsonText) => this.put(text, this.#sink.number) };

  constructor(driver: SqlDriver, path: string) {
    this.#driver = driver;
    this.#path = path;
    this.#select = driver.prepare("SELECT content FROM blob WHERE address = ?");
    this.#insert = driver.prepare(INSERT_BLOB);
    this.#insertUse = driver.prepare(INSERT_USE);
  }

  /** @param number of the session it is for. */
  put(text: JsonText, number: number): string {
    const address = sha256(text);
    this.#insert.run(address, text);
    this.#insertUse.run(address, number);
    return address;
  }

  /** For one session, until the next call: a batch needs none of its own. */
  sinkFor(number: number): BlobSink {
    this.#sink.number = number;
    return this.#sink;
  }

  removeOf(number: number): void {
    this.#driver.prepare(DELETE_BLOBS).run(number);
    this.#driver.prepare("DELETE FROM blob_use WHERE session = ?").run(number);
  }

  get(address: string): JsonText {
    const row = this.#select.get(address);
    const where = `${this.#path}, table blob, row ${address}`;
    if (row === undefined) throw new CorruptRecordError(where, "a large payload is missing");
    const content = row["content"];
    if (typeof content !== "string" || sha256(content) !== address) {
      throw new CorruptRecordError(where, "a large payload is not what was stored", {
        expected: `content with SHA-256 ${address}`,
      });
    }
    return content;
  }

  /** The two columns a text takes: itself, or the address of its blob. */
  toColumns(text: JsonText | undefined, number: number): [text: string | null, blob: string | null] {
    if (text === undefined) return [null, null];
    return text.length < FORMAT_LIMITS.blobChars ? [text, null] : [null, this.put(text, number)];
  }

  fromColumns(text: unknown, blob: unknown): JsonText | undefined {
    if (typeof blob === "string") return this.get(blob);
    return typeof text === "string" ? text : undefined;
  }
}
