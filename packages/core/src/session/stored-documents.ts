// Small keyed JSON for whoever serves a storage: what it must know again after its own end (tokens, runners). Agents never see it.

import type { JsonText } from "../json/json.ts";

export interface StoredDocument {
  readonly id: string;
  readonly body: JsonText;
  /** 1 when it is first put, one higher with each put after that; 1 again once it was removed. */
  readonly version: number;
  readonly updatedAt: number;
}

/** Store a document, in place of the one of this id. */
export interface PutDocument {
  readonly type: "put_document";
  /** Printable ASCII without spaces, as is the id. */
  readonly collection: string;
  readonly id: string;
  readonly body: JsonText;
  /** The version it must have; 0: it must not exist. */
  readonly expected?: number;
}

export interface RemoveDocument {
  readonly type: "remove_document";
  readonly collection: string;
  readonly id: string;
  readonly expected?: number;
}
