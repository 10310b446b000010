// `ServiceHost` holds what the services share: the ports, dispatch, and one way to make an audited change.

import {
  ConflictError,
  HoldfastError,
  NotFoundError,
  type Audit,
  type Change,
  type ChangeResult,
  type Clock,
  type Random,
  type Session,
} from "@holdfast/core";
import { importedBy, type FileImport } from "@holdfast/core/internal";
import { invalid, type Refusal } from "../call/refusal.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";
import type { Catalogue } from "../catalogue/catalogue.ts";
import type { Registry } from "../store/registry.ts";
import type { Unmatched } from "../dispatch/unmatched.ts";
import type { Commit } from "../store/joined-commits.ts";
import type { FollowedStorage } from "../store/notices.ts";
import type { Tokens } from "../call/tokens.ts";

export interface ServiceHost {
  readonly storage: FollowedStorage;
  /** Commits all changes of the API. */
  readonly commit: Commit;
  readonly clock: Clock;
  readonly random: Random;
  readonly tokens: Tokens;
  readonly registry: Registry;
  readonly catalogue: Catalogue;
  readonly dispatcher: Dispatcher;
  readonly unmatched: Unmatched;
  readonly leaseMs: number;
  readonly renewMs: number;
}

/** Commits a change with its audit row in the same transaction. */
export async function audited(
  { commit }: Pick<ServiceHost, "commit">,
  change: Exclude<Change, { type: "audited" }>,
  audit: Audit,
): Promise<ChangeResult> {
  const [result] = await commit([{ type: "audited", change, audit }]);
  return result!;
}

/** Tells dispatch of the sessions of a file that were stored. */
export async function notifyImported(
  { storage, dispatcher }: Pick<ServiceHost, "storage" | "dispatcher">,
  change: FileImport,
): Promise<void> {
  for (const { sessionId } of importedBy(change)) {
    const session = await storage.reader.session(sessionId);
    if (session !== undefined) dispatcher.created(session);
  }
}

/** The error for a missing session, and for another owner's session as well. */
export function sessionNotFound(sessionId: string): NotFoundError {
  return new NotFoundError("session_not_found", `there is no session ${sessionId}`, {
    fix: "ids are case-sensitive; list the sessions to see which there are",
  });
}

/** The error for a cursor that no page of the list ends with. */
export function unknownCursor(
  message = "is not the cursor of a page of this list, or its item was deleted",
): Refusal {
  return invalid([{ pointer: "/cursor", code: "unknown_cursor", message }]);
}

/** @param to the storage where the session lives now, or to which it is moving. */
export function sessionMoved(to: string): ConflictError {
  return new ConflictError("session_moved", "the session has moved to another place", {
    at: to,
    fix: "use that place; to finish an interrupted move, repeat it",
  });
}

/** The error for a result that the caller of a change does not expect. */
export function unexpected(doing: string, result: ChangeResult): HoldfastError {
  if (result.status === "moved") return sessionMoved(result.to);
  return new HoldfastError("internal", `${doing}: storage answered "${result.status}"`);
}

/** The name of a session in audit rows. */
export function sessionObject({ sessionId }: Pick<Session, "sessionId">): string {
  return `session:${sessionId}`;
}
