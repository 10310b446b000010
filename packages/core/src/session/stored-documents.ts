// `StoredDocument`: small keyed JSON that a process which serves a storage keeps in it, such as tokens and
// runners. Agents never see documents.

import type { JsonText } from "../json/json.ts";

export interface StoredDocument {
  readonly id: string;
  readonly body: JsonText;
  /** 1 after the first put, and one higher after each further put; 1 again after a removal. */
  readonly version: number;
  readonly updatedAt: number;
}

/** Store a document in place of the document with this id. */
export interface PutDocument {
  readonly type: "put_document";
  /** Printable ASCII without spaces, as is the id. */
  readonly collection: string;
  readonly id: string;
  readonly body: JsonText;
  /** The version that the document must have; 0 if it must not exist. */
  readonly expected?: number;
}

export interface RemoveDocument {
  readonly type: "remove_document";
  readonly collection: string;
  readonly id: string;
  readonly expected?: number;
}
