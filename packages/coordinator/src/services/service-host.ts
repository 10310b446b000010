// What the services share: the ports, who runs what, and one way to change something.

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
import { invalid, type Refusal } from "../call/refusal.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";
import type { Registry } from "../store/registry.ts";
import type { Unmatched } from "../dispatch/unmatched.ts";
import type { Commit } from "../store/joined-commits.ts";
import type { FollowedStorage } from "../store/notices.ts";
import type { Tokens } from "../call/tokens.ts";

export interface ServiceHost {
  readonly storage: FollowedStorage;
  /** How everything is stored that is stored now. */
  readonly commit: Commit;
  readonly clock: Clock;
  readonly random: Random;
  readonly tokens: Tokens;
  readonly registry: Registry;
  readonly dispatcher: Dispatcher;
  readonly unmatched: Unmatched;
  readonly leaseMs: number;
  readonly renewMs: number;
}

/** A change, and its audit row in the same transaction. */
export async function audited(
  { commit }: Pick<ServiceHost, "commit">,
  change: Exclude<Change, { type: "audited" }>,
  audit: Audit,
): Promise<ChangeResult> {
  const [result] = await commit([{ type: "audited", change, audit }]);
  return result!;
}

/** The same for a session that is another's as for one that is not there. */
export function sessionNotFound(sessionId: string): NotFoundError {
  return new NotFoundError("session_not_found", `there is no session ${sessionId}`, {
    fix: "ids are case-sensitive; list the sessions to see which there are",
  });
}

/** A page that begins where no page of the list ends. */
export function unknownCursor(
  message = "is not the cursor of a page of this list, or its item was deleted",
): Refusal {
  return invalid([{ pointer: "/cursor", code: "unknown_cursor", message }]);
}

/** @param to where it lives now, or is on its way to. */
export function sessionMoved(to: string): ConflictError {
  return new ConflictError("session_moved", "the session has moved to another place", {
    at: to,
    fix: "use that place; to finish an interrupted move, repeat it",
  });
}

/** What a change was answered that whoever asked for it does not expect. */
export function unexpected(doing: string, result: ChangeResult): HoldfastError {
  if (result.status === "moved") return sessionMoved(result.to);
  return new HoldfastError("internal", `${doing}: storage answered "${result.status}"`);
}

/** What a session is called in audit rows. */
export function sessionObject({ sessionId }: Pick<Session, "sessionId">): string {
  return `session:${sessionId}`;
}
