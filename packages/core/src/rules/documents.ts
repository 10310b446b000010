// `decidePut`, `decideRemove`: the rules for documents (ST40).

import type { PutDocument, RemoveDocument, StoredDocument } from "../session/stored-documents.ts";
import type { ChangeResult } from "../session/changes.ts";

/**
 * Why a document cannot be stored under this name, or `undefined`. One alphabet, so that its order is the
 * same everywhere.
 */
function findNameProblem({ collection, id }: Pick<PutDocument, "collection" | "id">): string | undefined {
  if (!NAME.test(collection)) return `a collection cannot be named ${JSON.stringify(collection)}: ${RULE}`;
  return NAME.test(id)
    ? undefined
    : `a document of "${collection}" cannot be named ${JSON.stringify(id)}: ${RULE}`;
}

const NAME = /^[!-~]{1,256}$/;
const RULE = "1 to 256 printable ASCII characters without spaces";

export interface DocumentDecision {
  readonly result: ChangeResult;
  /** The stored document after the change; absent when nothing changes. */
  readonly document?: StoredDocument;
}

export function decidePut(
  stored: StoredDocument | undefined,
  change: PutDocument,
  now: number,
): DocumentDecision {
  const problem = findNameProblem(change);
  if (problem !== undefined) return { result: { status: "invalid", reason: problem } };
  const { id, body, expected } = change;
  const has = stored?.version ?? 0;
  // mutant: stale-put-accepted
  if (expected !== undefined && expected !== has) return { result: { status: "conflict", version: has } };
  const version = has + 1;
  return { result: { status: "done", version }, document: { id, body, version, updatedAt: now } };
}

/** `done` when it is to be removed. */
export function decideRemove(stored: StoredDocument | undefined, { expected }: RemoveDocument): ChangeResult {
  if (stored === undefined) return { status: "not_found" };
  if (expected !== undefined && expected !== stored.version)
    return { status: "conflict", version: stored.version };
  return { status: "done" };
}
