// `ownSession` decides which caller may see a session: one rule for every service.
//
//   X13. The answer for a session that the caller may not touch is the same as for a missing one.
//   X4. A running agent touches its own session and its descendants, while the claim of its token lasts. A
//       runner touches the sessions it holds, and the queued tasks (`task:…`) of owners whose sessions it
//       takes.

import { isQueuedTaskAgent, LIMITS, type Session } from "@holdfast/core";
import type { Caller } from "../call/caller.ts";
import type { StoredToken } from "../call/tokens.ts";
import { sessionNotFound, type ServiceHost } from "./service-host.ts";

type ScopeHost = Pick<ServiceHost, "storage" | "dispatcher">;

/** The session, if the caller may touch it. @throws NotFoundError */
export async function ownSession(host: ScopeHost, caller: Caller, sessionId: string): Promise<Session> {
  const session = await host.storage.reader.session(sessionId);
  if (session === undefined || !(await mayTouch(host, caller, session))) throw sessionNotFound(sessionId);
  return session;
}

export async function mayTouch(host: ScopeHost, caller: Caller, session: Session): Promise<boolean> {
  switch (caller.kind) {
    case "admin":
      return true;
    case "user":
      // mutant: foreign-session-told
      return session.placement?.owner === caller.name;
    case "job":
      return isWithin(host, caller.name, session);
    case "runner":
      return isTaskFor(caller, session) || (await host.dispatcher.holds(caller.name, session.sessionId));
    case "registration":
    case "metrics":
    case "none":
      return false;
  }
}

/** Whether a session is this one or a descendant of it. Imported rows may form a cycle of parents. */
async function isWithin({ storage }: ScopeHost, top: string, session: Session): Promise<boolean> {
  const seen = new Set<string>();
  for (let at: Session | undefined = session; at !== undefined && !seen.has(at.sessionId);) {
    if (at.sessionId === top) return isBelow(session, at);
    seen.add(at.sessionId);
    at = at.parent === undefined ? undefined : await storage.reader.session(at.parent.sessionId);
  }
  return false;
}

/** A session of another owner is not below the parent that it names (ST36). */
function isBelow(session: Session, { placement }: Session): boolean {
  return placement?.owner === undefined || session.placement?.owner === placement.owner;
}

/** The children of a session, at most as many as a session may have. */
export async function childrenOf({ storage }: ScopeHost, session: Session): Promise<readonly Session[]> {
  const { sessionId: parent, placement } = session;
  const { owner } = placement ?? {};
  const ofOwner = owner === undefined ? {} : { owner };
  return storage.reader.sessions({ parent, limit: LIMITS.children, ...ofOwner });
}

function isTaskFor(caller: Caller, { agent, placement }: Session): boolean {
  return isQueuedTaskAgent(agent.name) && (caller.owner === undefined || caller.owner === placement?.owner);
}

/** The owner of sessions that a caller starts. */
export async function ownerFor(host: ScopeHost, caller: Caller): Promise<string | undefined> {
  if (caller.kind === "user") return caller.name;
  if (caller.kind !== "job") return undefined;
  return (await host.storage.reader.session(caller.name))?.placement?.owner;
}

/** Whether a claim is the newest of its session, belongs to its runner, and has not passed (X4). */
export async function isClaimOf(
  { storage, clock }: Pick<ServiceHost, "storage" | "clock">,
  of: Pick<StoredToken, "sessionId" | "runnerId" | "claimToken">,
): Promise<boolean> {
  const { sessionId = "", runnerId, claimToken } = of;
  const [claim] = await storage.heldClaims({ now: clock.now(), limit: 1, sessionId });
  return claim !== undefined && claim.owner === runnerId && claim.token === claimToken;
}
