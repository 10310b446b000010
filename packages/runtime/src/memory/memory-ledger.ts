// Documents and the audit of a storage in memory: what concerns no session.

import type { AuditRow, StorageReader, StoredDocument } from "@holdfast/core";

export class Ledger {
  readonly audit: AuditRow[] = [];
  readonly #collections = new Map<string, Map<string, StoredDocument>>();

  document(collection: string, id: string): StoredDocument | undefined {
    return this.#collections.get(collection)?.get(id);
  }

  /** Sorted when asked: they are few, and read by people. */
  documents({ collection, after, limit }: Parameters<StorageReader["documents"]>[0]): StoredDocument[] {
    const documents = [...(this.#collections.get(collection)?.values() ?? [])];
    return documents
      .filter(({ id }) => after === undefined || id > after)
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, limit);
  }

  put(collection: string, document: StoredDocument): void {
    const documents = this.#collections.get(collection);
    if (documents === undefined) this.#collections.set(collection, new Map([[document.id, document]]));
    else documents.set(document.id, document);
  }

  remove(collection: string, id: string): void {
    this.#collections.get(collection)?.delete(id);
  }
}
