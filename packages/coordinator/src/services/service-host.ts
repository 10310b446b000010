// `ServiceHost` holds what the services share: the ports, dispatch, and one way to make an audited change.

import {
  type Audit,
  type Change,
  type ChangeResult,
  type Clock,
  ConflictError,
  type FileImport,
  HoldfastError,
  importedBy,
  isAuditedAnswer,
  NotFoundError,
  type Random,
  type Session,
  withAnswerDetails,
} from "@holdfast/core";
import { invalid, type Refusal } from "../call/refusal.ts";
import { Dispatcher } from "../dispatch/dispatcher.ts";
import type { ClaimingHost } from "../dispatch/claiming.ts";
import { Catalogue } from "../catalogue/catalogue.ts";
import { StoredEnvironments } from "../environments/stored-environments.ts";
import { CommandAnswers } from "./runners/command-answers.ts";
import { Drafts } from "./sessions/drafts.ts";
import { Registry } from "../store/registry.ts";
import { Unmatched } from "../dispatch/unmatched.ts";
import { joinCommits, type Commit, type JoiningHost } from "../store/joined-commits.ts";
import type { FollowedStorage } from "../store/notices.ts";
import { Tokens } from "../call/tokens.ts";

export interface ServiceHost {
  readonly storage: FollowedStorage;
  /** Commits all changes of the API. */
  readonly commit: Commit;
  readonly clock: Clock;
  readonly random: Random;
  readonly tokens: Tokens;
  readonly registry: Registry;
  readonly catalogue: Catalogue;
  readonly environments: StoredEnvironments;
  readonly dispatcher: Dispatcher;
  readonly unmatched: Unmatched;
  readonly drafts: Drafts;
  readonly answers: CommandAnswers;
  readonly leaseMs: number;
  readonly renewMs: number;
}

type HostOptions = Pick<ServiceHost, "storage" | "clock" | "random" | "leaseMs" | "renewMs"> &
  Pick<ClaimingHost, "lossesMax" | "warn" | "claimed"> &
  Pick<JoiningHost, "immediate"> & {
    /** Texts of the keys of environments; the first one encrypts. */
    readonly environmentKeys?: readonly string[];
  };

/** Composes dispatch, the stores and the tokens of one coordinator over its storage. */
export function createServiceHost(options: HostOptions): ServiceHost {
  const { storage, clock, random, leaseMs, renewMs, lossesMax, warn, claimed, immediate } = options;
  const commit = sayingAnswers(storage, joinCommits({ storage, clock, immediate }));
  const registry = new Registry({ storage, clock });
  const dispatcher = new Dispatcher({ storage, commit, clock, registry, leaseMs, lossesMax, warn, claimed });
  const isKept = (sessionId: string): Promise<boolean> => dispatcher.earlierCode.isKept(sessionId);
  return {
    storage,
    commit,
    clock,
    random,
    tokens: new Tokens({ storage, clock, random }),
    registry,
    catalogue: new Catalogue({ storage, clock }),
    environments: new StoredEnvironments({ storage, clock, keys: options.environmentKeys ?? [] }),
    dispatcher,
    unmatched: new Unmatched({ storage, clock, registry, isKept }),
    drafts: new Drafts(),
    answers: new CommandAnswers({ clock, random, dispatcher }),
    leaseMs,
    renewMs,
  };
}

/** Each answer is recorded with its question, whichever call gave it. Other changes wait for no read. */
function sayingAnswers({ reader }: Pick<ServiceHost["storage"], "reader">, commit: Commit): Commit {
  return async (changes) =>
    commit(
      changes.some(isAuditedAnswer)
        ? await Promise.all(changes.map((change) => withAnswerDetails(reader, change)))
        : changes,
    );
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
